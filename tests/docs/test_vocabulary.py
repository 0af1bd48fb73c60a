"""The page's tables of gaps and what it reads from them, made again from the committed runs."""

from __future__ import annotations

import pandas as pd
import pytest
from small import REPOSITORY

from shapelaw.fits.curves import SizeAxis
from shapelaw.studies.transitions.analysis import Options
from shapelaw.studies.undertraining import results as undertraining
from shapelaw.studies.undertraining.tables import gaps_table as undertraining_gaps
from shapelaw.studies.vocabulary import results as vocabulary
from shapelaw.studies.vocabulary import tables

RESULTS = REPOSITORY / "docs" / "results"
PAGE = (RESULTS / "vocabulary.md").read_text(encoding="utf-8")
WORDS = " ".join(PAGE.split())
RUNS = pd.read_csv(RESULTS / "laptop_vocabulary.csv").fillna({"embedding_rank": 0})
SHAPE = ["vocab_size", "embedding_rank", "depth", "width"]
MEANS = RUNS.groupby(SHAPE)["test_loss"].mean()
PAIRS = ((24, 16), (32, 22), (48, 34), (64, 46), (96, 68), (128, 90))  # widths of one layer and of two
ABSENT = "–"
ONE_MATRIX = 0
Gaps = dict[tuple[int, int, int], tuple[float, float, str]]


@pytest.fixture(scope="module")
def gaps() -> Gaps:
    """V, rank (0: one matrix) and width of one layer -> by how much two layers are better, its error, who is better."""
    options = Options(draws=2)  # of the bootstrap, which has no part in the gaps
    analysis = vocabulary.analyse(RESULTS / "laptop_vocabulary.csv", options)
    table = tables.gaps_table(analysis).fillna({"embedding_rank": ONE_MATRIX})
    bytes_ = undertraining_gaps(undertraining.analyse(RESULTS / "laptop_undertraining.csv", options))
    bytes_ = bytes_.query("steps == 16_000 and learning_rate == '0.004'").assign(
        vocab_size=257, embedding_rank=ONE_MATRIX
    )
    return {
        (row.vocab_size, row.embedding_rank, row.width): (row.deeper_by, row.deeper_by_err, row.better)
        for row in pd.concat([table, bytes_]).itertuples()
    }


def cell_of(gaps: Gaps, vocab_size: int, rank: int, width: int) -> str:
    """A gap with its error, bold where two layers are significantly better."""
    if (vocab_size, rank, width) not in gaps:
        return ABSENT
    gap, err, better = gaps[vocab_size, rank, width]
    text = f"{gap:+.3f} ± {err:.3f}"
    return f"**{text}**" if better == "deeper" else text


def test_every_run_is_of_a_shape_that_the_page_shows_or_the_narrowest_of_rank_16() -> None:
    shown = {(1, one) for one, _ in PAIRS} | {(2, two) for _, two in PAIRS} | {(1, 16), (2, 12)}
    assert {(depth, width) for *_, depth, width in MEANS.index} <= shown


@pytest.mark.parametrize(
    ("vocab_size", "ranks", "pairs"),
    [
        (257, (ONE_MATRIX, 16, 32, 96), PAIRS[:5]),
        (500, (ONE_MATRIX, 32, 128), PAIRS[1:]),
        (2000, (32, 128), PAIRS[3:]),
    ],
)
def test_the_tables_are_the_gaps_of_the_runs(
    gaps: Gaps, vocab_size: int, ranks: tuple[int, ...], pairs: tuple[tuple[int, int], ...]
) -> None:
    for one, two in pairs:
        row = [cell_of(gaps, vocab_size, rank, one) for rank in ranks]
        line = f"| {one} / {two} | {' | '.join(row)} |"
        assert line in PAGE, line


def test_what_the_rank_does_at_one_pair_of_sizes(gaps: Gaps) -> None:
    """The gap at r = 32 beside that at r = 128, which is factored too; each shape at r = 32 beside one matrix."""
    moved = gaps[500, 32, 96][0] - gaps[500, 128, 96][0]
    assert f"At 96 / 68 the rank alone moves the gap by {moved:.3f} nats" in WORDS
    one, two = (
        MEANS[500, 32, depth, width] - MEANS[500, 128, depth, width] for depth, width in ((1, 96), (2, 68))
    )
    assert f"against r = 128, r = 32 costs one wide layer {one:.3f} nats" in WORDS
    assert f"two narrower layers gain {-two:.3f}" in WORDS


def test_the_gaps_at_equal_parameters_in_all() -> None:
    options = Options(size=SizeAxis.TOTAL, draws=2)
    table = tables.gaps_table(vocabulary.analyse(RESULTS / "laptop_vocabulary.csv", options))
    table = table[table["vocab_size"] == 500].set_index(["embedding_rank", "width"])
    low, middle, high = (
        f"{table.loc[place, 'deeper_by']:.3f} ± {table.loc[place, 'deeper_by_err']:.3f}"
        for place in ((32, 64), (128, 96), (128, 128))
    )
    assert f"to {low} at 64 / 46 of r = 32, and at r = 128 to {middle} at 96 and {high} at 128" in WORDS


def test_why_no_relation_can_be_fitted() -> None:
    """The statuses, as the page counts them."""
    table = tables.transitions_table(vocabulary.analyse(RESULTS / "laptop_vocabulary.csv"))
    table = table[table["method"] == "bootstrap"]
    sides = table["side"].value_counts()
    assert (len(table), sides["at"], sides["above"] + sides["below"]) == (8, 2, 3)
    assert table["status"].value_counts()[["too noisy", "too few sizes"]].tolist() == [1, 2]
    assert "of eight series two have a crossing at the edge of the sizes, three a bound," in WORDS
    assert "one is too noisy and two have too few sizes" in WORDS


def test_what_the_rank_does_with_2000_words(gaps: Gaps) -> None:
    moved = [gaps[2000, 32, width][0] - gaps[2000, 128, width][0] for width in (64, 96)]
    assert f"moves the gap by {moved[0]:.3f} nats at 64 / 46 and {moved[1]:.3f} at 96 / 68" in WORDS
    assert [gaps[2000, 32, width][2] for width in (64, 96, 128)] == ["shallower", "neither", "deeper"]
    assert [gaps[2000, 128, width][2] for width in (64, 96)] == ["shallower", "shallower"]


def test_how_far_two_seeds_of_a_network_differ() -> None:
    shapes = RUNS.groupby(SHAPE)["test_loss"]
    spread = (shapes.max() - shapes.min())[shapes.size() > 1]
    assert f"{len(RUNS)} runs of {len(MEANS)} networks" in WORDS
    assert f"two seeds of a network differ by up to {spread.max():.3f} nats" in WORDS


def test_the_noise_over_bytes_falls_with_the_width() -> None:
    """All of these shapes have two seeds: a variance is half the squared difference."""
    shapes = RUNS.query("vocab_size == 257").groupby(SHAPE)["test_loss"]
    variance = shapes.var()[shapes.size() == 2]
    width = variance.index.get_level_values("width")
    narrow, wide = (variance[part].mean() ** 0.5 for part in (width <= 32, width > 32))
    assert f"where it falls from {narrow:.3f} at widths up to 32 to {wide:.3f} at 46 to 64" in WORDS
    assert set(RUNS.query("vocab_size == 500 and seed == 1")["width"]) == {46, 64}
