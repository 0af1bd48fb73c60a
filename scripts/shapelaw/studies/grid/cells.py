"""Cells: runs that differ in depth, width and seed alone, and in what follows from these by a rule.

Everything else that differs is a cell's name: columns with their values. A cell is what is compared; the depths of one
cell are compared at equal size, and cells that differ in one column give that column's effect.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import infer_dtype

from shapelaw.errors import UserError, nearest
from shapelaw.fits.inputs import numbers_of, require_columns
from shapelaw.report.tables import grouped
from shapelaw.report.write import Table
from shapelaw.specs.kinds import LANGUAGE_METRICS
from shapelaw.specs.runs import AXES, BUDGETS
from shapelaw.specs.shapes import SHAPE_AXES

SHAPE = ("depth", "width", "seed")
SIZES = ("block_params", "total_params", "params", "step_flops")
# columns by which networks are named, in the order of their names
NAMES = tuple(name for name, axis in AXES.items() if axis.splits and name not in SHAPE)
# those that may follow from depth and width; what else differs makes networks that never are one cell
FOLLOWING = tuple(name for name in NAMES if AXES[name].follows)
OF_SHAPE = tuple(name for name in FOLLOWING if name in SHAPE_AXES)
# in a table from elsewhere these make no cells
RECIPE = tuple(name for name in FOLLOWING if name not in SHAPE_AXES)
_LISTED_AS = {name: axis.name for axis in AXES.values() for name in axis.names}
_LISTED_AS |= dict.fromkeys(BUDGETS, "budget")
SHOWN = 5  # values in a sentence


class Best(StrEnum):
    """The value of a column of which each shape has its best."""

    RATES = "best rates"


Value = str | int | float | None


@dataclass(frozen=True)
class Cell:
    """What is compared: runs that differ in depth, width and seed alone.

    Attributes:
        values: what tells it from the other cells, by column; None is an empty value, such as full rank.
        rules: what follows from depth and width, in words: `heads = width / 32`.
        runs: its rows of the table.
    """

    values: Mapping[str, Value]
    rules: tuple[str, ...]
    runs: pd.DataFrame

    @property
    def name(self) -> str:
        """`V = 500, r = 8, H = 2`; of the only cell `all runs`."""
        return name_of(self.values) or "all runs"

    def value(self, name: str) -> Value:
        """The value of a column that all its runs share; None where the table lacks it or it is empty."""
        if name in self.values:
            return self.values[name]
        known = name in self.runs and not _several(self.runs, name)
        return plain(self.runs[name].iloc[0]) if known else None

    def number(self, name: str) -> float:
        """The same where it is a number; infinite for the best of several, and where it is empty."""
        value = self.value(name)
        return float(value) if isinstance(value, int | float) else math.inf


@dataclass(frozen=True)
class Cells:
    """The cells of a table in the order of their values.

    Attributes:
        axes: the columns that tell them apart.
        cells: the cells.
    """

    axes: tuple[str, ...]
    cells: tuple[Cell, ...]

    def name_of(self, kin: Sequence[Cell]) -> str:
        """What some cells share and the others don't all: `V = 257`; else all their names, and of all `all cells`."""
        if len(kin) == len(self.cells):
            return "all cells" if len(kin) > 1 else kin[0].name
        shared = shared_values([cell.values for cell in kin])
        alike = [cell for cell in self.cells if all(cell.values[a] == value for a, value in shared.items())]
        if len(alike) == len(kin):
            return name_of(shared)
        return "; ".join(cell.name for cell in kin)

    def values_of(self, axis: str) -> list[Value]:
        """The values of an axis in their order."""
        return sorted({cell.values[axis] for cell in self.cells}, key=order_of)


def shared_values(every: Sequence[Mapping[str, Value]]) -> dict[str, Value]:
    """The values that several cells share."""
    return {name: value for name, value in every[0].items() if all(one[name] == value for one in every)}


def name_of(values: Mapping[str, Value]) -> str:
    """What some values say, one after another: `V = 500, r = 8, H = 2`."""
    return ", ".join(said(name, value) for name, value in values.items())


def said(name: str, value: Value) -> str:
    """A column's value as it is read: `V = 500`, `full rank`, `4,000 steps`, `rate 0.002`, `llama`."""
    if isinstance(value, Best):
        return value.value
    if name in AXES:
        return AXES[name].said(value)
    return f"no {name}" if value is None else f"{name} = {value}"


def differing_in_one(named: Sequence[Mapping[str, Value]], axis: str) -> list[tuple[int, int]]:
    """The places of all pairs that differ in one column alone, the earlier first, in their order."""
    alike = grouped(
        (tuple(value for name, value in values.items() if name != axis), place)
        for place, values in enumerate(named)
    )
    pairs = (pair for places in alike.values() for pair in combinations(places, 2))
    return sorted((one, other) for one, other in pairs if named[one][axis] != named[other][axis])


