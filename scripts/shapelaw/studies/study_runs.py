"""The runs of a table that a study compares: those that finished with a loss, without those that diverged.

One rule for a study's own table and for one that somebody else made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd
from pandas.api.types import is_numeric_dtype

from shapelaw.fits.comparable import off_neighbours, off_twins
from shapelaw.fits.exports import read_runs
from shapelaw.fits.inputs import rows_named
from shapelaw.fits.own_runs import DIVERGED, finished, left_out
from shapelaw.fits.run_columns import named_as_ours
from shapelaw.studies.grid.cells import SHAPE, Cell, cells_of


@dataclass(frozen=True)
class StudyRuns:
    """The table of a study's runs that can be used, its name, and sentences that name the runs that were left out."""

    table: pd.DataFrame
    source: str
    notes: tuple[str, ...]


def study_runs(path: Path, keep: bool = False, loss: str = "test_loss") -> StudyRuns:
    """A study's table of shapes, without the runs that did not finish, have no finite loss, or diverged.

    A run diverged if it lies far off other seeds of its shape, or far above its neighbours in size, in its cell
    (`fits/comparable.py`). Columns have our names where the table has other usual ones.

    Args:
        keep: runs that did not finish or diverged count too, where they have a finite loss.
        loss: the column to compare.

    Raises:
        UserError: the table can't be read, no run can be used, or it can't be told what differs between the runs.
    """
    table, notes = finished(named_as_ours(_read(path)), [loss], str(path), keep)
    numbers = [name for name in (*SHAPE, loss) if name in table and is_numeric_dtype(table[name])]
    if len(numbers) > len(SHAPE) and table[["depth", "width", loss]].gt(0).all(axis=None):
        cells = cells_of(table, (), source=str(path), loss=loss).cells
        kept = [without_diverged(cell, notes, keep, loss).runs.index for cell in cells]
        table = table[table.index.isin([name for index in kept for name in index])]
    return StudyRuns(table, str(path), sentences_of(str(path), notes))


def measured_runs(path: Path, keep: bool, measures: Sequence[str]) -> StudyRuns:
    """A study's table of other runs, without those that did not finish or have none of the measures.

    Raises:
        UserError: the table can't be read, or no run can be used.
    """
    table, notes = finished(_read(path), measures, str(path), keep)
    return StudyRuns(table, str(path), sentences_of(str(path), notes))


def _read(path: Path) -> pd.DataFrame:
    """A table of runs whose rows are named by their keys, or by their lines."""
    table = read_runs(path)
    if "key" in table and table["key"].notna().all() and table["key"].is_unique:
        table.index = pd.Index(table["key"].astype(str), name=None)
    return table


def sentences_of(source: str, notes: Sequence[str]) -> tuple[str, ...]:
    """Notes on how a table was read, as sentences."""
    return tuple(f"Read from {source}: {note}." for note in notes)


def without_diverged(cell: Cell, notes: list[str], keep: bool, loss: str = "loss") -> Cell:
    """The cell without the runs that diverged, which are named; with `keep` they are named alone."""
    runs = cell.runs.assign(loss=cell.runs[loss])
    twins = off_twins(runs)
    above, _ = off_neighbours(runs[~twins])
    _, out = off_neighbours(runs[~twins][~above])
    for rows, where in (
        (twins, "more than 6 robust deviations off other seeds of their shape"),
        (above, "more than 6 robust deviations above both neighbours in size at their depth"),
    ):
        index = rows.index[rows]
        if len(index) and keep:
            notes.append(f"kept, although {where}: {rows_named(index)}")
        elif len(index):
            notes.append(left_out(index, where) + " (--keep keeps them)")
    if out.any():
        notes.append(f"off the curve of their depth, and kept: {rows_named(out.index[out])}")
    left = runs.index[twins].union(above.index[above])
    return cell if keep else replace(cell, runs=cell.runs.drop(index=left))


def diverged_in(path: Path | None) -> str:
    """How many runs of a table diverged, a clause; empty where none did, or where there is no table."""
    if path is None or not path.is_file():
        return ""
    table = read_runs(path)
    lost = int(table[DIVERGED].notna().sum()) if DIVERGED in table else 0
    return f"{lost} of {len(table)} runs of {path} diverged" if lost else ""
