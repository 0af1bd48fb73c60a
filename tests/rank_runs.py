"""Runs of the study of the embedding's rank whose redundancies are known."""

import numpy as np
import pandas as pd
from run_rows import run_row

from shapelaw.specs.making import make_shape

TRUE = {4: 0.30, 8: 0.2, 16: 0.10, 32: 0.0, 64: 0.0}  # redundancy in blocks, by rank


def law(size: np.ndarray | float) -> np.ndarray:
    return np.asarray(3.0 + 9.0 * np.asarray(size, dtype=np.float64) ** -0.2)


def rank_runs(noise: float = 0.001, seeds: int = 3) -> pd.DataFrame:
    """Runs at depth 6 and width 128 whose low ranks cost what `TRUE` says."""
    rng, rows = np.random.default_rng(0), []
    shapes = [(make_shape(6, width, 2, 500, 64), 0.0) for width in (80, 96, 104, 112, 120, 128, 136)]
    shapes += [
        (make_shape(6, 128, 2, 500, 64, embedding_rank=rank, positional_rank=rank), wasted)
        for rank, wasted in TRUE.items()
    ]
    for shape, wasted in shapes:
        for seed in range(seeds):
            loss = float(law(shape.block_params * (1 - wasted))) + noise * rng.standard_normal()
            rows.append(run_row(shape, seed, loss, "embedding_rank", "positional_rank"))
    return pd.DataFrame(rows)
