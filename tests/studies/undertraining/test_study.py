"""The grid of the study of undertraining."""

import pytest
from small import REPOSITORY

from shapelaw.campaign.config import load_config, runs_of
from shapelaw.errors import UserError
from shapelaw.settings.sections import Settings
from shapelaw.specs.runs import run_from_dict, run_to_dict
from shapelaw.studies.undertraining.study import GRIDS

SCALES = REPOSITORY / "workflow" / "scales"
SMALL = {"steps": 100, "learning_rates": [1e-3, 2e-3], "widths": {1: [8, 16], 2: [8]}, "repeated": {1: [8]}}


def config_of(*grids: object, **changes: object) -> Settings:
    section = {"vocab_size": 300, "context_length": 16, "grids": list(grids), **changes}
    return load_config({"scale": "demo", "studies": ["undertraining"], "undertraining": section}, SCALES)


def test_the_grid_is_every_shape_at_every_rate_and_number_of_steps() -> None:
    config = config_of(SMALL, {**SMALL, "steps": 400, "learning_rates": [1e-5], "repeated": {}})
    runs = runs_of(config, "undertraining", REPOSITORY)
    assert {run.label for run in runs.values()} == {
        f"wiki-V300-{shape}-H2-{end}"
        for ends, shapes in (
            (
                ["lr0.001-t100-s0", "lr0.002-t100-s0", "lr0.00001-t400-s0"],
                ["L1-d8", "L1-d16", "L2-d8"],
            ),
            (["lr0.001-t100-s1", "lr0.002-t100-s1"], ["L1-d8"]),
        )
        for end in ends
        for shape in shapes
    }
    assert all(run_from_dict(run_to_dict(run)) == run for run in runs.values())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("grids", "sentence"),
    [
        ([], "undertraining.grids is empty; give it a list of grids"),
        ([SMALL, SMALL], "undertraining.grids.2nd has the steps of a grid before it"),
        ([{**SMALL, "widths": {1: [8]}}], "undertraining.grids.1st.widths has 1 depth; a transition needs"),
        ([{**SMALL, "widths": {1: [7], 2: [8]}, "repeated": {}}], "width 7 is not divisible by 2 heads"),
        ([{**SMALL, "repeated": {2: [16]}}], "does not have: depth 2 width 16"),
        (
            [{**SMALL, "steps": 20}],
            "training.warmup_steps is 50, not below undertraining.grids.1st.steps (20)",
        ),
        (
            [{**SMALL, "learning_rates": [1e-3, 1e-3]}],
            "undertraining.grids.1st.learning_rates names a rate twice",
        ),
        ([{**SMALL, "learning_rates": [0.0]}], "undertraining.grids.1st.learning_rates"),
        ([{**SMALL, "learning_rates": []}], "undertraining.grids.1st.learning_rates"),
    ],
)
def test_each_mistake_is_a_sentence(grids: list[object], sentence: str) -> None:
    with pytest.raises(UserError) as error:
        config_of(*grids)
    assert sentence in str(error.value)


def test_what_a_grid_can_give_is_told_of_the_networks_that_it_trains() -> None:
    """With a tied classifier the depths' sizes, of all parameters, overlap in other networks than without."""
    grid = {**SMALL, "widths": {1: [80, 84, 88, 104, 140], 2: [36, 56, 80, 96, 104]}, "repeated": {1: [80]}}
    sizes = {"context_length": 64, "size_axis": "total", "repeated_seeds": 2}
    (told,) = GRIDS.warnings(config_of(grid, **sizes), REPOSITORY)
    assert "they have 5 and 3 networks" in told
    assert GRIDS.warnings(config_of(grid, **sizes, tied=True), REPOSITORY) == []


def test_the_noise_is_pooled_over_all_grids() -> None:
    wide = {**SMALL, "widths": {1: [16, 24, 32, 48, 64], 2: [12, 16, 24, 32, 48]}, "repeated": {1: [24]}}
    assert GRIDS.warnings(config_of(wide, {**wide, "steps": 400, "repeated": {}}), REPOSITORY) == []
    none = {**wide, "repeated": {}}
    (told,) = GRIDS.warnings(config_of(none, {**none, "steps": 400}), REPOSITORY)
    assert told.startswith("undertraining.grids.1st: every network has one seed")
