"""The grids of the studies of bottlenecks: their runs, what is wrong with them, and the papers' own."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pandas as pd
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
from shapelaw.studies.study import published_of

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


def test_scale_paper_is_the_paper_s_grid_of_embedding_ranks() -> None:
    grid = pd.read_csv(REPOSITORY / "workflow" / "reference" / "embedding_rank_grid.csv")
    config = load_config({"scale": "paper", "studies": ["embedding_rank"]}, SCALES, REPOSITORY)
    runs = runs_of(config, "embedding_rank", REPOSITORY).values()
    ours = {
        (run.shape.depth, run.shape.width, run.shape.embedding_rank)  # type: ignore[union-attr]
        for run in runs
        if run.shape.embedding_rank is None or run.shape.positional_rank is not None  # type: ignore[union-attr]
    }
    ranks = grid["embedding_rank"].astype("object").where(grid["embedding_rank"].notna(), None)
    assert ours == set(zip(grid["depth"], grid["width"], ranks, strict=True))
    assert {run.shape.vocab_size for run in runs} == {2000}  # type: ignore[union-attr]
    seeds = Counter((run.shape.width, run.shape.embedding_rank or run.shape.width) for run in runs)  # type: ignore[union-attr]
    repeated = {f"r = {rank} of d = {width}" for (width, rank), count in seeds.items() if count >= 5}
    assert repeated == published_of("embedding_rank", "std of the loss over 5 seeds").keys()


def shapes_of_scale(scale: str, study: str) -> list[Shape]:
    """The shapes of a scale's grid, each once."""
    config = load_config({"scale": scale, "studies": [study]}, SCALES, REPOSITORY)
    shapes = []
    for run in runs_of(config, study, REPOSITORY).values():
        assert isinstance(run, Run)
        if run.seed == 0:
            shapes.append(run.shape)
    return shapes


def test_scale_paper_is_the_paper_s_grid_of_positional_ranks() -> None:
    grid = pd.read_csv(REPOSITORY / "workflow" / "reference" / "positional_rank_grid.csv")
    shapes = shapes_of_scale("paper", "positional_rank")
    plain, *factored = shapes
    assert (plain.embedding_rank, plain.positional_rank) == (None, None)
    rows = []
    for shape in factored:
        sizes = (shape.depth, shape.width, shape.vocab_size, shape.context_length)
        if shape.embedding_rank is None:
            rows.append(("positional", *sizes, shape.positional_rank))
        else:
            assert shape.positional_rank is None
            rows.append(("vocabulary", *sizes, shape.embedding_rank))
    columns = ["series", "depth", "width", "vocab_size", "context", "rank"]
    assert rows == list(grid[columns].itertuples(index=False, name=None))


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


def test_a_ratio_may_be_a_fraction() -> None:
    """Gemma 7B has 16 heads of 256 at width 3,072: 4 / 3."""
    blocks = [{**FOUR, "attention_dim": {"ratio": ratio}, "widths": {1: [24]}} for ratio in (1.333, 0.5)]
    runs = runs_of(config_of("attention_ratio", ONE, *blocks), "attention_ratio", REPOSITORY)
    assert {run.label for run in runs.values() if isinstance(run, Run) and "d24" in run.label} == {
        "wiki-V300-L1-d24-H2-a16-f128-lr0.003-t400-s0",
        "wiki-V300-L1-d24-H2-a6-f48-lr0.003-t400-s0",
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


def test_at_equal_size_the_ratio_takes_width() -> None:
    """With d_ff = 4 H d_a a network of ratio q has 12 q L d^2 weights in its blocks, with 4 d (4 q + 8) L d^2."""
    config = config_of("attention_ratio", ONE, FOUR, {**FOUR, "widths": {3: [6]}, "ff_width": None})
    runs = runs_of(config, "attention_ratio", REPOSITORY).values()
    shapes = [run.shape for run in runs]  # type: ignore[union-attr]
    assert [shape.block_params for shape in shapes[-2:]] == [12 * 4 * 2 * 36, 24 * 3 * 36]


def test_scale_paper_is_the_paper_s_grid_of_attention_ratios() -> None:
    grid = pd.read_csv(REPOSITORY / "workflow" / "reference" / "attention_ratio_grid.csv")
    shapes = shapes_of_scale("paper", "attention_ratio")
    ours = [(shape.attention_ratio, shape.depth, shape.heads, shape.width) for shape in shapes]
    columns = ["attention_to_width_ratio", "depth", "heads", "width"]
    assert sorted(ours) == sorted(grid[columns].itertuples(index=False, name=None))
    assert all(shape.hidden_width == 4 * shape.attention_width for shape in shapes)
    # "networks of sizes ranging between 30M and 70M" (section 5.3)
    sizes = [shape.total_params for shape in shapes]
    assert min(sizes) > 29e6
    assert max(sizes) < 71e6
