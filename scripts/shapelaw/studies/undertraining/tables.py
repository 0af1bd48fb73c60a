"""The tables of the study of undertraining."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from shapelaw.studies.transitions.ratios import ratio_of
from shapelaw.studies.transitions.tables import gaps_table as gaps_of_runs
from shapelaw.studies.transitions.tables import mean_losses, stacked
from shapelaw.studies.undertraining.analysis import SHAPE, Cell, UndertrainingAnalysis


def _named(cell: Cell, table: pd.DataFrame) -> pd.DataFrame:
    table = table.copy()
    table.insert(0, "steps", cell.steps)
    table.insert(1, "learning_rate", cell.rate_name.removeprefix("rate "))
    return table


def transitions_table(analysis: UndertrainingAnalysis) -> pd.DataFrame:
    """The transitions of each learning rate and number of steps, by the bootstrap and by the paper's rule."""
    return pd.concat(
        [_named(cell, cell.transitions.transitions) for cell in analysis.cells], ignore_index=True
    )


def size_axes_table(analysis: UndertrainingAnalysis) -> pd.DataFrame:
    """The bootstrap's transitions on every size axis."""
    tables = [
        _named(cell, cell.transitions.runs.size_axes) for cell in analysis.cells if cell.transitions.runs
    ]
    return pd.concat(tables, ignore_index=True)


def gaps_table(analysis: UndertrainingAnalysis) -> pd.DataFrame:
    """How much better the deeper network is at equal size, size by size, for each rate and number of steps."""
    return stacked(
        _named(cell, gaps_of_runs(cell.transitions.runs)) for cell in analysis.cells if cell.transitions.runs
    )


def ratios_table(analysis: UndertrainingAnalysis) -> pd.DataFrame:
    """The transition's width at the most steps over that at the fewest, for each rate that both have.

    The 68% interval takes both widths as log-normal and independent; `p_equal` is the chance of a ratio as far from 1
    where the steps don't matter.
    """
    by_rate: dict[float | None, list[Cell]] = {}
    for cell in analysis.cells:
        by_rate.setdefault(cell.learning_rate, []).append(cell)
    rows = []
    for cells in by_rate.values():
        few, many = cells[0], cells[-1]
        if few is many:
            continue
        for one, other in zip(few.transitions.bootstrap_rows, many.transitions.bootstrap_rows, strict=False):
            row: dict[str, Any] = {
                "learning_rate": few.rate_name.removeprefix("rate "),
                "depth": one["depth"],
                "deeper_depth": one["deeper_depth"],
                "few_steps": few.steps,
                "many_steps": many.steps,
                "width_few": one["width"],
                "width_many": other["width"],
                **ratio_of(one, other),
            }
            rows.append(row)
    return pd.DataFrame(rows)


def best_rates_table(analysis: UndertrainingAnalysis) -> pd.DataFrame:
    """The best learning rate of each shape, and whether it is the lowest or the highest that was tried."""
    columns = ["steps", *SHAPE, "learning_rate", "loss", "at_edge"]
    return analysis.best_rates[columns].rename(columns={"loss": "test_loss"})


def losses_table(analysis: UndertrainingAnalysis) -> pd.DataFrame:
    """One row for each network, steps and rate: mean test loss and number of seeds."""
    tables = []
    for cell in analysis.cells:
        if cell.learning_rate is not None:
            tables.append(_named(cell, mean_losses(cell.runs)))
    return pd.concat(tables, ignore_index=True)


def seed_noise_table(analysis: UndertrainingAnalysis) -> pd.DataFrame:
    """Mean and standard deviation of the loss of every repeated shape, and the pooled one, which every cell uses."""
    tables = []
    for cell in analysis.cells:
        runs = cell.transitions.runs
        if cell.learning_rate is not None and runs is not None:
            tables.append(_named(cell, runs.seed_noise[runs.seed_noise["seeds"] > 1]))
    repeated = pd.concat(tables, ignore_index=True).astype(
        {"steps": object, "depth": object, "width": object}
    )
    pooled = dict.fromkeys(("learning_rate", "depth", "width"), "") | {
        "steps": "pooled",
        "seeds": int(repeated["seeds"].sum()),
        "loss_mean": math.nan,
        "loss_std": math.nan if analysis.noise is None else analysis.noise.std,
    }
    return pd.concat([repeated, pd.DataFrame([pooled])], ignore_index=True)
