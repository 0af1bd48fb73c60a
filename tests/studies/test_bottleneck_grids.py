"""The grids of the studies of bottlenecks: their runs, what is wrong with them, and the papers' own."""

from dataclasses import replace

import pytest
import torch
from small import REPOSITORY
from trained import counted_flops

from shapelaw.campaign.config import load_config, runs_of
from shapelaw.models.decoder import Decoder
from shapelaw.specs.runs import Run
from shapelaw.specs.shapes import Shape

SCALES = REPOSITORY / "workflow" / "scales"


def shapes_of_scale(scale: str, study: str) -> list[Shape]:
    """The shapes of a scale's grid, each once."""
    config = load_config({"scale": scale, "studies": [study]}, SCALES, REPOSITORY)
    shapes = []
    for run in runs_of(config, study, REPOSITORY).values():
        assert isinstance(run, Run)
        if run.seed == 0:
            shapes.append(run.shape)
    return shapes


@pytest.mark.parametrize("scale", ["demo", "laptop"])
def test_counts_of_parameters_and_operations_are_the_modules(scale: str) -> None:
    for wide in shapes_of_scale(scale, "attention_ratio"):
        if wide.attention_ratio in (4, 16):
            shape = replace(wide, context_length=8)
            model, ids = Decoder(shape), torch.zeros(1, 8, dtype=torch.long)
            assert sum(p.numel() for p in model.parameters()) == shape.total_params
            assert counted_flops(model, ids) == shape.forward_flops(1)
