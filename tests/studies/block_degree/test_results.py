"""The degree study from its keys to runs, and from a table of runs to its files, on tables whose truth is known."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from degree_runs import BEST_RATE, TRUE_LOSS, separable, table, tuned_of, with_mixtures
from shipped import SCALES, shipped
from small import REPOSITORY

from shapelaw.campaign.config import load_config, runs_of
from shapelaw.report.tables import frame_of
from shapelaw.specs.kinds import spec_from_dict
from shapelaw.studies.block_degree import results as figures
from shapelaw.studies.block_degree.analysis import differences
from shapelaw.studies.block_degree.ranks import (
    CORRELATIONS,
    EXACT,
    FLOOR,
    LOSSES,
    correlations,
    polynomial,
    rank_figure,
    rank_networks,
)
from shapelaw.studies.block_degree.results import analyse, present
from shapelaw.studies.block_degree.study import problems
from shapelaw.studies.study_runs import StudyRuns
from shapelaw.training.degree_pack import draw_separable, least_errors


def test_every_degree_gets_its_best_rate_and_the_truth_is_found() -> None:
    found = analyse(StudyRuns(table(), "runs", ()), rank_seconds=0.01)
    results = present(found)
    verdicts = {(one.tuned.task.target_rank, one.tuned.name): one.verdict for one in found.differences}
    for rank in (2, 8):
        assert verdicts[rank, "degree 1"] == verdicts[rank, "degree 2"] == "worse"
        assert verdicts[rank, "degree 4"] == "no significant difference"
    losses = results.tables["losses"].frame.set_index(["target_rank", "network"])
    for degree, loss in TRUE_LOSS.items():
        row = losses.loc[(2, f"degree {degree}")]
        assert row["learning_rate"] == BEST_RATE[degree]
        assert row["low95"] < row["loss"] < row["high95"]
        assert row["loss"] == pytest.approx(loss * 2**0.3, rel=0.1)
        assert row["rates_at_edge"] == (5 if degree in (1, 4) else 0)
    assert results.fit["status"] == "converged"
    assert len(results.fit["differences"]) == 6


def test_one_seed_is_no_comparison() -> None:
    assert frame_of(tuned_of(table(seeds=1)), figures.LOSSES)["low95"].isna().all()


def test_titles_name_what_differs_from_degree_3_after_holm_and_what_cant_be_told() -> None:
    tuned = tuned_of(table(seeds=3))
    separable, _ = figures.differences_figure(differences(tuned)).panels
    assert separable is not None
    assert separable.title.startswith("Separable: worse than degree 3: degree 1 (R\u00a0=\u00a02, 8)")
    alone, _ = figures.differences_figure(differences(tuned_of(table(seeds=1)))).panels
    assert alone is not None
    assert alone.title == "Separable: can't tell: one seed"
    mixed = figures.mixtures_figure(tuned_of(with_mixtures()))
    assert isinstance(mixed, figures.Chart)
    assert mixed.panels[0] is not None
    assert mixed.panels[0].title.startswith("Mixtures end within ")


PRODUCTS = {"target_ranks": [4], "degrees": [3], "matrices": 6, "learning_rates": [0.01]}


def asked(*grids: dict[str, Any]) -> list[Any]:
    """The runs of grids, which come back from their specs."""
    config = load_config(shipped(block_degree=[*grids]), SCALES)
    runs = [*runs_of(config, "block_degree", REPOSITORY).values()]
    assert [spec_from_dict(run.to_dict()) for run in runs] == runs
    return runs


def test_the_note_s_block_is_trained_at_the_same_budget() -> None:
    grid = {**PRODUCTS, "target": "signs", "degrees": [1, 3], "matrices": 12}
    block = {"activation": "relu", "residual": False, "normalization": "batch", "heads": 2}
    runs = asked(grid | block | {"until_converged": True})
    assert len(runs) == 2 * 4
    assert {run.network.matrices for run in runs} == {12}
    assert {run.network.depth for run in runs} == {2, 6}
    assert {run.network.block for run in runs} == {"ReLU, no residual, batch norm, 2 heads"}


def test_mixers_have_the_budget_of_products_and_their_tokens_divide_the_inputs() -> None:
    grid = {**PRODUCTS, "mixers": [2, 4]}
    runs = asked(grid)
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
    grids = [{"target_ranks": [2], "degrees": [3], "matrices": 6, "inputs": n, "seeds": 2} for n in (4, 8)]
    assert len(asked(*grids)) == 2 * 4 * 2


def ranked_table(follow: bool) -> pd.DataFrame:
    """Networks of 6 matrices whose losses follow the floor of their exact rank, or are noise around one value."""
    random = np.random.default_rng(2)
    rows = []
    for degrees in ("1.1.1.1.1.1", "1.1.1.1.2", "1.1.1.3", "1.1.2.2", "1.2.3", "2.2.2", "3.3"):
        network = polynomial(tuple(map(int, degrees.split("."))), 4, 8)
        rank = network.rank_bound()
        for target_rank in (32, 64):
            for seed in range(3):
                floor = least_errors(draw_separable(8, target_rank, seed))[min(rank, target_rank)]
                loss = floor + 1e-3 if follow else 0.1
                off = math.exp(0.05 * random.standard_normal())
                rows.append((target_rank, degrees, 1e-2, seed, loss * off))
    return separable(rows).assign(inputs=8, width=4)


@pytest.mark.slow
def test_losses_at_the_floor_of_their_rank_correlate_with_it_and_noise_does_not() -> None:
    ranked = rank_networks(tuned_of(ranked_table(follow=True)))
    losses = frame_of(ranked, LOSSES)
    assert dict(zip(losses["network"], losses["rank"], strict=True)) == {
        "degree 1": 2, "degrees 1.1.1.1.2": 6, "degrees 1.1.1.3": 10, "degrees 1.1.2.2": 20,
        "degrees 1.2.3": 50, "degree 2": 105, "degree 3": 140,
    }  # fmt: skip
    assert (losses["status"] == "exact").all()
    above = losses["rank"] >= losses["target_rank"]
    assert (losses.loc[above, "floor"] == 0).all()
    assert losses.loc[~above, "loss"].to_numpy() == pytest.approx(losses.loc[~above, "floor"] + 1e-3, rel=0.1)
    found = correlations(ranked)
    rows = frame_of(found, CORRELATIONS)
    of_rank = rows[rows["against"] == EXACT]
    assert (of_rank.loc[of_rank["target_rank"].notna(), "verdict"] == "negative").all()
    (row,) = rows[rows["against"] == FLOOR].to_dict("records")
    assert pd.isna(row["target_rank"])
    assert row["verdict"] == "positive"
    assert row["spearman"] > 0.85
    assert len(rank_figure(ranked, found).panels) == 1
    ranked = rank_networks(tuned_of(ranked_table(follow=False)))
    assert set(frame_of(correlations(ranked), CORRELATIONS)["verdict"]) == {"no significant correlation"}
    losses = frame_of(ranked, LOSSES).set_index(["target_rank", "network"])
    assert losses.loc[(32, "degree 1"), "below_floor"] == 3  # 0.1 of the variance, where rank 2 leaves more


def test_a_rank_that_takes_too_long_is_its_upper_bound() -> None:
    ranked = {one.tuned.name: one for one in rank_networks(tuned_of(table(seeds=1)), seconds=1.0)}
    assert ranked["degree 1"].rank == ranked["degree 1"].upper_bound == 2
    assert ranked["degree 3"].rank is None
    assert ranked["degree 3"].total_degree == 81
    assert ranked["degree 3"].upper_bound > 10**6
    assert math.isnan(ranked["degree 3"].mean_floor)
