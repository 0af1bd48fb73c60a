"""A transition for each learning rate and number of steps, and for the best rate of each shape."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby

import pandas as pd

from shapelaw.fits.inputs import TEXT_AND_BLOCK, refuse_mixed
from shapelaw.studies.grid.analysis import CellAnalysis
from shapelaw.studies.grid.cells import Value, cells_of
from shapelaw.studies.grid.rates import (
    RATE,
    RatesAnalysis,
    analyse_rates,
    best_of_shapes,
    rate_of,
    with_recipe,
)
from shapelaw.studies.transitions.analysis import Options


def analyse_cells(table: pd.DataFrame, source: str, options: Options) -> RatesAnalysis:
    """A transition for every learning rate and number of steps, and for the best rates.

    The noise is pooled over all cells: each repeats few shapes.

    Raises:
        UserError: the table can't be used.
    """
    refuse_mixed(table, TEXT_AND_BLOCK, source)
    cells = cells_of(with_recipe(table, source), ("steps", RATE), source=source, loss=options.loss).cells
    cells = tuple(sorted(cells, key=lambda cell: (cell.number("steps"), cell.number(RATE))))
    series = [
        ({"steps": steps}, list(kin)) for steps, kin in groupby(cells, lambda cell: cell.value("steps"))
    ]
    return analyse_rates(
        series, source, options, best_of_shapes, pool=lambda _: None, what="learning rate and steps"
    )


def named(one: CellAnalysis) -> Mapping[str, Value]:
    """The columns that name a cell in a table."""
    return {"steps": one.cell.value("steps"), RATE: rate_of(one)}


def steps_of(one: CellAnalysis) -> str:
    """`4,000 steps`."""
    return f"{one.cell.value('steps'):,} steps"
