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
    rng = np.random.default_rng(0)
    rows = []
    for depth, width, head, rank, vocab_size, seed in product(
        depths, widths, heads, ranks, vocab_sizes, range(seeds)
    ):
        loss = loss_of(depth, width, head, rank, vocab_size)
        loss += noise * BYTES[vocab_size] * rng.standard_normal()
        params = 12 * depth * width**2
        rows.append(
            {
                "corpus": "wiki",
                "depth": depth,
                "width": width,
                "heads": head,
                "attention_dim": width // head,
                "vocab_size": vocab_size,
                "embedding_rank": rank,
                "seed": seed,
                "block_params": params,
                "total_params": params + width * (rank or vocab_size),
                "steps": 100,
                "batch_size": 16,
                "context_length": 64,
                "learning_rate": 0.002,
                "test_loss": loss,
                "bits_per_byte": loss / BYTES[vocab_size],
            }
        )
    return pd.DataFrame(rows).astype({"embedding_rank": "Int64"})


@cache
def analysed(**options: Any) -> GridAnalysis:
    """The analysis of such runs, with few draws and no surfaces."""
    return analyse_grid(grid_runs(**options), "x", Options(draws=200), AXES)
