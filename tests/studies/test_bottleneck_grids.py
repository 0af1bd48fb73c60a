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

from shapelaw.campaign.config import load_config, runs_of
from shapelaw.errors import UserError
from shapelaw.models.decoder import Decoder
from shapelaw.settings.sections import Settings
from shapelaw.specs.runs import Run
from shapelaw.specs.shapes import Shape
from shapelaw.studies.embedding_rank.study import warnings
from shapelaw.studies.published import published_of

SCALES = REPOSITORY / "workflow" / "scales"
EMBEDDING = {
    "depth": 2,
    "width": 64,
    "heads": 2,
    "vocab_size": 500,
    "context_length": 16,
    "ranks": [4, 16, 64, 100],
    "full_position_ranks": [4],
    "baseline_widths": [32, 48, 64],
    "repeated_ranks": [4],
    "repeated_widths": [64],
    "repeated_seeds": 3,
    "recipe": {"dropout": 0.1},
}
POSITIONAL = {
    "depth": 2,
    "width": 24,
    "heads": 2,
    "vocab_size": 300,
    "context_length": 16,
    "positional_ranks": [1, 4, 16],
    "vocabulary_ranks": [2, 24],
    "repeated_positional_ranks": [1],
    "repeated_vocabulary_ranks": [],
    "repeated_seeds": 2,
}
ONE = {"ratio": 1, "widths": {1: [8, 16]}, "repeated": {1: [8]}}
FOUR = {"ratio": 4, "widths": {2: [6]}}

GRIDS: dict[str, dict[str, Any]] = {
    "embedding_rank": EMBEDDING,
    "positional_rank": POSITIONAL,
    "attention_ratio": {"vocab_size": 300, "context_length": 16},
}


def config_of(study: str, **changes: object) -> Settings:
    """Scale demo with a study's grid of above, some of it changed."""
    return load_config({"scale": "demo", "studies": [study], study: GRIDS[study] | changes}, SCALES)


MISTAKES = {
    "embedding_rank": [
        ({"ranks": []}, "embedding_rank.ranks is empty; give it ranks"),
        ({"baseline_widths": [64]}, "embedding_rank.baseline_widths needs two widths or more"),
        (
            {"baseline_widths": [63, 64]},
            "embedding_rank.baseline_widths: width 63 is not divisible by 2 heads",
        ),
        ({"repeated_ranks": [5]}, "embedding_rank.repeated_ranks has 5, which the grid does not have"),
        (
            {"recipe": {"droput": 0.1}},
            "embedding_rank.recipe.droput is not a key of training (did you mean dropout?)",
        ),
        ({"recipe": {"dropout": 2}}, "embedding_rank.recipe.dropout is 2: it must be below 1"),
        ({"recipe": {"warmup_steps": 400}}, "embedding_rank.recipe.warmup_steps is 400, not below"),
    ],
    "positional_rank": [
        ({"positional_ranks": []}, "positional_rank.positional_ranks is empty; give it ranks"),
        ({"vocabulary_ranks": []}, "positional_rank.vocabulary_ranks is empty; give it ranks"),
        ({"positional_ranks": [0, 1]}, "positional_rank.positional_ranks.1st is 0"),
        (
            {"positional_ranks": [1, 17]},
            "positional_rank.positional_ranks: positional_rank 17 is above min(width, context_length) = 16, the rank "
            "of a full positional embedding; leave it out or use at most 16",
        ),
        (
            {"context_length": 64, "positional_ranks": [1, 25]},
            "positional_rank 25 is above min(width, context_length) = 24",
        ),
        ({"vocabulary_ranks": [25]}, "embedding_rank 25 is above min(width, vocab_size) = 24"),
        ({"width": 23}, "positional_rank: width 23 is not divisible by 2 heads"),
        (
            {"repeated_positional_ranks": [2]},
            "positional_rank.repeated_positional_ranks has 2, which positional_ranks does not have",
        ),
        ({"recipe": {"droput": 0.1}}, "positional_rank.recipe.droput is not a key of training"),
    ],
    "attention_ratio": [
        ({"grids": grids}, sentence)
        for grids, sentence in (
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
            (
                [ONE, {**FOUR, "repeated": {2: [8]}}],
                "does not have: depth 2 width 8; repeat shapes of the grid",
            ),
            ([ONE, FOUR, {**FOUR, "heads": 4}], "has width 6 with 4 heads, and a grid before it with 2"),
        )
    ],
}


