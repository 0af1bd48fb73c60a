"""The grids of the studies of bottlenecks: their runs, what is wrong with them, and the papers' own."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from small import REPOSITORY
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from shapelaw.campaign.config import load_config, runs_of, studies_of
from shapelaw.models.decoder import Decoder
from shapelaw.settings.sections import Settings
from shapelaw.specs.runs import Run
from shapelaw.specs.shapes import Shape

SCALES = REPOSITORY / "workflow" / "scales"
WIDE: dict[str, Any] = {"widths": {2: [64]}, "vocab_size": 500, "context_length": 16, "dropout": 0.1}
EMBEDDING = [
    {**WIDE, "widths": {2: [32, 48, 64]}, "repeated": {2: [64]}},
    {**WIDE, "axes": {"embedding_rank": [4, 16, 64, 100]}, "positional_rank": "embedding_rank"},
    {**WIDE, "embedding_rank": 4, "positional_rank": "embedding_rank", "seeds": 3},
    {**WIDE, "embedding_rank": 4, "seeds": 3},
]
RATIO: dict[str, Any] = {"vocab_size": 300, "context_length": 16, "repeated_seeds": 2}
ONE = {**RATIO, "widths": {1: [8, 16]}, "repeated": {1: [8]}}
FOUR = {**RATIO, "attention_dim": {"ratio": 4}, "ff_width": "4 * heads * attention_dim", "widths": {2: [6]}}


def config_of(study: str, *blocks: dict[str, Any]) -> Settings:
    """Scale demo with another grid of a study."""
    return load_config({"scale": "demo", "studies": [study], "grids": {study: list(blocks)}}, SCALES)


def test_the_grid_is_the_baseline_and_every_embedding_rank() -> None:
    """100 is above the width and above the positions, and told of the latter alone."""
    config = config_of("embedding_rank", *EMBEDDING)
    runs = runs_of(config, "embedding_rank", REPOSITORY)
    assert len(runs) == 3 + 2 + (4 + 2) + (1 + 2)
    shapes = {run.label: run.shape for run in runs.values()}  # type: ignore[union-attr]
    assert shapes["wiki-V500-L2-d64-r4-H2-p4-lr0.003-do0.1-t400-s2"].positional_rank == 4
    assert shapes["wiki-V500-L2-d64-r4-H2-lr0.003-do0.1-t400-s0"].positional_rank is None
    assert shapes["wiki-V500-L2-d64-H2-lr0.003-do0.1-t400-s0"].embedding_rank is None
    assert shapes["wiki-V500-L2-d64-r64-H2-p64-lr0.003-do0.1-t400-s0"].embedding_rank == 64
    assert shapes["wiki-V500-L2-d64-r100-H2-p100-lr0.003-do0.1-t400-s0"].embedding_rank == 100
    (told,) = studies_of(config)["embedding_rank"].warnings(config, REPOSITORY)
    assert told.startswith(
        "grids.embedding_rank: positional_rank 64, 100 is above the 16 positions of a window"
    )


def shapes_of_scale(scale: str, study: str) -> list[Shape]:
    """The shapes of a scale's grid, each once."""
    config = load_config({"scale": scale, "studies": [study]}, SCALES, REPOSITORY)
    shapes = []
    for run in runs_of(config, study, REPOSITORY).values():
        assert isinstance(run, Run)
        if run.seed == 0:
            shapes.append(run.shape)
    return shapes


def test_the_grid_is_every_shape_of_every_ratio() -> None:
    as_t5, narrow = {**FOUR, "heads": 3}, {**FOUR, "heads": 4, "ff_width": None}
    also_one = {**ONE, "attention_dim": {"ratio": 1}, "ff_width": FOUR["ff_width"]}
    runs = runs_of(config_of("attention_ratio", ONE, also_one, as_t5, narrow), "attention_ratio", REPOSITORY)
    assert {run.label for run in runs.values() if isinstance(run, Run)} == {
        *(f"wiki-V300-L1-d8-H2-lr0.003-t400-s{seed}" for seed in (0, 1)),
        "wiki-V300-L1-d16-H2-lr0.003-t400-s0",  # at ratio 1 both feed-forward widths are one network
        "wiki-V300-L2-d6-H3-a8-f96-lr0.003-t400-s0",
        "wiki-V300-L2-d6-H4-a6-lr0.003-t400-s0",
    }


@pytest.mark.parametrize("scale", ["demo", "laptop"])
def test_counts_of_parameters_and_operations_are_the_modules(scale: str) -> None:
    for wide in shapes_of_scale(scale, "attention_ratio"):
        if wide.attention_ratio in (4, 16):
            shape = replace(wide, context_length=8)
            model, ids = Decoder(shape), torch.zeros(1, 8, dtype=torch.long)
            assert sum(p.numel() for p in model.parameters()) == shape.total_params
            with (
                sdpa_kernel(SDPBackend.MATH),
                FlopCounterMode(display=False) as counter,
                torch.no_grad(),
            ):
                model.logits(ids)
            assert counter.get_total_flops() == shape.forward_flops(1)
