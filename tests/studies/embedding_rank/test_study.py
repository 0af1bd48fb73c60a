"""The grid of the study of the embedding's rank."""

from collections import Counter

import pandas as pd
import pytest
from small import REPOSITORY

from shapelaw.campaign.config import load_config, runs_of
from shapelaw.errors import UserError
from shapelaw.settings.sections import Settings
from shapelaw.studies.embedding_rank.study import warnings

SCALES = REPOSITORY / "workflow" / "scales"
GRID = {
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


def config_of(**changes: object) -> Settings:
    values = {"scale": "demo", "studies": ["embedding_rank"], "embedding_rank": GRID | changes}
    return load_config(values, SCALES)


def test_the_grid_is_the_baseline_and_every_rank() -> None:
    runs = runs_of(config_of(), "embedding_rank", REPOSITORY)
    assert len(runs) == 3 + 2 + (4 + 2) + (1 + 2)
    shapes = {run.label: run.shape for run in runs.values()}  # type: ignore[union-attr]
    assert shapes["wiki-V500-L2-d64-r4-H2-p4-lr0.003-do0.1-t400-s2"].positional_rank == 4
    assert shapes["wiki-V500-L2-d64-r4-H2-lr0.003-do0.1-t400-s0"].positional_rank is None
    assert shapes["wiki-V500-L2-d64-H2-lr0.003-do0.1-t400-s0"].embedding_rank is None
    assert shapes["wiki-V500-L2-d64-r64-H2-p64-lr0.003-do0.1-t400-s0"].embedding_rank == 64
    assert shapes["wiki-V500-L2-d64-r100-H2-p100-lr0.003-do0.1-t400-s0"].embedding_rank == 100
    assert {run.training.dropout for run in runs.values()} == {0.1}  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
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
)
def test_each_mistake_is_a_sentence(changes: dict[str, object], sentence: str) -> None:
    with pytest.raises(UserError) as error:
        config_of(**changes)
    assert sentence in str(error.value)


def test_a_rank_above_the_vocabulary_is_told_and_one_above_the_width_is_not() -> None:
    config = config_of(ranks=[4, 100, 501], repeated_ranks=[], full_position_ranks=[5000])
    first, second = warnings(config, REPOSITORY)
    assert first.startswith("embedding_rank.ranks: a rank of 501 is above the 500 tokens: the two")
    assert second.startswith("embedding_rank.full_position_ranks: a rank of 5,000 is above the 500 ")


def test_scale_paper_is_the_paper_s_grid() -> None:
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
    std = pd.read_csv(REPOSITORY / "workflow" / "reference" / "embedding_rank_seed_std.csv")
    assert {shape for shape, count in seeds.items() if count >= 5} == set(
        zip(std["width"], std["embedding_rank"], strict=True)
    )
