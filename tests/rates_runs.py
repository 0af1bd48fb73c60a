"""Runs of the studies of several learning rates whose transitions are known."""

from collections.abc import Mapping
from typing import Any

import loss_surfaces
import pandas as pd

DEPTHS = (4, 8)
NOISE = 0.0005  # nats
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


def undertraining_runs(
    true: Mapping[tuple[int, float], float] = UNDERTRAINING, seed: int = 0
) -> pd.DataFrame:
    """Runs at depths 4 and 8 whose transition is at a width of its own for each number of steps and rate.

    The higher rate is better by 0.2 nats at 1,000 steps, the lower one at 4,000.
    """
    return _runs(true, ("steps", "learning_rate"), 1000, seed)


def todays_runs(true: Mapping[tuple[str, int, float], float] = TODAYS, seed: int = 0) -> pd.DataFrame:
    """The same for each block, number of steps and rate; of GPT-2's the block is empty.

    The higher rate is better by 0.2 nats for GPT-2's block, the lower one for Llama's.
    """
    runs = _runs(true, ("block", "steps", "learning_rate"), "gpt2", seed)
    return runs.assign(block=runs["block"].astype(object).replace("gpt2", None))


def _runs(true: Mapping[Any, float], names: tuple[str, ...], fast: object, seed: int) -> pd.DataFrame:
    """Runs whose first field is `fast` are better at the higher rate, the others at the lower one."""
    middle, tables = loss_surfaces.size(4, 170), []
    widths = loss_surfaces.grid_of(DEPTHS, middle / 9, middle * 9, 9)
    for place, (key, width) in enumerate(true.items()):
        runs = loss_surfaces.simulate(widths, {4: width}, noise=NOISE, seed=seed + place)
        worse = 0.2 if (key[0] == fast) == (key[-1] == 0.001) else 0.0
        runs = runs.rename(columns={"loss": "test_loss"}).assign(**dict(zip(names, key, strict=True)))
        tables.append(runs.assign(test_loss=runs["test_loss"] + worse))
    return pd.concat(tables, ignore_index=True)
