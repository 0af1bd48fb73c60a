"""Runs of the study of undertraining whose transitions are known."""

import loss_surfaces
import pandas as pd

DEPTHS = (4, 8)
NOISE = 0.0005  # nats
CELLS: dict[tuple[int, float], float] = {  # steps, learning rate: width of the transition
    (1000, 0.001): 120.0,
    (1000, 0.002): 120.0,
    (4000, 0.001): 240.0,
    (4000, 0.002): 120.0,
}


def undertraining_runs(true: dict[tuple[int, float], float] = CELLS, seed: int = 0) -> pd.DataFrame:
    """Runs at depths 4 and 8 whose transition is at a width of its own for each number of steps and rate.

    The higher rate is better by 0.2 nats at 1,000 steps, the lower one at 4,000.
    """
    tables = []
    for place, ((steps, rate), width) in enumerate(true.items()):
        middle = loss_surfaces.size(4, 170)
        widths = loss_surfaces.grid_of(DEPTHS, middle / 9, middle * 9, 9)
        runs = loss_surfaces.simulate(widths, {4: width}, noise=NOISE, seed=seed + place)
        worse = 0.2 if (steps == 1000) == (rate == 0.001) else 0.0
        tables.append(
            runs.rename(columns={"loss": "test_loss"}).assign(
                steps=steps,
                learning_rate=rate,
                test_loss=lambda table, worse=worse: table["test_loss"] + worse,
            )
        )
    return pd.concat(tables, ignore_index=True)