@pytest.mark.parametrize(
    ("study", "changes", "sentence"), [(study, *case) for study, cases in MISTAKES.items() for case in cases]
)
def test_each_mistake_is_a_sentence(study: str, changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError) as error:
        config_of(study, **changes)
    assert str(error.value).count(sentence) == 1


def test_the_grid_is_the_baseline_and_every_embedding_rank() -> None:
    runs = runs_of(config_of("embedding_rank"), "embedding_rank", REPOSITORY)
    assert len(runs) == 3 + 2 + (4 + 2) + (1 + 2)
    shapes = {run.label: run.shape for run in runs.values()}  # type: ignore[union-attr]
    assert shapes["wiki-V500-L2-d64-r4-H2-p4-lr0.003-do0.1-t400-s2"].positional_rank == 4
    assert shapes["wiki-V500-L2-d64-r4-H2-lr0.003-do0.1-t400-s0"].positional_rank is None
    assert shapes["wiki-V500-L2-d64-H2-lr0.003-do0.1-t400-s0"].embedding_rank is None
    assert shapes["wiki-V500-L2-d64-r64-H2-p64-lr0.003-do0.1-t400-s0"].embedding_rank == 64
    assert shapes["wiki-V500-L2-d64-r100-H2-p100-lr0.003-do0.1-t400-s0"].embedding_rank == 100
    assert {run.training.dropout for run in runs.values()} == {0.1}  # type: ignore[union-attr]


def test_a_rank_above_the_vocabulary_is_told_and_one_above_the_width_is_not() -> None:
    config = config_of("embedding_rank", ranks=[4, 100, 501], repeated_ranks=[], full_position_ranks=[5000])
    first, second = warnings(config, REPOSITORY)
    assert first.startswith("embedding_rank.ranks: a rank of 501 is above the 500 tokens: the two")
    assert second.startswith("embedding_rank.full_position_ranks: a rank of 5,000 is above the 500 ")


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


def test_the_grid_is_the_plain_network_and_every_rank() -> None:
    """16 positions have rank 16 at most, and 300 tokens rank 24 at width 24: factored they are other networks."""
    runs = runs_of(config_of("positional_rank"), "positional_rank", REPOSITORY).values()
    assert {run.label for run in runs if isinstance(run, Run)} == {
        "wiki-V300-L2-d24-H2-lr0.003-t400-s0",
        "wiki-V300-L2-d24-H2-lr0.003-t400-s1",
        "wiki-V300-L2-d24-H2-p1-lr0.003-t400-s0",
        "wiki-V300-L2-d24-H2-p1-lr0.003-t400-s1",
        "wiki-V300-L2-d24-H2-p4-lr0.003-t400-s0",
        "wiki-V300-L2-d24-H2-p16-lr0.003-t400-s0",
        "wiki-V300-L2-d24-r2-H2-lr0.003-t400-s0",
        "wiki-V300-L2-d24-r24-H2-lr0.003-t400-s0",
    }


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
    plain = {**FOUR, "feed_forward": "width"}
    also_one = {**ONE, "feed_forward": "width"}
    runs = runs_of(
        config_of(
            "attention_ratio",
            grids=[ONE, also_one, {**FOUR, "heads": 3}, {**plain, "heads": 4}],
            repeated_seeds=2,
        ),
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
    runs = runs_of(config_of("attention_ratio", grids=[ONE, third, half]), "attention_ratio", REPOSITORY)
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
    grids = [ONE, FOUR, {**FOUR, "widths": {3: [6]}, "feed_forward": "width"}]
    shapes = [
        run.shape
        for run in runs_of(config_of("attention_ratio", grids=grids), "attention_ratio", REPOSITORY).values()
    ]  # type: ignore[union-attr]
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
