"""A file of runs, or a folder of CSV exports of Weights & Biases, as one table whose index says where a row stands.

Charts beside tables of runs add the last value of each run, and the step of it in a column of its own. A loss that a
text file calls NaN is infinite here, so that a run that diverged differs from one that logged nothing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path

import numpy as np
import pandas as pd

from shapelaw.errors import UserError
from shapelaw.fits.inputs import READERS, csv_cells, read_table

TEXT = (".csv", ".tsv", ".txt")
NOT_FINITE = ("nan", "-nan", "inf", "-inf", "infinity", "-infinity", "+inf")
# the columns by which charts name their runs
NAMES = ("Name", "ID", "name", "id", "run_id", "Run ID", "run")
AXES = ("step", "global_step", "trainer/global_step", "train/global_step", "wall time", "epoch")
RELATIVE = "relative time"
TIMES = ("wall time", "timestamp", "runtime")  # axes on which two runs never end at the same place
BANDS = ("__MIN", "__MAX")  # a chart's smoothing has these beside each curve
BETWEEN = " - "  # of a run's name and its metric, in a chart's header
LAST = " (last step)"  # after a metric: the step of its last value
SHOWN = 5


def read_runs(path: Path) -> pd.DataFrame:
    """The rows of a file, or of all tables of a folder, named by their lines or by their runs.

    Raises:
        UserError: a file can't be read; a folder has no table of runs, or a chart whose runs can't be told.
    """
    return read_exports(path) if path.is_dir() else _read_file(path)


def _read_file(path: Path) -> pd.DataFrame:
    table = read_table(path)
    if path.suffix.lower() not in TEXT:
        return table
    _, rows, lines, _ = csv_cells(path)
    table.index = pd.Index([f"line {line}" for line in lines], dtype=object)
    for at, name in enumerate(table.columns):
        numbers = pd.to_numeric(table[name], errors="coerce")
        named = np.array([row[at].strip().lower() in NOT_FINITE for row in rows])
        if named.any() and numbers.notna().any():
            table[name] = table[name].where(~named, math.inf)
    return table


def read_exports(folder: Path) -> pd.DataFrame:
    """All runs of a folder's tables, one row each; charts add their last values, joined by name or id.

    Raises:
        UserError: the folder has no table of runs; a file can't be read; a chart's runs are in none of the tables, or
            several have one name.
    """
    paths = sorted(path for path in folder.iterdir() if path.suffix.lower() in READERS)
    if not paths:
        raise UserError(f"{folder} has no tables; it must hold .csv files (or .tsv, .jsonl, .parquet).")
    charts, tables = {}, []
    for path in paths:
        header, rows = _cells(path)
        if _is_chart(header):
            charts[path] = header, rows
        else:
            table = _read_file(path)
            table.index = pd.Index([f"{path.name} {where}" for where in table.index], dtype=object)
            tables.append(table)
    if not tables:
        raise UserError(
            f"{folder} has charts only, which lack the shapes; add the table of runs with depth and width as columns "
            "(in W&B: Runs, then Export as CSV)."
        )
    joined = pd.concat(tables)
    for path, (header, rows) in charts.items():
        joined = _with_last_values(joined, header, rows, path)
    names = next((joined[name].astype(str) for name in NAMES if name in joined), joined.index)
    return joined.set_axis(told_apart([*names], joined.index))


def told_apart(names: Sequence[str], others: Iterable[str]) -> pd.Index:
    """Names of rows, each with its other name behind it where several have the same one."""
    counts = Counter(names)
    pairs = zip(names, others, strict=True)
    return pd.Index(
        [name if counts[name] == 1 else f"{name} ({other})" for name, other in pairs], dtype=object
    )


def _cells(path: Path) -> tuple[list[str], list[list[str]]]:
    """The header and the rows of a table as text, an absent value as nothing."""
    if path.suffix.lower() in TEXT:
        try:
            header, rows, _, _ = csv_cells(path)
        except (OSError, ValueError):
            header, rows = [], []  # read_table says it
    else:
        table = read_table(path)
        header = [str(name) for name in table.columns]
        rows = [["" if pd.isna(cell) else str(cell) for cell in row] for row in table.to_numpy(dtype=object)]
    if header and header[0].strip() in ("", "Unnamed: 0"):  # an index that pandas wrote
        header, rows = header[1:], [row[1:] for row in rows]
    return header, rows


def _is_chart(header: Sequence[str]) -> bool:
    """True of a table whose columns are curves over its first one."""
    axis = _axis(header)
    curves = len(header) > 1 and all(BETWEEN in name for name in header[1:])
    return curves or axis in AXES or axis.startswith(RELATIVE)


def _axis(header: Sequence[str]) -> str:
    return header[0].strip().lower().lstrip("_") if header else ""


def _with_last_values(
    runs: pd.DataFrame, header: Sequence[str], rows: Sequence[Sequence[str]], path: Path
) -> pd.DataFrame:
    """The runs with the value and the step of the last point of each curve; of several charts of a metric the later."""
    axis = _axis(header)
    timed = axis in TIMES or axis.startswith(RELATIVE)
    if not any(math.isnan(_number(row[0])) for row in rows):
        rows = sorted(rows, key=lambda row: _number(row[0]))
    last: dict[str, list[tuple[str, float, float]]] = {}
    for at, column in enumerate(header[1:], start=1):
        run, found, metric = column.rpartition(BETWEEN)
        logged = [(row[0], row[at]) for row in rows if row[at].strip()]
        if found and not metric.endswith(BANDS) and logged:
            step, value = (_number(cell) for cell in logged[-1])
            last.setdefault(metric, []).append((run, value, step))
    curves = {run for lasts in last.values() for run, _, _ in lasts}
    names = _names_of(runs, curves, path)
    for metric, lasts in last.items():
        _refuse_repeated([run for run, _, _ in lasts], names, path)
        ends = pd.DataFrame(lasts, columns=["run", "value", "step"]).set_index("run")
        ends = ends.reindex(names).set_axis(runs.index)
        if metric in runs:
            known = runs.get(metric + LAST, pd.Series(math.nan, index=runs.index))
            stays = ends["value"].isna() | (ends["step"] < known)
            ends = ends.mask(stays, pd.DataFrame({"value": runs[metric], "step": known}))
        runs[metric] = ends["value"]
        if not timed:
            runs[metric + LAST] = ends["step"]
    return runs


def _names_of(runs: pd.DataFrame, curves: AbstractSet[str], path: Path) -> pd.Series:
    """The runs' names or ids, whichever the chart has."""
    there = [runs[name].astype(str) for name in NAMES if name in runs]
    if not there:
        raise UserError(
            f"{path} is a chart, and no table beside it has the runs' names in a column {NAMES[0]!r}."
        )
    names = max(there, key=lambda column: len(curves & set(column)))
    if not curves & set(names):
        raise UserError(
            f"{path}: none of its runs, such as {min(curves, default='')!r}, is in a table of runs."
        )
    return names


def _refuse_repeated(curves: Sequence[str], names: pd.Series, path: Path) -> None:
    counts = Counter(curves) | Counter(names[names.isin(curves)])
    repeated = [f"{name!r} ({count} runs)" for name, count in counts.items() if count > 1]
    if repeated:
        more = f" and {len(repeated) - SHOWN} more" if len(repeated) > SHOWN else ""
        raise UserError(
            f"{path}: names of runs aren't unique, so their curves can't be told apart: "
            f"{', '.join(repeated[:SHOWN])}{more}; export the chart with the runs' ids in its legend, and the table of "
            "runs with the column ID, or give the runs names of their own."
        )


def _number(cell: str) -> float:
    """A chart's value; infinite where it is not finite, NaN where it is no number."""
    try:
        value = float(cell)
    except ValueError:
        return math.nan
    return value if math.isfinite(value) else math.inf
