"""The page's tables of losses, made again from the committed runs."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from small import REPOSITORY

RESULTS = REPOSITORY / "docs" / "results"
PAGE = (RESULTS / "vocabulary.md").read_text(encoding="utf-8")
RUNS = pd.read_csv(RESULTS / "laptop_vocabulary.csv").fillna({"embedding_rank": 0})
MEANS = RUNS.groupby(["vocab_size", "embedding_rank", "depth", "width"])["test_loss"].mean()
UNDERTRAINING = pd.read_csv(RESULTS / "laptop_undertraining.csv").query(
    "steps == 16000 and learning_rate == 0.004"
)
ONE_MATRIX = UNDERTRAINING.groupby(["depth", "width"])["test_loss"].mean()
PAIRS = ((24, 16), (32, 22), (48, 34), (64, 46), (96, 68), (128, 90))  # widths of one layer and of two
ABSENT = "–"


def cells(vocab_size: int, rank: int, one_layer: int, two_layers: int) -> list[str]:
    """The losses of one layer and of two, and how much better two are; dashes where they were not trained."""
    one, two = (
        MEANS.get((vocab_size, rank, depth, width), math.nan)
        for depth, width in ((1, one_layer), (2, two_layers))
    )
    return [ABSENT] * 3 if math.isnan(one - two) else [f"{one:.3f}", f"{two:.3f}", f"{one - two:+.3f}"]


def test_every_run_is_of_a_shape_that_the_page_shows_or_the_narrowest_of_rank_16() -> None:
    shown = {(1, one) for one, _ in PAIRS} | {(2, two) for _, two in PAIRS} | {(1, 16), (2, 12)}
    assert {(depth, width) for *_, depth, width in MEANS.index} <= shown


@pytest.mark.parametrize("pair", PAIRS[:5])
def test_the_losses_over_bytes_are_those_of_the_runs(pair: tuple[int, int]) -> None:
    row = [cell for rank in (16, 32, 96) for cell in cells(257, rank, *pair)]
    gap = ONE_MATRIX.get((1, pair[0]), math.nan) - ONE_MATRIX.get((2, pair[1]), math.nan)
    row.append(ABSENT if math.isnan(gap) else f"{gap:+.3f}")
    line = f"| {pair[0]} / {pair[1]} | {' | '.join(row)} |"
    assert line in PAGE, line


@pytest.mark.parametrize("pair", PAIRS[1:])
def test_the_losses_over_500_words_are_those_of_the_runs(pair: tuple[int, int]) -> None:
    row = [cell for rank in (0, 32, 128) for cell in cells(500, rank, *pair)]
    line = f"| {pair[0]} / {pair[1]} | {' | '.join(row)} |"
    assert line in PAGE, line


def test_what_the_rank_does_at_one_pair_of_sizes() -> None:
    """The gap at r = 32 beside that at r = 128, which is factored too; each shape at r = 32 beside one matrix."""
    loss = {
        (rank, depth): MEANS[500, rank, depth, width]
        for rank in (0, 32, 128)
        for depth, width in ((1, 96), (2, 68))
    }
    gap = {rank: loss[rank, 1] - loss[rank, 2] for rank in (32, 128)}
    words = " ".join(PAGE.split())
    wider = MEANS[500, 32, 1, 128] - MEANS[500, 32, 2, 90]
    narrower = MEANS[500, 32, 2, 46] - MEANS[500, 32, 1, 64]
    said = f"behind by {narrower:.3f} nats at 64 / 46 and ahead by {gap[32]:.3f} at 96 / 68 and {wider:.3f} at 128 / 90"
    assert said in words
    assert f"the rank alone moves the gap by {gap[32] - gap[128]:.3f} nats" in words
    assert f"costs one wide layer {loss[32, 1] - loss[0, 1]:.3f} nats against one matrix" in words
    assert f"they gain {loss[0, 2] - loss[32, 2]:.3f}" in words


def test_how_far_two_seeds_of_a_network_differ() -> None:
    shapes = RUNS.groupby(["vocab_size", "embedding_rank", "depth", "width"])["test_loss"]
    spread = (shapes.max() - shapes.min())[shapes.size() > 1]
    words = " ".join(PAGE.split())
    assert f"{len(RUNS)} runs of {len(MEANS)} networks" in words
    assert f"seeds of one network differ by {spread[500].min():.3f} to {spread[500].max():.3f}" in words
    assert f"two seeds of a network differ by up to {spread.max():.3f} nats" in words