def order_of(value: Value) -> tuple[int, float, str]:
    """The key by which values are sorted: numbers, then texts, then an empty one, then the best of all."""
    if isinstance(value, Best):
        return 3, 0.0, value
    if value is None:
        return 2, 0.0, ""
    return (1, 0.0, value) if isinstance(value, str) else (0, float(value), "")


def cells_of(
    table: pd.DataFrame, axes: Sequence[str] | None = None, *, source: str, loss: str = "test_loss"
) -> Cells:
    """The cells of a table of runs.

    Args:
        table: one row a run, with `depth`, `width` and `seed`; other columns by the names of `specs/kinds.py`.
        axes: columns that a grid lists, which split always, rates and steps too. None is a table from elsewhere: a
            column of shape, recipe or corpus splits where it takes several values at one depth and width.
        source: the table's name in messages.
        loss: the column of the loss.

    Raises:
        UserError: an axis is no column; or rates or steps differ at one shape of a table from elsewhere.
    """
    require_columns(table, [*SHAPE, loss], source)
    table = table.assign(**numbers_of(table, ["depth", "width"], source))
    listed = None if axes is None else _listed(table, axes, source)
    table = normalised(table)
    known = [name for name in NAMES if name not in FOLLOWING]
    split = [name for name in dict.fromkeys((*known, *(listed or ()))) if _several(table, name)]
    for name in _to_try(table, split):
        table, split = _with_split(table, split, name)
    parts = _parts(table, split)
    if listed is None:
        _refuse_recipes(parts, source)
    order = tuple(dict.fromkeys(name for name in (*NAMES, *split) if name in split))
    cells = [
        Cell({name: values[name] for name in order}, _rules(rows, split), rows) for values, rows in parts
    ]
    cells.sort(key=lambda cell: [order_of(value) for value in cell.values.values()])
    return Cells(order, tuple(cells))


def normalised(table: pd.DataFrame) -> pd.DataFrame:
    """The table with empty fields that have a default filled, and whole numbers as such."""
    changed: dict[str, pd.Series] = {}
    for name in (name for name in NAMES if name in table):
        axis = AXES[name]
        if axis.kind is int and name in SHAPE_AXES:
            changed[name] = pd.to_numeric(table[name], errors="coerce").astype("Float64")
        if axis.default is not None and not axis.original and axis.default is not ...:
            column = changed.get(name, table[name].astype(object))
            filled = column.where(column.notna(), axis.default)
            changed[name] = filled if axis.kind is int else filled.astype(str)
    if "kv_heads" in changed and "heads" in changed and changed["kv_heads"].notna().any():
        changed["kv_heads"] = changed["kv_heads"].fillna(changed["heads"])
    if "ff_width" in changed and changed["ff_width"].notna().any():
        standard = 4.0 * table["width"]
        if "block" in changed:
            standard = standard.where(changed["block"] != "llama")
        changed["ff_width"] = changed["ff_width"].fillna(standard.astype("Float64"))
    return table.assign(**changed)


def _listed(table: pd.DataFrame, axes: Sequence[str], source: str) -> list[str]:
    """The columns that a grid lists, without those that never split.

    Raises:
        UserError: one is no column of the table, nor one that tables of runs have; or it is measured.
    """
    found = []
    for given in axes:
        name = given if given in table else _LISTED_AS.get(given, given)
        if name in (*SHAPE, *SIZES) or (name in NAMES and name not in table):
            continue  # a table of runs leaves out columns in which all are empty
        if name not in table:
            near = nearest(name, map(str, table.columns))
            hint = f"did you mean {near}?" if near else f"axes are columns such as {', '.join(NAMES[:8])}."
            raise UserError(f"{source} has no column {name}, which is listed as an axis; {hint}")
        if name in {column.name for column in LANGUAGE_METRICS}:
            raise UserError(f"{name} of {source} is measured, so it is no axis.")
        found.append(name)
    return list(dict.fromkeys(found))


def _several(table: pd.DataFrame, name: str) -> bool:
    """Whether a column is there and takes several values."""
    return name in table and bool(table[name].nunique(dropna=False) > 1)


def _to_try(table: pd.DataFrame, split: Sequence[str]) -> list[str]:
    """The columns that may split or follow, in the order in which they are tried.

    Of heads and head dimension the one with fewer values comes first: the other then follows from the width.
    """
    names = [name for name in FOLLOWING if name not in split and _several(table, name)]
    if {"heads", "attention_dim"} <= set(names) and (
        table["attention_dim"].nunique() < table["heads"].nunique()
    ):
        names.remove("attention_dim")
        names.insert(0, "attention_dim")
    return names


