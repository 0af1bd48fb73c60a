"""A transition for each learning rate and number of steps, and for the best rate of each shape."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from shapelaw.errors import UserError
from shapelaw.fits.inputs import TEXT_AND_BLOCK, check_runs, numbers_of, refuse, refuse_mixed, require_columns
from shapelaw.fits.noise import Noise, group_means, group_noise
from shapelaw.studies.transitions.analysis import Options, TransitionAnalysis, analyse_runs
from shapelaw.studies.transitions.rates import at_best_rates, rate_name

SHAPE = ["depth", "width"]


@dataclass(frozen=True)
class Cell:
    """Networks of one number of steps, at one learning rate or each at its best.

    Attributes:
        steps: optimizer steps.
        learning_rate: peak learning rate; None is the best of each shape.
        runs: checked runs.
        transitions: transition of each pair of adjacent depths, with the curves.
    """

    steps: int
    learning_rate: float | None
    runs: pd.DataFrame
    transitions: TransitionAnalysis

    @property
    def rate_name(self) -> str:
        """`rate 0.002`, `best rates`."""
        return rate_name(self.learning_rate)

    @property
    def name(self) -> str:
        """`4,000 steps, rate 0.002`."""
        return f"{self.steps:,} steps, {self.rate_name}"


@dataclass(frozen=True)
class UndertrainingAnalysis:
    """All cells, by steps and then by rate with the best rates last.

    Attributes:
        cells: the cells.
        best_rates: one row for each shape and number of steps: `steps, depth, width, learning_rate, loss, at_edge`.
        noise: noise from seed to seed, pooled over all cells; None without repeated shapes.
    """

    cells: tuple[Cell, ...]
    best_rates: pd.DataFrame
    noise: Noise | None


def analyse_cells(table: pd.DataFrame, source: str, options: Options) -> UndertrainingAnalysis:
    """A transition for every learning rate and number of steps, and for the best rates.

    The noise is pooled over all cells: each repeats few shapes.

    Raises:
        UserError: the table can't be used.
    """
    require_columns(table, ["steps", "learning_rate"], source)
    refuse_mixed(table, TEXT_AND_BLOCK, source)
    keys = numbers_of(table, ["steps", "learning_rate"], source)
    for name in keys:
        refuse(table, keys[name] <= 0, source, f"{name} must be above zero")
    refuse(table, keys["steps"] % 1 != 0, source, "steps must be a whole number")
    table = table.assign(steps=keys["steps"].astype("int64"), learning_rate=keys["learning_rate"])
    checked: dict[tuple[int, float], pd.DataFrame] = {}
    for steps, rate in sorted(
        set(zip(table["steps"].tolist(), table["learning_rate"].tolist(), strict=True))
    ):
        rows = table[(table["steps"] == steps) & (table["learning_rate"] == rate)]
        where = f"{source} ({steps} steps, rate {rate:g})"
        checked[steps, rate] = check_runs(rows, where, loss=options.loss, size=options.size)
    if not any(runs["depth"].nunique() > 1 for runs in checked.values()):
        raise UserError(
            f"{source} has no learning rate and steps with two depths, so there are no transitions."
        )
    noise = group_noise(
        pd.concat(
            [
                group_means(runs, SHAPE).assign(steps=steps, learning_rate=rate)
                for (steps, rate), runs in checked.items()
            ],
            ignore_index=True,
        )
    )
    cells = [
        Cell(steps, rate, runs, analyse_runs(runs, options, noise)) for (steps, rate), runs in checked.items()
    ]
    found = []
    for steps in sorted({steps for steps, _ in checked}):
        at_rates = {rate: runs for (one, rate), runs in checked.items() if one == steps}
        best = best_rates(at_rates)
        found.append(best.assign(steps=steps))
        runs = at_best_rates(at_rates, best)
        cells.append(Cell(steps, None, runs, analyse_runs(runs, options, noise)))
    cells.sort(key=lambda cell: (cell.steps, cell.learning_rate or math.inf))
    return UndertrainingAnalysis(tuple(cells), pd.concat(found, ignore_index=True), noise)


def best_rates(at_rates: Mapping[float, pd.DataFrame]) -> pd.DataFrame:
    """The rate of least mean loss of each shape that has every rate: `depth, width, learning_rate, loss, at_edge`.

    The rate is chosen on the runs whose losses are then compared: the best losses are a little too low, by less than
    the noise, for every shape alike.

    Args:
        at_rates: checked runs of one number of steps, by learning rate.
    """
    rates = sorted(at_rates)
    tables = [group_means(at_rates[rate], SHAPE).assign(learning_rate=rate) for rate in rates]
    means = pd.concat(tables, ignore_index=True)
    everywhere = means.groupby(SHAPE)["learning_rate"].transform("size") == len(rates)
    least = means[everywhere].sort_values("loss", kind="stable").drop_duplicates(SHAPE).sort_values(SHAPE)
    at_edge = least["learning_rate"].isin([rates[0], rates[-1]])
    return least[[*SHAPE, "learning_rate", "loss"]].assign(at_edge=at_edge)
