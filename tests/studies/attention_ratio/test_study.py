"""The grid of the study of the attention ratio."""

from dataclasses import replace

import pandas as pd
import pytest
import torch
from small import REPOSITORY
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from shapelaw.campaign.config import load_config, runs_of
from shapelaw.errors import UserError
from shapelaw.models.decoder import Decoder
from shapelaw.settings.sections import Settings
from shapelaw.specs.runs import Run

SCALES = REPOSITORY / "workflow" / "scales"
ONE = {"ratio": 1, "widths": {1: [8, 16]}, "repeated": {1: [8]}}
FOUR = {"ratio": 4, "widths": {2: [6]}}


def config_of(*grids: object, **changes: object) -> Settings:
    section = {"vocab_size": 300, "context_length": 16, "grids": list(grids), **changes}
    return load_config({"scale": "demo", "studies": ["attention_ratio"], "attention_ratio": section}, SCALES)


def test_the_grid_is_every_shape_of_every_ratio() -> None:
    plain = {**FOUR, "feed_forward": "width"}
    also_one = {**ONE, "feed_forward": "width"}
    runs = runs_of(
        config_of(ONE, also_one, {**FOUR, "heads": 3}, {**plain, "heads": 4}, repeated_seeds=2),
        "attention_ratio",
        REPOSITORY,
    )
    assert {run.label for run in runs.values() if isinstance(run, Run)} == {
        *(f"wiki-V300-L1-d8-H2-lr0.003-t400-s{seed}" for seed in (0, 1)),
        "wiki-V300-L1-d16-H2-lr0.003-t400-s0",  # at ratio 1 both feed-forward widths are one network
        "wiki-V300-L2-d6-H3-a8-f96-lr0.003-t400-s0",
        "wiki-V300-L2-d6-H4-a6-lr0.003-t400-s0",
    }


def test_a_ratio_may_be_a_fraction() -> None:
    """Gemma 7B has 16 heads of 256 at width 3,072: 4 / 3."""
    third = {"ratio": 1.333, "heads": 2, "widths": {1: [24]}}
    half = {"ratio": 0.5, "heads": 2, "widths": {1: [24]}}
    runs = runs_of(config_of(ONE, third, half), "attention_ratio", REPOSITORY)
    assert {run.label for run in runs.values() if isinstance(run, Run) and "d24" in run.label} == {
        "wiki-V300-L1-d24-H2-a16-f128-lr0.003-t400-s0",
        "wiki-V300-L1-d24-H2-a6-f48-lr0.003-t400-s0",
    }


@pytest.mark.parametrize("scale", ["demo", "laptop"])
def test_counts_of_parameters_and_operations_are_the_modules(scale: str) -> None:
    config = load_config({"scale": scale, "studies": ["attention_ratio"]}, SCALES, REPOSITORY)
    for run in runs_of(config, "attention_ratio", REPOSITORY).values():
        assert isinstance(run, Run)
        if run.seed == 0 and run.shape.attention_ratio in (4, 16):
            shape = replace(run.shape, context_length=8)
            model, ids = Decoder(shape), torch.zeros(1, 8, dtype=torch.long)
            assert sum(p.numel() for p in model.parameters()) == shape.total_params
            with (
                sdpa_kernel(SDPBackend.MATH),
                FlopCounterMode(display=False) as counter,
                torch.no_grad(),
            ):
                model.logits(ids)
            assert counter.get_total_flops() == shape.forward_flops(1)


def test_at_equal_size_the_ratio_takes_width() -> None:
    """With d_ff = 4 H d_a a network of ratio q has 12 q L d^2 weights in its blocks, with 4 d (4 q + 8) L d^2."""
    grids = ONE, FOUR, {**FOUR, "widths": {3: [6]}, "feed_forward": "width"}
    shapes = [run.shape for run in runs_of(config_of(*grids), "attention_ratio", REPOSITORY).values()]  # type: ignore[union-attr]
    assert [shape.block_params for shape in shapes[-2:]] == [12 * 4 * 2 * 36, 24 * 3 * 36]


@pytest.mark.parametrize(
    ("grids", "sentence"),
    [
        ([], "attention_ratio.grids is empty; give it grids"),
        (
            [{**ONE, "widths": {1: [8]}}, FOUR],
            "has 1 networks of ratio 1; redundancy is measured against two",
        ),
        ([ONE], "attention_ratio.grids has no ratio but 1"),
        (
            [ONE, {**FOUR, "heads": 16}],
            "attention_ratio.grids.2nd.widths.2: ratio 4 at width 6 gives 16 heads of 1.5 numbers, which is not "
            "whole; use width 4 or 8, or other heads",
        ),
        (
            [ONE, {**FOUR, "widths": {2: [1]}, "heads": 8}],
            "8 heads of 0.5 numbers, which is not whole; use width 2",
        ),
        ([ONE, {**FOUR, "widths": {2: [0]}}], "attention_ratio.grids.2nd.widths.2.1st is 0"),
        ([ONE, {**FOUR, "ratio": 0}], "attention_ratio.grids.2nd.ratio is 0"),
        ([ONE, {**FOUR, "heads": 0}], "attention_ratio.grids.2nd.heads is 0"),
        ([ONE, {**FOUR, "feed_forward": "t5"}], "attention_ratio.grids.2nd.feed_forward is 't5'"),
        ([ONE, {**FOUR, "repeated": {2: [8]}}], "does not have: depth 2 width 8; repeat shapes of the grid"),
        ([ONE, FOUR, {**FOUR, "heads": 4}], "has width 6 with 4 heads, and a grid before it with 2"),
    ],
)
def test_each_mistake_is_a_sentence(grids: list[object], sentence: str) -> None:
    with pytest.raises(UserError) as error:
        config_of(*grids)
    assert sentence in str(error.value)


def test_scale_paper_is_the_paper_s_grid() -> None:
    grid = pd.read_csv(REPOSITORY / "workflow" / "reference" / "attention_ratio_grid.csv")
    config = load_config({"scale": "paper", "studies": ["attention_ratio"]}, SCALES, REPOSITORY)
    shapes = [
        run.shape
        for run in runs_of(config, "attention_ratio", REPOSITORY).values()
        if isinstance(run, Run) and run.seed == 0
    ]
    ours = [(shape.attention_ratio, shape.depth, shape.heads, shape.width) for shape in shapes]
    columns = ["attention_to_width_ratio", "depth", "heads", "width"]
    assert sorted(ours) == sorted(grid[columns].itertuples(index=False, name=None))
    assert all(shape.hidden_width == 4 * shape.attention_width for shape in shapes)
    # "networks of sizes ranging between 30M and 70M" (section 5.3)
    sizes = [shape.total_params for shape in shapes]
    assert min(sizes) > 29e6
    assert max(sizes) < 71e6
