"""Decoders with attention of each degree: of equal size, and what is wrong with their grid."""

import pytest
from shipped import SCALE_NAMES, SCALES, shipped
from small import REPOSITORY

from shapelaw.campaign.config import load_config, runs_of
from shapelaw.specs.runs import Run
from shapelaw.studies.grid.study import grids_of


@pytest.mark.parametrize("scale", SCALE_NAMES)
def test_every_scale_has_attention_of_each_degree_at_equal_parameters(scale: str) -> None:
    config = load_config(shipped(scale=scale, studies=["attention_degree"]), SCALES)
    assert (
        "attention_degree" not in load_config(shipped(scale=scale), SCALES).studies
    )  # minutes that demo has not
    runs = runs_of(config, "attention_degree", REPOSITORY)
    sizes: dict[tuple[int, int], dict[int | None, int]] = {}
    for key, run in runs.items():
        assert isinstance(run, Run)
        assert run.key == key
        assert Run.from_dict(run.to_dict()) == run
        shape = run.shape
        sizes.setdefault((shape.depth, shape.width), {})[shape.attention_degree] = shape.total_params
    for params in sizes.values():
        assert set(params) == {None, 2, 3, 4}
        assert max(params.values()) <= 1.02 * min(params.values())
        assert params[3] == params[None]
    assert len(runs) == len(sizes) * 4 * grids_of(config)["attention_degree"].seeds
    assert {run.training.dropout for run in runs.values()} == {0.0}  # type: ignore[union-attr]
