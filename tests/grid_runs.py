"""Runs of a grid whose effects are known exactly."""

from collections.abc import Sequence
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from shapelaw.studies.grid.analysis import GridAnalysis, analyse_grid
from shapelaw.studies.transitions.analysis import Options

AXES = ("heads", "embedding_rank", "vocab_size")
HEADS_COST = 0.01  # nats for every doubling of the heads
RANK_COST = 0.1  # nats of rank 8
BYTES = {257: 1.0, 500: 1.8}  # bytes of a token


def loss_of(depth: int, width: int, heads: int, rank: int | None, vocab_size: int) -> float:
    """Linear in log size within a depth, so that interpolation is exact."""
    loss = 4.0 - 0.2 * float(np.log(12 * depth * width**2 / 1e4)) + 0.05 * depth
    loss += HEADS_COST * float(np.log2(heads)) + (RANK_COST if rank else 0.0)
    return loss * BYTES[vocab_size]


def grid_runs(
    depths: Sequence[int] = (1, 2),
    widths: Sequence[int] = (16, 32, 48),
    heads: Sequence[int] = (1, 2, 4),
    ranks: Sequence[int | None] = (8, None),
    vocab_sizes: Sequence[int] = (257, 500),
    seeds: int = 1,
    noise: float = 0.0,
) -> pd.DataFrame:
    """Every combination, with a noise of its own for every run."""
    rng, rows = np.random.default_rng(0), []
    for *network, seed in product(depths, widths, heads, ranks, vocab_sizes, range(seeds)):
        drawn = noise * BYTES[network[-1]] * rng.standard_normal()
        rows.append((*network, seed, loss_of(*network) + drawn))
    names = ["depth", "width", "heads", "embedding_rank", "vocab_size", "seed", "test_loss"]
    runs = pd.DataFrame(rows, columns=names).astype({"embedding_rank": "Int64"})
    params = 12 * runs["depth"] * runs["width"] ** 2
    embedding = runs["width"] * runs["embedding_rank"].fillna(runs["vocab_size"])
    return runs.assign(
        corpus="wiki",
        attention_dim=runs["width"] // runs["heads"],
        block_params=params,
        total_params=params + embedding.astype("int64"),
        bits_per_byte=runs["test_loss"] / runs["vocab_size"].map(BYTES),
        steps=100,
        batch_size=16,
        context_length=64,
        learning_rate=0.002,
    )


@cache
def analysed(**options: Any) -> GridAnalysis:
    """The analysis of such runs, with few draws and no surfaces."""
    return analyse_grid(grid_runs(**options), "x", Options(draws=200), AXES)
