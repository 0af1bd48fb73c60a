"""The runs of a table that a study compares: those that finished with a loss, without those that diverged.

One rule for a study's own table and for one that somebody else made.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd
from pandas.api.types import is_numeric_dtype

from shapelaw.errors import UserError
from shapelaw.fits.comparable import SHAPE as OF_SHAPE
from shapelaw.fits.comparable import off_neighbours, off_surfaces, off_twins
from shapelaw.fits.inputs import read_table, rows_named
from shapelaw.specs import kinds
from shapelaw.studies.grid.cells import SHAPE, Cell, cells_of

DIVERGED = kinds.DIVERGED.name
# words of MLflow, W&B, Ray, Optuna, ClearML, SageMaker, Kubernetes and Slurm; those that two of them mean otherwise
# (`terminated`, `inactive`, `stopped`) are asked about
FINISHED = (
    *("finished", "completed", "complete", "done", "success", "succeeded", "ok", "true", "yes"),
    "published",
)
UNFINISHED = (
    *("running", "crashed", "failed", "fail", "killed", "pending", "preempted", "cancelled", "canceled"),
    *("aborted", "error", "timeout", "false", "no", "scheduled", "queued", "waiting", "paused", "pruned"),
    *("created", "in_progress", "inprogress", "stopping", "completing", "node_fail", "out_of_memory"),
    *("boot_fail", "deadline"),
)
ENDED = {"1": "true", "1.0": "true", "0": "false", "0.0": "false"}  # in a column that is called so
NOT_FINITE = "with a loss that is not finite"


@dataclass(frozen=True)
class StudyRuns:
    """The table of a study's runs that can be used, its name, and sentences that name the runs that were left out."""

    table: pd.DataFrame
    source: str
    notes: tuple[str, ...]


def study_runs(path: Path, keep: bool = False, loss: str = "test_loss") -> StudyRuns:
    """A study's table of shapes, without the runs that did not finish, have no finite loss, or diverged.

    A run diverged if it lies far off other seeds of its shape, or far above its neighbours in size, in its cell
    (`fits/comparable.py`).

    Args:
        keep: runs that did not finish or diverged count too, where they have a finite loss.
        loss: the column to compare.

    Raises:
        UserError: the table can't be read, no run can be used, or it can't be told what differs between the runs.
    """
    table, notes = finished(_read(path), [loss], str(path), keep)
    numbers = [name for name in (*SHAPE, loss) if name in table and is_numeric_dtype(table[name])]
    if len(numbers) > len(SHAPE) and table[["depth", "width", loss]].gt(0).all(axis=None):
        cells = cells_of(table, (), source=str(path), loss=loss).cells
        kept = [name for cell in without_diverged(cells, notes, keep, loss) for name in cell.runs.index]
        table = table[table.index.isin(kept)]
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
    table = read_table(path)
    if "key" in table and table["key"].notna().all() and table["key"].is_unique:
        table.index = pd.Index(table["key"].astype(str), name=None)
    return table


def finished(
    table: pd.DataFrame, measures: Sequence[str], source: str, keep: bool = False
) -> tuple[pd.DataFrame, list[str]]:
    """The rows that finished with a finite measure, and sentences that name the others.

    Args:
        measures: columns of which a run has one at least.
        keep: runs that did not finish count too; those that diverged never do.

    Raises:
        UserError: there is none.
    """
    notes: list[str] = []
    if DIVERGED not in measures:
        table = without_told_diverged(table, notes)
    table = without_unfinished(table, "status", keep, notes, source, "status")
    if there := [name for name in measures if name in table]:
        table = without(table, table[there].apply(empty).all(axis=1), "without a loss", notes)
        table = without(table, table[there].apply(infinite).all(axis=1), NOT_FINITE, notes)
    refuse_none(table, source, notes)
    return table, notes


def without_told_diverged(table: pd.DataFrame, notes: list[str]) -> pd.DataFrame:
    """The rows that no column says diverged; the others are named."""
    if DIVERGED not in table or not (lost := table[DIVERGED].notna()).any():
        return table
    are = "is" if lost.sum() == 1 else "are"
    notes.append(f"{lost.sum()} of {len(table)} diverged and {are} left out: {rows_named(table.index[lost])}")
    return table[~lost]


def without_unfinished(
    table: pd.DataFrame, state: str, keep: bool, notes: list[str], source: str, called: str
) -> pd.DataFrame:
    """The rows of finished runs, where a column says which are; the others are named.

    Args:
        state: the column.
        keep: all runs count.
        source, called: the table's name and the column's own, for messages.

    Raises:
        UserError: it has several words, of which some are not known.
    """
    if state not in table or keep:
        return table
    words = table[state].astype(str).str.strip().str.lower().str.removeprefix("trialstate.")
    words = words.str.replace(r"^(cancelled) by .*", r"\1", regex=True)  # Slurm's
    if "finish" in called.lower() or "complete" in called.lower():
        words = words.replace(ENDED)
    there = table[state].notna()
    unknown = there & ~words.isin((*FINISHED, *UNFINISHED))
    if unknown.any():
        if words[there].nunique() == 1:
            return table  # it tells no run from another
        said = ", ".join(sorted(set(table[state][there].astype(str))))
        word = table[state][unknown].iloc[0]
        raise UserError(
            f"{source}: the column {called!r} says {said}, and it isn't known whether a run that is {word!r} finished; "
            f"count the runs of one word (--only {called}={word}), or all of them (--keep)."
        )
    return without(table, there & ~words.isin(FINISHED), "that did not finish", notes)


