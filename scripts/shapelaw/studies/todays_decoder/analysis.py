"""A transition for each block, scaling, budget and learning rate, and for the best rate of each shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

import pandas as pd

from shapelaw.errors import UserError
from shapelaw.fits.inputs import refuse_mixed
from shapelaw.studies.grid.analysis import CellAnalysis
from shapelaw.studies.grid.cells import Cell, Value, cells_of, order_of, said
from shapelaw.studies.grid.rates import (
    RATE,
    SHAPE,
    RatesAnalysis,
    analyse_rates,
    at_rate,
    best_of_seeds,
    rate_of,
    with_recipe,
)
from shapelaw.studies.transitions.analysis import Options

SERIES = ("block", "base_width", "budget")
# what a budget says of its rate; of a cosine nothing
SCHEDULES = {"constant": ", undecayed", "redecayed": ", re-decayed"}


def analyse_cells(
    table: pd.DataFrame, source: str, options: Options, observed_steps: Sequence[int] = ()
) -> RatesAnalysis:
    """A transition for every block, scaling, budget and learning rate, and for the best rates where there are several.

    The noise of a block is pooled over its cells: each repeats few shapes. Cells come by budget, block and scaling.

    Args:
        observed_steps: steps at which the losses of runs without a cosine count as budgets of their own.

    Raises:
        UserError: the table can't be used.
    """
    table = with_observations(_with_series(table, source), observed_steps, source)
    cells = cells_of(table, (*SERIES, RATE), source=source, loss=options.loss).cells
    fewest: dict[tuple[Value, ...], int] = {}
    for cell in cells:
        series, steps = _series(cell), int(cell.runs["steps"].min())
        fewest[series] = min(steps, fewest.get(series, steps))

    def order(cell: Cell) -> tuple[object, ...]:
        block, base, budget = _series(cell)
        return fewest[block, base, budget], block, base is not None, order_of(base), budget, cell.number(RATE)

    groups = groupby(sorted(cells, key=order), _series)
    series_cells = [(dict(zip(SERIES, values, strict=True)), list(kin)) for values, kin in groups]
    return analyse_rates(
        series_cells,
        source,
        options,
        best_of_seeds,
        pool=lambda cell: cell.value("block"),
        what="block, budget and rate",
        least_rates=2,
    )


def _series(cell: Cell) -> tuple[Value, ...]:
    return tuple(cell.value(name) for name in SERIES)


def scaling_of(one: CellAnalysis) -> str:
    """`one for all widths`, or `scaled from 96`."""
    base = one.cell.value("base_width")
    return "one for all widths" if base is None else said("base_width", base)


def series_of(one: CellAnalysis) -> str:
    """`llama, 4,000 steps`, and the scaling where there is one."""
    scaled = "" if one.cell.value("base_width") is None else f", {scaling_of(one)}"
    return f"{one.cell.value('block')}, {one.cell.value('budget')}{scaled}"


def name_of(one: CellAnalysis) -> str:
    """`llama, 4,000 steps, rate 0.002`."""
    return f"{series_of(one)}, {at_rate(one)}"


def named(one: CellAnalysis) -> Mapping[str, Value]:
    """The columns that name a cell in a table."""
    block, budget = one.cell.value("block"), one.cell.value("budget")
    return {"block": block, "rates": scaling_of(one), "budget": budget, RATE: rate_of(one)}


def is_undecayed(analysis: RatesAnalysis) -> bool:
    """Whether some losses are those of a constant rate, at which no rate had fallen."""
    return any((one.cell.runs["schedule"] == "constant").any() for one in analysis.cells)


def _with_series(table: pd.DataFrame, source: str) -> pd.DataFrame:
    """The runs with their series: an empty budget is so many steps.

    A budget says of a constant rate that it has not fallen (`undecayed`), and of one that fell and rose again before
    each test loss that it did (`re-decayed`).

    Raises:
        UserError: a column is missing, steps or rates are not positive numbers, or there are two parametrizations.
    """
    refuse_mixed(table, ["parametrization"], source)
    table = with_recipe(table, source)
    for name in (*SERIES, "schedule", "observations"):
        if name not in table:
            table[name] = None
    equal_steps = pd.Series([f"{steps:,} steps" for steps in table["steps"]], index=table.index)
    budget = table["budget"].astype(object).where(table["budget"].notna(), equal_steps)
    return table.assign(
        block=table["block"].astype(object).fillna("gpt2"),
        base_width=pd.to_numeric(table["base_width"], errors="coerce").astype("float64"),
        budget=budget + table["schedule"].map(SCHEDULES).fillna(""),
    )


def with_observations(table: pd.DataFrame, observed_steps: Sequence[int], source: str) -> pd.DataFrame:
    """The runs, and a row for each of their test losses at these steps, as a run of that many steps.

    The data and the rate of a step don't depend on how many follow, so two runs of one network have the same loss at
    one step: it is taken once, the end of a run first.

    Raises:
        UserError: an observation can't be read.
    """
    one = [*SERIES, *SHAPE, "learning_rate", "seed"]
    rows = [table]
    for place, run in table[table["observations"].notna()].iterrows():
        try:
            losses = {
                int(step): float(loss) for step, loss in (p.split(":") for p in run["observations"].split())
            }
        except ValueError:
            raise UserError(
                f"{source}, row {int(str(place)) + 1}: observations must be `steps:loss` pairs, such as 4000:2.31."
            ) from None
        for step in sorted(set(observed_steps) & losses.keys() - {run["steps"]}):
            budget = f"{step:,} steps{SCHEDULES.get(run['schedule'], '')}"
            seen = run.to_frame().T.assign(steps=step, test_loss=losses[step], budget=budget)
            rows.append(seen.astype(table.dtypes.to_dict()))
    every = pd.concat(rows, ignore_index=True)
    seen_before = every.duplicated(one) & (every.index >= len(table))
    return every[~seen_before].reset_index(drop=True)
