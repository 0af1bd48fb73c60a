"""The grids of product networks: from their keys to runs."""

from shipped import SCALES, shipped
from small import REPOSITORY

from shapelaw.campaign.config import load_config, runs_of
from shapelaw.specs.kinds import spec_from_dict
from shapelaw.studies.block_degree.study import problems


def test_the_note_s_block_is_trained_at_the_same_budget() -> None:
    grid = {
        "target": "signs",
        "target_ranks": [4],
        "degrees": [1, 3],
        "matrices": 12,
        "learning_rates": [0.01],
    }
    block = {
        "activation": "relu",
        "residual": False,
        "normalization": "batch",
        "heads": 2,
        "until_converged": True,
    }
    runs = runs_of(load_config(shipped(block_degree=[grid | block]), SCALES), "block_degree", REPOSITORY)
    assert len(runs) == 2 * 4
    assert {run.network.matrices for run in runs.values()} == {12}
    assert {run.network.depth for run in runs.values()} == {2, 6}
    assert {run.network.block for run in runs.values()} == {"ReLU, no residual, batch norm, 2 heads"}
    assert all(spec_from_dict(run.to_dict()) == run for run in runs.values())


def test_mixers_have_the_budget_of_products_and_their_tokens_divide_the_inputs() -> None:
    grid = {"target_ranks": [4], "degrees": [3], "mixers": [2, 4], "matrices": 6, "learning_rates": [0.01]}
    runs = runs_of(load_config(shipped(block_degree=[grid]), SCALES), "block_degree", REPOSITORY).values()
    assert all(spec_from_dict(run.to_dict()) == run for run in runs)
    assert {(run.network.mixer_tokens, run.network.depth) for run in runs} == {(0, 2), (2, 2), (4, 2)}
    assert {run.network.matrices for run in runs} == {6}
    layers = [run.network.layer_params for run in runs]
    assert max(layers) < 1.15 * min(layers)
    # each token uses W, and each channel V_1 and V_2
    flops = {run.network.mixer_tokens: run.step_flops / run.batch_size / 6 for run in runs}
    assert flops[4] == 16 * 32 + 2 * (2 * 32 * 4 * 256 + 4 * 32**2) + 32
    for wrong, said in (
        ({"mixers": [3]}, "a Mixer of 3 tokens can't cut 16 inputs"),
        ({"matrices": 8, "degrees": [2]}, "3 matrices a layer"),
        ({"heads": 2, "degrees": [1]}, "one head"),
    ):
        config = load_config(shipped(block_degree=[grid | wrong]), SCALES)
        (problem,) = problems(config, REPOSITORY)
        assert said in problem


def test_grids_that_differ_in_the_inputs_alone_are_other_runs() -> None:
    grids = [
        {"target_ranks": [2], "degrees": [3], "matrices": 6, "inputs": inputs, "seeds": 2}
        for inputs in (4, 8)
    ]
    runs = runs_of(load_config(shipped(block_degree=grids), SCALES), "block_degree", REPOSITORY)
    assert len(runs) == 2 * 4 * 2
