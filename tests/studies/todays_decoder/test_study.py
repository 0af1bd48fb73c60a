"""The grid of the study of today's decoder."""

from typing import Any

import pytest
from small import REPOSITORY

from shapelaw.campaign.config import load_config, runs_of
from shapelaw.errors import UserError
from shapelaw.settings.sections import Settings
from shapelaw.specs.kinds import spec_from_dict, spec_to_dict
from shapelaw.specs.runs import Run
from shapelaw.studies.registry import STUDIES
from shapelaw.studies.todays_decoder.study import GRIDS

SCALES = REPOSITORY / "workflow" / "scales"
SMALL: dict[str, Any] = {
    "budget": {"steps": 100},
    "widths": {1: [8, 16], 2: [8]},
    "repeated": {1: [8]},
}


def config_of(*grids: object, **changes: object) -> Settings:
    section = {
        "vocab_size": 300,
        "context_length": 16,
        "heads": 2,
        "learning_rates": [1e-3, 2e-3],
        "base_widths": [None],
        "recipe": {},
        "grids": list(grids),
        **changes,
    }
    return load_config({"scale": "demo", "studies": ["todays_decoder"], "todays_decoder": section}, SCALES)


def runs_at(*grids: object, **changes: object) -> dict[str, Run]:
    found = runs_of(config_of(*grids, **changes), "todays_decoder", REPOSITORY)
    assert all(spec_from_dict(spec_to_dict(run)) == run for run in found.values())
    return {key: run for key, run in found.items() if isinstance(run, Run)}


def test_the_grid_is_every_shape_of_every_block_at_every_rate() -> None:
    assert {run.label for run in runs_at(SMALL).values()} == {
        f"wiki-V300-{shape}-H2{block}-lr{rate}-t100-s{seed}"
        for block in ("", "-llama")
        for rate in ("0.001", "0.002")
        for shape, seed in (("L1-d8", 0), ("L1-d8", 1), ("L1-d16", 0), ("L2-d8", 0))
    }


def test_budgets_decide_the_steps_and_stand_in_the_keys() -> None:
    tokens = {**SMALL, "budget": {"tokens_per_param": 20}, "repeated": {}}
    operations = {**SMALL, "budget": {"flops": 1e11}, "repeated": {}}
    found = runs_at(tokens, operations, learning_rates=[1e-3])
    assert len(found) == 2 * 2 * 3
    for key, run in found.items():
        seen = run.steps * run.training.batch_size * run.shape.context_length
        if "-20tpp-" in key:
            assert seen == pytest.approx(20 * run.total_params, rel=0.01)
        else:
            assert "-1e11flops-" in key
            assert run.steps * run.step_flops == pytest.approx(1e11, rel=0.01)


def test_rates_are_scaled_from_a_base_with_heads_by_the_same_rule() -> None:
    grid = {**SMALL, "repeated": {}}
    scaled = runs_at(grid, blocks=["llama"], base_widths=[None, 8], learning_rates=[1e-3])
    assert {run.label.split("-H")[1] for run in scaled.values()} == {
        "2-llama-lr0.001-t100-s0",
        "2-llama-mu8a4-lr0.001-t100-s0",
    }
    of_dimension = runs_at(grid, blocks=["llama"], base_widths=[16], heads={"dim": 4}, learning_rates=[1e-3])
    assert {(run.shape.heads, run.shape.base_attention_dim) for run in of_dimension.values()} == {
        (2, None),
        (4, None),
    }


def test_the_analysis_is_told_the_steps_to_observe() -> None:
    grid = {**SMALL, "observed_steps": [50, 100]}
    config = config_of(grid, recipe={"schedule": "constant", "evaluate_every": 50, "warmup_steps": 10})
    assert STUDIES["todays_decoder"].options(config) == ["--size", "block", "--observed-steps", "50", "100"]
    assert all("-constant-t100-" in key for key in runs_of(config, "todays_decoder", REPOSITORY))


