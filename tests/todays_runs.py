"""Runs of the study of today's decoder whose transitions are known."""

import loss_surfaces
import pandas as pd

DEPTHS = (4, 8)
NOISE = 0.0005  # nats
CELLS: dict[tuple[str, int, float], float] = {  # block, steps, learning rate: width of the transition
    ("gpt2", 1000, 0.001): 120.0,
    ("gpt2", 1000, 0.002): 120.0,
    ("llama", 1000, 0.001): 240.0,
    ("llama", 1000, 0.002): 120.0,
    ("gpt2", 4000, 0.001): 120.0,
    ("llama", 4000, 0.001): 180.0,
}


def todays_runs(true: dict[tuple[str, int, float], float] = CELLS, seed: int = 0) -> pd.DataFrame:
    """Runs at depths 4 and 8 whose transition is at a width of its own for each block, number of steps and rate.

    The higher rate is better by 0.2 nats for GPT-2's block, the lower one for Llama's.
    """
    tables = []
    for place, ((block, steps, rate), width) in enumerate(true.items()):
        middle = loss_surfaces.size(4, 170)
        widths = loss_surfaces.grid_of(DEPTHS, middle / 9, middle * 9, 9)
        runs = loss_surfaces.simulate(widths, {4: width}, noise=NOISE, seed=seed + place)
        worse = 0.2 if (block == "gpt2") == (rate == 0.001) else 0.0
        runs = runs.rename(columns={"loss": "test_loss"})
        tables.append(
            runs.assign(
                block=None if block == "gpt2" else block,
                steps=steps,
                learning_rate=rate,
                test_loss=runs["test_loss"] + worse,
            )
        )
    return pd.concat(tables, ignore_index=True)
