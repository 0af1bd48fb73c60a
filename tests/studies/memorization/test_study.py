"""The grids of the memorization studies: from their keys to runs, and what is wrong with them."""

from shipped import SCALES, shipped
from small import REPOSITORY

from shapelaw.campaign.config import load_config, runs_of
from shapelaw.specs.kinds import spec_from_dict
from shapelaw.specs.memorizers import MemorizationRun


def test_a_grids_last_batch_wins_over_the_sections() -> None:
    grids = [
        {"heads": [2], "head_dim": [8], "examples": [300]},
        {"heads": [4], "head_dim": [8], "examples": [300], "last_batch": "filled"},
    ]
    config = load_config(shipped(memorization={"last_batch": "short"}, memorization_heads=grids), SCALES)
    runs = runs_of(config, "memorization_heads", REPOSITORY).values()
    assert [run.last_batch for run in runs if isinstance(run, MemorizationRun)] == ["short", "filled"]
    assert all(spec_from_dict(run.to_dict()) == run for run in runs)
