"""The grids of product networks: from their keys to runs."""

import pytest
from shipped import SCALE_NAMES, SCALES, shipped
from small import REPOSITORY

from shapelaw.campaign.config import load_config, runs_of
from shapelaw.errors import UserError
from shapelaw.studies.block_degree.study import DegreeGrid, grid_runs


@pytest.mark.parametrize("scale", SCALE_NAMES)
def test_every_run_of_block_degree_has_its_own_key(scale: str) -> None:
    config = load_config(shipped(scale=scale), SCALES)
    specs = {run for grid in config.section_list("block_degree", DegreeGrid) for run in grid_runs(grid)}
    assert len(runs_of(config, "block_degree", REPOSITORY)) == len(specs)


def test_mixtures_can_begin_anywhere_between_their_degrees() -> None:
    grid = {
        "target_ranks": [2],
        "degrees": [],
        "mixtures": [2, 3],
        "matrices": 6,
        "mixture_shares": [0.1, 0.5, 0.9],
        "learning_rates": [0.01],
    }
    runs = runs_of(load_config(shipped(block_degree=[grid]), SCALES), "block_degree", REPOSITORY)
    assert len(runs) == 2 * 3 * 4
    with pytest.raises(UserError, match=r"mixture_shares"):
        load_config(shipped(block_degree=[{**grid, "mixture_shares": [1.0]}]), SCALES)


def test_grids_that_differ_in_the_inputs_alone_are_other_runs() -> None:
    grids = [
        {"target_ranks": [2], "degrees": [3], "matrices": 6, "inputs": inputs, "seeds": 2}
        for inputs in (4, 8)
    ]
    runs = runs_of(load_config(shipped(block_degree=grids), SCALES), "block_degree", REPOSITORY)
    assert len(runs) == 2 * 4 * 2