@pytest.mark.parametrize(
    ("grids", "changes", "sentence"),
    [
        ([], {}, "todays_decoder.grids is empty; give it a list of grids"),
        ([SMALL, SMALL], {}, "todays_decoder.grids.2nd has the budget of a grid before it"),
        ([{**SMALL, "budget": {}}], {}, "budget is empty; give it one of steps, tokens_per_param and flops"),
        (
            [{**SMALL, "budget": {"tokens_per_param": 20, "steps": 100}}],
            {},
            "todays_decoder.grids.1st.budget.steps, todays_decoder.grids.1st.budget.tokens_per_param are set together",
        ),
        (
            [{**SMALL, "budget": {"tokens_per_param": 20}}],
            {"recipe": {"steps": 100}},
            "todays_decoder.recipe.steps is 100, and the budgets of todays_decoder.grids decide the steps; leave",
        ),
        (
            [{**SMALL, "widths": {1: [8]}, "repeated": {}}],
            {},
            "grids.1st.widths has 1 depth; a transition needs",
        ),
        (
            [{**SMALL, "widths": {1: [10], 2: [8]}, "repeated": {}}],
            {},
            "depth 1, width 10, block llama, learning_rate 0.001 (the dimension of a head is 5, and rotary positions",
        ),
        (
            [SMALL],
            {"kv_heads": 3},
            "block llama, learning_rate 0.001 (kv_heads 3 does not divide 2",
        ),
        ([{**SMALL, "repeated": {2: [16]}}], {}, "does not have: depth 2 width 16"),
        (
            [{**SMALL, "budget": {"steps": 20}}],
            {},
            "is 50, not below todays_decoder.grids.1st.budget.steps (20)",
        ),
        (
            [{**SMALL, "budget": {"tokens_per_param": 1e-3}}],
            {},
            "the steps by todays_decoder.grids.1st.budget.tokens_per_param",
        ),
        ([SMALL], {"base_widths": [7]}, "base_width 7 is not divisible by 2 heads"),
        ([SMALL], {"learning_rates": [0.0]}, "todays_decoder.learning_rates"),
        ([{**SMALL, "observed_steps": [50]}], {}, "observed_steps is set and the schedule is cosine"),
        (
            [{**SMALL, "observed_steps": [30]}],
            {"recipe": {"schedule": "constant", "evaluate_every": 50, "warmup_steps": 10}},
            "observed_steps has 30, at which there is no test loss; use multiples of training.evaluate_every (50)",
        ),
        (
            [{**SMALL, "budget": {"flops": 1e11}, "observed_steps": [50]}],
            {"recipe": {"schedule": "constant", "evaluate_every": 50, "warmup_steps": 10}},
            "observed_steps needs budget.steps",
        ),
        (
            [{**SMALL, "observed_steps": [10]}],
            {"recipe": {"schedule": "redecayed", "evaluate_every": 10, "warmup_steps": 20}},
            "observed_steps has 10, within the warm-up (20 steps), in which the rate rises",
        ),
        (
            [SMALL],
            {"recipe": {"schedule": "redecayed", "evaluate_every": 4}},
            "recipe.evaluate_every is 4 and todays_decoder.recipe.schedule is redecayed: the rate falls to zero in the",
        ),
        (
            [{**SMALL, "budget": {"steps": 16000}}],
            {"recipe": {"schedule": "constant", "evaluate_every": 10}},
            "todays_decoder.recipe.schedule is constant: that is 1600 observations of a run, and 150 are kept",
        ),
        *(
            ([{**SMALL, "budget": {name: amount}}], {}, f"grids.1st.budget.{name} gives a network ")
            for name, amount in (("flops", 1e30), ("tokens_per_param", 1e9))
        ),
        ([SMALL], {"blocks": ["gpt2"], "kv_heads": 2}, "kv_heads is 2 and no block is llama, which has them"),
        (
            [SMALL],
            {"blocks": ["llama"], "gelu": "erf"},
            "gelu is erf and no block is gpt2, which alone has GELU",
        ),
        (
            [SMALL],
            {"recipe": {"learning_rate": 0.01}},
            "recipe.learning_rate is 0.01, and todays_decoder.learning_rates has the rates of all networks",
        ),
    ],
)
def test_each_mistake_is_a_sentence(grids: list[object], changes: dict[str, object], sentence: str) -> None:
    with pytest.raises(UserError) as error:
        config_of(*grids, **changes)
    assert sentence in str(error.value)


def test_the_steps_that_count_are_the_budgets_and_not_those_of_training() -> None:
    """Scale demo's training has 400 steps: too few for this warm-up, and 1,000,000 too many to test every 1,000."""
    grid = {**SMALL, "budget": {"steps": 16000}}
    assert runs_at(grid, recipe={"warmup_steps": 500})
    assert runs_at(grid, recipe={"schedule": "constant", "evaluate_every": 1000})


WIDE: dict[str, Any] = {
    "budget": {"steps": 200},
    "widths": {1: [16, 24, 32, 48, 64], 2: [12, 16, 24, 32, 48]},
    "repeated": {1: [24]},
}


def warned(*grids: object, **changes: object) -> list[str]:
    return GRIDS.warnings(config_of(*grids, **changes), REPOSITORY)


def test_a_grid_that_gives_its_transition_is_told_nothing() -> None:
    """The noise is pooled over all grids, so one that repeats a shape is enough."""
    assert warned(WIDE, {**WIDE, "budget": {"tokens_per_param": 4}, "repeated": {}}) == []
    assert warned({**WIDE, "repeated": {}}, seeds=2) == []


def test_without_repeats_it_is_told_once_that_there_is_no_noise() -> None:
    (told,) = warned({**WIDE, "repeated": {}}, {**WIDE, "budget": {"flops": 1e12}, "repeated": {}})
    assert told.startswith("todays_decoder.grids.1st: every network has one seed")
    (told,) = warned(WIDE, repeated_seeds=1)
    assert "without seed noise no transition is told" in told


def test_depths_of_other_sizes_are_told_with_their_place() -> None:
    far = {"budget": {"steps": 300}, "widths": {1: [8, 12, 16, 20], 2: [48, 64, 80, 96]}}
    (told,) = warned(WIDE, far)
    assert told == (
        "todays_decoder.grids.2nd.widths: at the sizes that depths 1 and 2 both cover, they have 0 and 0 networks; a "
        "transition needs 4 of each"
    )


def test_what_one_block_alone_does_not_give_is_told_of_that_block() -> None:
    """Llama's blocks have other sizes where they have fewer heads of keys."""
    grid = {**WIDE, "widths": {1: [40, 72, 112, 124, 156], 2: [16, 32, 48, 56, 84]}, "repeated": {1: [40]}}
    (told,) = warned(grid, context_length=64, size_axis="flops", kv_heads=1)
    assert told.endswith("transition needs 4 of each (block llama)")
    assert warned(grid, context_length=64, size_axis="flops", blocks=["gpt2"]) == []