def _with_split(table: pd.DataFrame, split: Sequence[str], name: str) -> tuple[pd.DataFrame, list[str]]:
    """The table and its splitting columns with a further one, if it takes several values at one shape of a cell.

    A column that grows with the width at each of its settings splits by its ratio to the width, `ff_width / width`.
    """
    told = table
    if name == "steps" and "budget" in table:  # of a budget they follow
        told = table[table["budget"].isna()]
    inside = told.groupby([*split, "depth", "width"], dropna=False)[name].nunique(dropna=False)
    if inside.empty or inside.max() <= 1:
        return table, list(split)
    if name in OF_SHAPE:
        share = (pd.to_numeric(table[name]) / table["width"]).round(6)
        if share.nunique(dropna=False) < table[name].nunique(dropna=False):
            ratio = f"{name} / width"
            return table.assign(**{ratio: share}), [*split, ratio]
    return table, [*split, name]


def _parts(table: pd.DataFrame, split: Sequence[str]) -> list[tuple[dict[str, Value], pd.DataFrame]]:
    if not split:
        return [({}, table)]
    return [
        ({name: plain(value) for name, value in zip(split, key, strict=True)}, rows)
        for key, rows in table.groupby(list(split), dropna=False, sort=False)
    ]


def plain(value: object) -> Value:
    """A table's value as a plain one: whole numbers are int, missing ones None."""
    if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, str):
        return value
    number = float(value)  # type: ignore[arg-type]
    return int(number) if number.is_integer() else number


def _refuse_recipes(parts: Sequence[tuple[Mapping[str, Value], pd.DataFrame]], source: str) -> None:
    """Refuse rates and steps that split a table from elsewhere.

    Raises:
        UserError: such a column splits; the sentence names a shape, its values, and the way out.
    """
    for name in RECIPE:
        if values := sorted({part[name] for part, _ in parts if name in part}, key=order_of):
            told = [f"{one:g}" if isinstance(one, int | float) else "empty" for one in values[:SHOWN]]
            raise UserError(
                f"{source} has several values of {name} ({', '.join(told)}) at one depth and width, and no other "
                "column explains them; keep the rows of one."
            )


def _rules(rows: pd.DataFrame, split: Sequence[str]) -> tuple[str, ...]:
    """What follows from depth and width in a cell, in words."""
    return tuple(_rule(rows, name) for name in FOLLOWING if name not in split and _several(rows, name))


def _rule(rows: pd.DataFrame, name: str) -> str:
    """How a column follows: in proportion to the width, from the budget, by depth, by width, or by both."""
    values = pd.to_numeric(rows[name], errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    width = rows["width"].to_numpy(dtype=np.float64)
    if np.isfinite(values).all():
        factor = float(values[0] / width[0])
        if np.allclose(values, factor * width, rtol=1e-9):
            part = f"width / {1 / factor:g}" if factor < 1 else f"{factor:g} width"
            return f"{name} = {'width' if factor == 1 else part}"
    if name == "steps":
        if "budget" in rows and rows["budget"].notna().all():
            return "steps follow from the budget"
        if {"batch_size", "context_length", "total_params"} <= {*rows}:
            tokens = values * rows["batch_size"] * rows["context_length"] / rows["total_params"]
            if np.ptp(np.log(tokens)) < 0.02:
                return f"steps = {tokens.median():.3g} tokens per parameter"
    for by in ("depth", "width"):
        groups = rows.groupby(by)[name]
        if groups.nunique(dropna=False).max() == 1:
            if by == "width" or rows[by].nunique() > SHOWN:
                return f"{name} by {by}"
            told = ", ".join(f"{key:g}: {value:g}" for key, value in groups.first().items())
            return f"{name} by depth ({told})"
    return f"{name} by depth and width"


def frame_of(cells: Iterable[tuple[Mapping[str, Value], pd.DataFrame]]) -> pd.DataFrame:
    """Tables of several cells below each other, the values of each in columns before its own."""
    every = list(cells)
    told = [(values, table) for values, table in every if len(table)] or every[:1]
    names = [name for values, _ in every[:1] for name in values]
    whole = pd.concat([table for _, table in told], ignore_index=True)
    of_rows = [values for values, table in told for _ in range(len(table))]
    columns = {name: typed(pd.Series([values[name] for values in of_rows], dtype=object)) for name in names}
    return pd.concat([pd.DataFrame(columns, whole.index), whole], axis=1)


def tables_of_cells(cells: Iterable[tuple[Mapping[str, Value], Mapping[str, Table]]]) -> dict[str, Table]:
    """The tables of several cells below each other, by name; a cell may lack some."""
    parts = grouped((name, (values, table)) for values, tables in cells for name, table in tables.items())
    return {
        name: replace(some[0][1], frame=frame_of((values, table.frame) for values, table in some))
        for name, some in parts.items()
    }


def typed(column: pd.Series) -> pd.Series:
    """A column of plain values with the type that keeps them: Int64 for whole numbers with gaps, else as they are."""
    types: dict[str, Any] = {"integer": "Int64", "floating": "float64", "mixed-integer-float": "float64"}
    return column.astype(types.get(infer_dtype(column, skipna=True), column.dtype))
