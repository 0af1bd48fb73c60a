"""Runs of the degree study whose best rates and losses are known."""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from shapelaw.studies.block_degree.analysis import Tuned, check_runs, tune

TRUE_LOSS = {1: 0.4, 2: 0.25, 3: 0.1, 4: 0.1}
BEST_RATE = {1: 1e-2, 2: 3e-3, 3: 3e-3, 4: 1e-3}


def separable(rows: Sequence[tuple[int, str, float, int, float]]) -> pd.DataFrame:
    """Runs on separable targets by the target's rank, degrees, learning rate, seed and loss."""
    runs = pd.DataFrame(rows, columns=["target_rank", "degrees", "learning_rate", "seed", "loss"])
    return runs.assign(target="separable", mixture="False", inputs=16, width=32, steps=1000)


def table(seeds: int = 5, noise: float = 0.05) -> pd.DataFrame:
    """Runs of degrees 1 to 4: degree 3 and 4 equally good, each degree with its own best rate."""
    random = np.random.default_rng(0)
    rows = []
    for rank in (2, 8):
        for degree, loss in TRUE_LOSS.items():
            for rate in (1e-3, 3e-3, 1e-2):
                off = abs(math.log(rate / BEST_RATE[degree]))
                for seed in range(seeds):
                    value = loss * rank**0.3 * math.exp(0.5 * off + noise * random.standard_normal())
                    rows.append((rank, ".".join([str(degree)] * (12 // degree)), rate, seed, value))
    runs = separable(rows)
    late = (500.0 * runs["loss"]).where(runs["loss"] < 0.2)
    return runs.assign(**{"steps_to_0.5": 100.0 * runs["loss"], "steps_to_0.2": late})


def tuned_of(runs: pd.DataFrame) -> list[Tuned]:
    """Checked and tuned."""
    return tune(check_runs(runs, "runs"))


def digits(width: int) -> pd.DataFrame:
    """Runs on digits, at the rates of `table`."""
    runs = table(seeds=3)
    return runs[runs["target_rank"] == 2].assign(target="digits", target_rank=0, inputs=64, width=width)


def with_mixtures() -> pd.DataFrame:
    """The runs of `table`, and two mixtures: one that stays near 2.5, and one that settles at e from 2.9."""
    runs = table()
    mixed = runs[runs["degrees"] == "3.3.3.3"].copy()
    mixed["mixture"] = "True"
    mixed["mean_degree"] = 2.5 + 0.01 * mixed["seed"]
    high = mixed.assign(initial_share=0.9, mean_degree=math.e + 0.01 * (mixed["seed"] - 2))
    return pd.concat([runs, mixed, high])
