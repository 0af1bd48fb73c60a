"""Runs that a user gives on a command line: a table, a folder of exports, or an MLflow experiment."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from shapelaw.errors import UserError
from shapelaw.fits.budgets import Budget, budgets_of
from shapelaw.fits.curves import SIZE_COLUMNS, SIZE_LABELS, SizeAxis
from shapelaw.fits.exports import read_exports
from shapelaw.fits.inputs import check_runs, read_table
from shapelaw.fits.own_runs import ROLES, own_runs


def add_runs_option(group: argparse._ActionsContainer) -> None:
    """Add --runs to a parser or a group."""
    group.add_argument(
        "--runs",
        type=Path,
        metavar="FILE",
        help="one row a run: CSV (comma, semicolon or tab), Parquet or JSON lines; or a folder of CSV exports of W&B",
    )


def add_mlflow_option(group: argparse._ActionsContainer) -> None:
    """Add --mlflow to a parser or a group."""
    group.add_argument(
        "--mlflow",
        metavar="URI",
        help="the finished runs of an MLflow store (sqlite:///PATH.db, http(s)://HOST:PORT), with --experiment; "
        "set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD rather than write a password here",
    )


def add_column_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what the columns mean."""
    parser.add_argument("--experiment", metavar="NAME", help="the experiment to read, with --mlflow")
    parser.add_argument(
        "--column",
        action="append",
        default=[],
        metavar="ROLE=NAME",
        help=f"the column of a role, where its name doesn't tell; roles: {', '.join(ROLES)}; may be repeated",
    )
    parser.add_argument(
        "--tokens",
        type=float,
        metavar="N",
        help="only the runs of this token budget (default: one fit for each)",
    )


def given_budgets(
    arguments: argparse.Namespace, size: SizeAxis, *, least: int, loss: str | None = None
) -> tuple[list[Budget], list[str]]:
    """The checked runs of each token budget, and the sentences that say how the table was read.

    Args:
        least: shapes without which a budget can't be fitted.
        loss: the column to compare, where the user names one.

    Raises:
        UserError: the runs can't be read, or told, or used.
    """
    if arguments.tokens is not None and not 0 < arguments.tokens < math.inf:
        raise UserError(f"--tokens is {arguments.tokens}; it is a number above zero.")
    table, source, tracked = _table(arguments)
    given = _columns(arguments.column)
    if loss is not None:
        given |= {"loss": loss}
    runs = own_runs(table, source, given, some_incomplete=tracked)
    needed = SIZE_COLUMNS[size]
    if size is not SizeAxis.BLOCK and needed not in runs.table:
        raise UserError(
            f"{source} lacks {needed}, which networks of equal {SIZE_LABELS[size]} are compared by; "
            f"name its column with --column {needed}=COLUMN, or compare by another size."
        )
    parts = budgets_of(runs.table, source, least=least, only=arguments.tokens)
    kept = [name for name in SIZE_COLUMNS.values() if name in runs.table]
    checked = [
        Budget(
            check_runs(part.runs[["depth", "width", "seed", "loss", *kept]], source, loss="loss", size=size),
            part.tokens,
            part.rule,
        )
        for part in parts
    ]
    notes = [f"Read from {source}: {note}." for note in runs.notes]
    left = len(runs.table) - sum(len(part.runs) for part in checked)
    if left and arguments.tokens is None:
        notes.append(f"{left} runs are left out: their token budgets have too few shapes.")
    return checked, notes


def _table(arguments: argparse.Namespace) -> tuple[pd.DataFrame, str, bool]:
    """The table, its name, and True where it comes from a tracker, which has other runs too."""
    if arguments.mlflow is None:
        if arguments.experiment is not None:
            raise UserError("--experiment needs the store that it is in: --mlflow URI.")
        path: Path = arguments.runs
        if path.is_dir():
            return read_exports(path), str(path), True
        return read_table(path), str(path), False
    if arguments.experiment is None:
        raise UserError("--mlflow needs the name of an experiment: --experiment NAME.")
    from shapelaw.tracking.experiments import read_experiment  # late: MLflow takes seconds to import

    return (
        read_experiment(arguments.mlflow, arguments.experiment),
        f"the experiment {arguments.experiment}",
        True,
    )


def _columns(given: Sequence[str]) -> dict[str, str]:
    columns = {}
    for text in given:
        role, sign, name = text.partition("=")
        if not sign or not role or not name:
            raise UserError(f"--column {text} is not of the form ROLE=NAME, such as depth=n_layer.")
        columns[role.strip()] = name.strip()
    return columns
