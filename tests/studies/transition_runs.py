"""Runs whose transitions are known: along a law, of several learning rates, and of several vocabularies."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from loss_surfaces import grid_of, simulate, size

from shapelaw.fits.inputs import check_runs
from shapelaw.specs.making import make_shape
from shapelaw.studies.decoders.vocabulary import VocabularyAnalysis, analyse_series
from shapelaw.studies.transitions.analysis import (
    Options,
    analyse_runs,
    analyse_transitions,
    check_transitions,
    published_transitions,
)

DEPTHS = (4, 6, 8, 10, 12)
A, B = 4.0, 0.10
TRUE_WIDTHS = {depth: float(np.exp(A + B * depth)) for depth in DEPTHS}
# the width of the transition, by steps and learning rate
UNDERTRAINING: dict[tuple[int, float], float] = {
    (1000, 0.001): 120.0,
    (1000, 0.002): 120.0,
    (4000, 0.001): 240.0,
    (4000, 0.002): 120.0,
}
# the same by block, steps and learning rate
TODAYS: dict[tuple[str, int, float], float] = {
    ("gpt2", 1000, 0.001): 120.0,
    ("gpt2", 1000, 0.002): 120.0,
    ("llama", 1000, 0.001): 240.0,
    ("llama", 1000, 0.002): 120.0,
    ("gpt2", 4000, 0.001): 120.0,
    ("llama", 4000, 0.001): 180.0,
}
# by vocabulary and rank
SERIES: dict[tuple[int, int | None], float] = {
    (257, None): 257.0,
    (500, None): 500.0,
    (2000, 350): 350.0,
    (2000, None): 1200.0,
}


def runs_of(**options):
    return check_runs(simulate(grid_of(DEPTHS, 6e4, 6e6, 12), TRUE_WIDTHS, noise=0.0008, **options), "made")


@cache
def analysed(draws=600, **options):
    """The analysis of such runs, made once."""
    return analyse_runs(runs_of(**options), Options(draws=draws))


@cache
def refitted():
    """The published line, fitted to the published transitions."""
    return analyse_transitions(check_transitions(published_transitions(), "table 4a"))


def undertraining_runs(true: Mapping[tuple[int, float], float] = UNDERTRAINING) -> pd.DataFrame:
    """Runs at depths 4 and 8 whose transition is at a width of its own for each number of steps and rate.

    The higher rate is better by 0.2 nats at 1,000 steps, the lower one at 4,000.
    """
    return _runs_of_rates(true, ("steps", "learning_rate"), 1000)


def todays_runs(true: Mapping[tuple[str, int, float], float] = TODAYS) -> pd.DataFrame:
    """The same for each block, number of steps and rate; of GPT-2's the block is empty.

    The higher rate is better by 0.2 nats for GPT-2's block, the lower one for Llama's.
    """
    runs = _runs_of_rates(true, ("block", "steps", "learning_rate"), "gpt2")
    return runs.assign(block=runs["block"].astype(object).replace("gpt2", None))


def _runs_of_rates(true: Mapping[Any, float], names: tuple[str, ...], fast: object) -> pd.DataFrame:
    """Runs whose first field is `fast` are better at the higher rate, the others at the lower one."""
    middle, tables = size(4, 170), []
    widths = grid_of((4, 8), middle / 9, middle * 9, 9)
    for seed, (key, width) in enumerate(true.items()):
        runs = simulate(widths, {4: width}, noise=0.0005, seed=seed)
        worse = 0.2 if (key[0] == fast) == (key[-1] == 0.001) else 0.0
        fields = dict(zip(names, key, strict=True))
        tables.append(runs.assign(**fields, test_loss=runs["test_loss"] + worse))
    return pd.concat(tables, ignore_index=True)


def vocabulary_runs(
    true: dict[tuple[int, int | None], float], seed: int = 0, *, sizes: bool = False
) -> pd.DataFrame:
    """Runs at depths 24 and 48 whose transition is at a width of its own for each vocabulary and rank.

    Args:
        sizes: with all sizes, bits per byte and the text seen, each of which has an analysis of its own.
    """
    tables = []
    for place, ((vocab_size, rank), width) in enumerate(true.items()):
        widths = grid_of((24, 48), size(24, width) / 4, size(24, width) * 4, 9)
        runs = simulate(widths, {24: width}, seed=seed + place)
        runs = runs.assign(vocab_size=vocab_size, embedding_rank=rank)
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


def analysed_series(runs: pd.DataFrame, draws: int = 100) -> VocabularyAnalysis:
    """The analysis of runs of vocabularies, with few draws."""
    return analyse_series(runs, "runs.csv", Options(draws=draws))


@cache
def of_series() -> VocabularyAnalysis:
    """The analysis of `SERIES`."""
    return analysed_series(vocabulary_runs(SERIES, sizes=True), 200)
