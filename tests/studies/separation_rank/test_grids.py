"""The grids of separation ranks: from their keys to measurements."""

import pytest
from shipped import SCALE_NAMES, SCALES, shipped

from shapelaw.studies.config import load_config
from shapelaw.studies.separation_rank.grids import asked_of, rank_grids


@pytest.mark.parametrize("scale", SCALE_NAMES)
def test_every_scale_has_separation_ranks(scale: str) -> None:
    config = load_config(shipped(scale=scale), SCALES)
    asked = asked_of(rank_grids(config))
    assert {one.table for one in asked} == {"ranks", "degree_budget", "fractional_degree"}
    assert len(asked) > 400
    assert "separation_rank" in config.studies
