"""Runs of networks whose memorization is known exactly, for the tests of the estimators.

A network memorizes `chance * T + per_head * (min(n, d_h) - 1) * H` of T examples, at most all. Seeds differ by a normal
deviation in proportion to p (1 - p), as measured: `noise` at a share p of one half, none where all is memorized.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

NOISE = 0.02
CHANCE = 0.02


def share(heads: float, context: float, head_dim: float, examples: float, per_head: float) -> float:
    """The expected share before it is cut off at 1."""
    return CHANCE + per_head * (min(context, head_dim) - 1) * heads / examples


def simulate(
    heads: Sequence[int] = (20,),
    context: Sequence[int] = (32,),
    head_dim: Sequence[int] = (64,),
    examples: Sequence[int] = (10000,),
    *,
    per_head: float = 15.0,
    noise: float = NOISE,
    seeds: int = 3,
    seed: int = 0,
    task: str = "classification",
) -> pd.DataFrame:
    """One row per combination and seed, with the columns that the trainer writes."""
    rng = np.random.default_rng(seed)
    rows = []
    for h in heads:
        for n in context:
            for d in head_dim:
                for t in examples:
                    for number in range(seeds):
                        value = min(share(h, n, d, t, per_head), 1.0)
                        value += noise * 4 * value * (1 - value) * rng.standard_normal()
                        value = min(value, 1.0)
                        regression = task == "regression"
                        rows.append(
                            {
                                "task": task,
                                "context_type": "shared",
                                "heads": h,
                                "context": n,
                                "head_dim": d,
                                "value_dim": 64,
                                "width": 64,
                                "classes": None if regression else 100,
                                "examples": t,
                                "seed": number,
                                "accuracy": None if regression else max(value, 0.0),
                                "loss": max(1.0 - value, 1e-5) / 12 if regression else 5 * (1.0 - value),
                            }
                        )
    return pd.DataFrame(rows)