def without(table: pd.DataFrame, rows: pd.Series[bool], which: str, notes: list[str]) -> pd.DataFrame:
    """The table without some rows, which are named."""
    if rows.any():
        notes.append(left_out(table.index[rows], which))
    return table[~rows]


def empty(column: pd.Series) -> pd.Series[bool]:
    """True where a cell has nothing."""
    return column.isna() | (column.astype(str).str.strip() == "")


def infinite(column: pd.Series) -> pd.Series[bool]:
    """True where a number is infinite."""
    return pd.to_numeric(column, errors="coerce").abs() == math.inf


def refuse_none(table: pd.DataFrame, source: str, notes: Sequence[str]) -> None:
    """Refuse a table of which no row is left.

    Raises:
        UserError: it has none; the message has the notes.
    """
    if table.empty:
        raise UserError(f"{source} has no run that can be used: {'; '.join(notes)}.")


def left_out(index: pd.Index, which: str) -> str:
    """A sentence without its full stop that names the runs that don't count: `2 runs without a loss are left out`."""
    runs, are = ("run", "is") if len(index) == 1 else ("runs", "are")
    return f"{len(index)} {runs} {which} {are} left out: {rows_named(index)}"


def sentences_of(source: str, notes: Sequence[str]) -> tuple[str, ...]:
    """Notes on how a table was read, as sentences."""
    return tuple(f"Read from {source}: {note}." for note in notes)


FAR = "far off every surface through the losses of the other shapes"
OFF_TWINS = "more than 6 robust deviations off other seeds of their shape"
WORSE = "the worse of two seeds, more than 6 robust deviations above their neighbours in size too"
ABOVE = "more than 6 robust deviations above both neighbours in size at their depth"
TWO = (
    "the only two seeds of their shape, more than 6 robust deviations apart: either can be off, so both count"
)
OFF_CURVE = "off the curve of their depth, and kept"


def without_diverged(cells: Sequence[Cell], notes: list[str], keep: bool, loss: str = "loss") -> list[Cell]:
    """The cells without the runs that diverged, which are named; with `keep` they are named alone."""
    kept, rows = [], dict[str, list[pd.Index]]()
    for cell in cells:
        left, off = _diverged(cell.runs.assign(loss=cell.runs[loss]))
        kept.append(cell if keep else replace(cell, runs=cell.runs.loc[left]))
        for why, of in off.items():
            rows.setdefault(why, []).append(of)
    for why in (FAR, OFF_TWINS, WORSE, ABOVE, TWO, OFF_CURVE):
        index = pd.Index([row for of in rows.get(why, ()) for row in of])
        if index.empty:
            continue
        if why in (TWO, OFF_CURVE):
            notes.append(f"{why}: {rows_named(index)}")
        elif keep:
            notes.append(f"kept, although {why}: {rows_named(index)}")
        else:
            notes.append(left_out(index, why) + " (--keep keeps them)")
    return kept


def _diverged(runs: pd.DataFrame) -> tuple[pd.Index, dict[str, pd.Index]]:
    """The rows of a cell that did not diverge, and by what is said of them those that did or may have.

    Two seeds that are as far apart stay, and their noise counts: nobody can say which of them is off, unless the worse
    one lies far above its neighbours in size.
    """
    far = off_surfaces(runs)
    left = runs[~far]
    twins, pairs = off_twins(left)
    better = pairs & (left["loss"] == left.groupby(OF_SHAPE)["loss"].transform("min"))
    worse = off_neighbours(left[~twins & ~better])[0].reindex(left.index, fill_value=False) & pairs
    pairs &= ~worse.groupby([left[name] for name in OF_SHAPE]).transform("any")
    left = left[~twins & ~worse]
    above, _ = off_neighbours(left)
    left = left[~above]
    _, out = off_neighbours(left)
    of = {FAR: far, OFF_TWINS: twins, WORSE: worse, ABOVE: above, TWO: pairs, OFF_CURVE: out}
    return left.index, {why: rows.index[rows] for why, rows in of.items()}


def diverged_in(path: Path | None) -> str:
    """How many runs of a table diverged, a clause; empty where none did, or where there is no table."""
    if path is None or not path.is_file():
        return ""
    table = read_table(path)
    lost = int(table[DIVERGED].notna().sum()) if DIVERGED in table else 0
    return f"{lost} of {len(table)} runs of {path} diverged" if lost else ""
