"""Runs of the vocabulary study whose transitions are known."""

from functools import cache

import loss_surfaces
import pandas as pd

from shapelaw.specs.making import make_shape
from shapelaw.studies.decoders.vocabulary import VocabularyAnalysis, analyse_series
from shapelaw.studies.transitions.analysis import Options

DEPTHS = (24, 48)
SERIES: dict[tuple[int, int | None], float] = {
    (257, None): 257.0,
    (500, None): 500.0,
    (2000, 350): 350.0,
    (2000, None): 1200.0,
}


def vocabulary_runs(
    true: dict[tuple[int, int | None], float], seed: int = 0, *, sizes: bool = False
) -> pd.DataFrame:
    """Runs at depths 24 and 48 whose transition is at a width of its own for each vocabulary and rank.

    Args:
        sizes: with all sizes, bits per byte and the text seen, each of which has an analysis of its own.
    """
    tables = []
    for place, ((vocab_size, rank), width) in enumerate(true.items()):
        middle = loss_surfaces.size(24, width)
        widths = loss_surfaces.grid_of(DEPTHS, middle / 4, middle * 4, 9)
        runs = loss_surfaces.simulate(widths, {24: width}, seed=seed + place)
        runs = runs.rename(columns={"loss": "test_loss"}).assign(vocab_size=vocab_size, embedding_rank=rank)
        if sizes:
            shapes = [
                make_shape(int(d), int(w), 2, vocab_size, 128, embedding_rank=rank, redundant_rank=True)
                for d, w in zip(runs["depth"], runs["width"], strict=True)
            ]
            runs["total_params"] = [shape.total_params for shape in shapes]
            runs["step_flops"] = [shape.step_flops(8) for shape in shapes]
            runs = runs.assign(tokens_trained=1_000_000, bits_per_byte=runs["test_loss"] / 3.0)
        tables.append(runs)
    return pd.concat(tables, ignore_index=True)


def analysed(runs: pd.DataFrame, draws: int = 100) -> VocabularyAnalysis:
    """The analysis of runs, with few draws."""
    return analyse_series(runs, "runs.csv", Options(draws=draws))


@cache
def of_series() -> VocabularyAnalysis:
    """The analysis of `SERIES`."""
    return analysed(vocabulary_runs(SERIES, sizes=True), 200)
