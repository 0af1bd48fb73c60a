"""A folder of CSV exports of Weights & Biases: tables of runs, and charts whose last values belong to those runs."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from shapelaw.errors import UserError
from shapelaw.fits.inputs import READERS, read_table

NAME, STATE, FINISHED = "Name", "State", "finished"
# the first column of a chart's export
CHART_AXES = ("Step", "_step", "Relative Time (Process)", "Relative Time (Wall)", "Wall Time", "global_step")
BANDS = ("__MIN", "__MAX")  # a chart's smoothing has these beside each curve
BETWEEN = " - "  # of a run's name and its metric, in a chart's header


def read_exports(folder: Path) -> pd.DataFrame:
    """All runs of a folder's tables, one row each, finished ones only; charts add their last values, joined by name.

    Raises:
        UserError: the folder has no table of runs; a chart's run is in none of them; or a file can't be read.
    """
    paths = sorted(path for path in folder.iterdir() if path.suffix in READERS)
    if not paths:
        raise UserError(f"{folder} has no tables; it must hold .csv files (or .tsv, .jsonl, .parquet).")
    tables = {path: read_table(path) for path in paths}
    charts = {path: table for path, table in tables.items() if table.columns[0] in CHART_AXES}
    runs = [table for path, table in tables.items() if path not in charts]
    if not runs:
        raise UserError(
            f"{folder} has charts only, which lack the shapes; add the table of runs with depth and width as columns "
            "(in W&B: Runs, then Export as CSV)."
        )
    joined = pd.concat(runs, ignore_index=True)
    if STATE in joined:
        joined = joined[joined[STATE].astype(str).str.lower() == FINISHED]
        if joined.empty:
            raise UserError(f"{folder} has no finished run: its column {STATE} never says {FINISHED!r}.")
    for path, chart in charts.items():
        joined = _with_last_values(joined, chart, path)
    return joined.reset_index(drop=True)


def _with_last_values(runs: pd.DataFrame, chart: pd.DataFrame, path: Path) -> pd.DataFrame:
    if NAME not in runs:
        raise UserError(
            f"{path} is a chart, and no table beside it has the runs' names in a column {NAME!r}."
        )
    last: dict[str, dict[str, float]] = {}
    for column in chart.columns[1:]:
        run, found, metric = str(column).rpartition(BETWEEN)
        logged = chart[column].dropna()
        if found and not metric.endswith(BANDS) and len(logged):
            last.setdefault(metric, {})[run] = float(logged.iloc[-1])
    known = set(runs[NAME])
    for metric, lasts in last.items():
        if not known & set(lasts):
            raise UserError(
                f"{path}: none of its runs, such as {next(iter(lasts))!r}, is in a table of runs."
            )
        runs = runs.assign(**{metric: runs[NAME].map(lasts)})
    return runs
