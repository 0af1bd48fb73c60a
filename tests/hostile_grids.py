"""Tables of grids that are drawn at random, made to be as odd as the runs of a real grid can be."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd

AXES = ("vocab_size", "embedding_rank", "heads")
DEPTHS = (1, 2, 3, 4, 6, 8, 12, 24)
BYTES = {257: 1.0, 500: 1.8, 1000: 2.3}  # bytes of a token


def hostile_grid(number: int) -> pd.DataFrame:
    """The runs of the grid of a number: its axes, shapes, seeds, losses and columns are all drawn.

    Among them are grids of one depth, width or seed, with gaps, of losses that are equal, constant, rise with the
    size, lie on a line, or are of a very small or large scale, and of several vocabularies without bits per byte.
    """
    rng = np.random.default_rng([60, number])
    depths = rng.choice(DEPTHS, rng.choice([1, 2, 3, 4, 5]), replace=False)
    some = rng.choice([1, 2, 4, 5, 6, 8])
    widths = 8 * np.unique(np.geomspace(rng.integers(1, 5), rng.integers(6, 60), some).round().astype(int))
    vocabularies = rng.choice([*BYTES], rng.choice([1, 1, 2, 3]), replace=False)
    ranks = rng.choice([0, 8], rng.choice([1, 2]), replace=False)
    heads = rng.choice([1, 2, 4], rng.choice([1, 2, 3]), replace=False)
    repeats = int(rng.choice([1, 1, 2, 3]))  # seeds of some shapes
    repeated = rng.choice([0.2, 1.0])
    rows = []
    for depth, width, vocab, rank, head in product(depths, widths, vocabularies, ranks, heads):
        seeds = repeats if rng.random() < repeated else 1
        rows += [(depth, width, vocab, rank, head, seed) for seed in range(seeds)]
    runs = pd.DataFrame(rows, columns=["depth", "width", "vocab_size", "embedding_rank", "heads", "seed"])
    if rng.random() < 0.3:  # gaps
        runs = runs[rng.random(len(runs)) < rng.uniform(0.4, 0.95)] if len(runs) > 3 else runs
    if runs.empty:
        runs = pd.DataFrame(rows[:1], columns=runs.columns)
    most = int(rng.choice([12, 24, 60], p=[0.5, 0.4, 0.1]))  # rows, so that many grids take little time
    if len(runs) > most:
        runs = runs.sample(most, random_state=number)
    runs = runs.reset_index(drop=True)
    block = 12.0 * runs["depth"] * runs["width"] ** 2
    rank = runs["embedding_rank"].where(runs["embedding_rank"] > 0)
    runs = runs.assign(
        embedding_rank=rank.astype("Int64"),
        attention_dim=runs["width"] // runs["heads"],
        block_params=block.astype(int),
        test_loss=_losses(runs, np.log(block.to_numpy()), rng),
        steps=100,
        learning_rate=0.002,
    )
    if rng.random() < 0.7:
        total = runs["block_params"] + runs["width"] * rank.fillna(runs["vocab_size"])
        runs = runs.assign(total_params=total.astype(int), step_flops=6.0 * 1024 * total)
    bits = runs["test_loss"] / runs["vocab_size"].map(BYTES)
    if (kind := rng.random()) < 0.6:
        runs = runs.assign(bits_per_byte=bits)
    elif kind < 0.8:  # some have none
        runs = runs.assign(bits_per_byte=bits.where(runs["vocab_size"] != vocabularies[0]))
    return runs


def _losses(runs: pd.DataFrame, log_size: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Losses of a kind that is drawn, each cell a little apart, with a noise and at a scale that are drawn too."""
    x, depth = log_size - 10.0, np.log(runs["depth"].to_numpy(dtype=np.float64))
    kinds = (
        lambda: 3.0 + np.exp(-0.3 * x),  # as they are
        lambda: 3.0 + np.exp(-0.3 * x) + 0.1 * (depth - 0.3 * x) ** 2,  # a best depth
        lambda: 3.0 + np.exp(-0.3 * x) + 0.05 * np.abs(depth - 0.2 * x),  # with a corner
        lambda: 4.0 - 0.05 * x - 0.02 * depth * x,  # depths that cross
        lambda: 4.0 + 0.0 * x,  # constant
        lambda: 4.0 + 0.1 * x,  # the larger the worse
        lambda: 4.0 - 0.1 * x,  # a line
        lambda: 4.0 + 0.5 * depth,  # depth alone
        lambda: 2.0 + rng.random(len(x)),  # nothing
        lambda: 4.0 - 1e-9 * x,  # nearly constant
        lambda: 1e-3 + np.exp(-2.0 * x - 2.0 * x.max()),  # many powers of ten
        lambda: np.round(3.0 + np.exp(-0.3 * x), 1),  # ties
    )
    loss = kinds[rng.integers(len(kinds))]()
    apart = runs.groupby(list(AXES), dropna=False).ngroup().to_numpy() * rng.choice([0.0, 0.01, 0.3])
    noise = rng.choice([0.0, 1e-9, 1e-3, 0.05, 0.5], p=[0.1, 0.1, 0.5, 0.2, 0.1])
    if rng.random() < 0.15:  # seeds that changed nothing, of one vocabulary
        noise = np.where(runs["vocab_size"] == runs["vocab_size"].iloc[0], 0.0, noise)
    loss = loss + apart + noise * rng.standard_normal(len(x))
    if rng.random() < 0.15:  # a run that went wrong
        loss[rng.integers(len(x))] += rng.choice([-1.0, 0.5, 5.0])
    return np.maximum(loss, 1e-6) * rng.choice([1.0, 1.0, 1.0, 1e-9, 1e9])
