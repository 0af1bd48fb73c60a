"""Losses like those of public evidence, whose best depths are known."""

import math

import numpy as np
import pandas as pd

from shapelaw.advice.evidence.fit import SETS

# the depths and widths of Gemstones
SHAPES = [
    *(
        (23, 256),
        (3, 768),
        (27, 256),
        (13, 384),
        (11, 512),
        (12, 512),
        (13, 512),
        (14, 512),
        (16, 512),
        (71, 256),
    ),
    *((36, 384), (80, 256), (7, 1792), (15, 1280), (45, 768), (28, 1024), (8, 2560), (18, 1792), (36, 1280)),
    *((12, 3072), (27, 2048), (50, 1536)),
]
SERIES = [name for names in SETS.values() for name in names]


def best_at(size: float) -> float:
    """The log depth that is best in the made losses."""
    return math.log(22.0) + 0.35 * math.log(size / 4e8)


def made_table(
    scatter: float, seed: int = 0, budgets: tuple[float, ...] = (1e10, 3e10, 1e11)
) -> pd.DataFrame:
    """Losses with a ridge and a penalty of 0.03 t² nats; each shape is off by a number of its own at all budgets."""
    rng = np.random.default_rng(seed)
    rows = []
    for depth, width in SHAPES:
        size = 15.0 * depth * width**2
        off = scatter * rng.standard_normal()
        for tokens in budgets:
            loss = 2.5 + 0.6 * (size / 4e8) ** -0.18 * (tokens / 3e10) ** 0.05 + 0.3 * (tokens / 3e10) ** -0.4
            loss += 0.03 * (math.log(depth) - best_at(size)) ** 2 + off
            for series in SERIES:
                rows.append(
                    {
                        "depth": depth,
                        "width": width,
                        "block_params": size,
                        "total_params": size + 2 * 50304 * width,
                        "tokens": tokens,
                        "loss": loss,
                        "series": series,
                    }
                )
    return pd.DataFrame(rows)
