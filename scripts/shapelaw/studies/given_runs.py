"""Runs that a user gives on a command line: a table, a folder of exports, or an MLflow experiment."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from shapelaw.errors import UserError
from shapelaw.fits.budgets import Budget, budgets_of
from shapelaw.fits.curves import SIZE_COLUMNS, SIZE_LABELS, SizeAxis
from shapelaw.fits.exports import read_exports
from shapelaw.fits.inputs import check_runs, read_table
from shapelaw.fits.noise import Noise, pooled_noise
from shapelaw.fits.own_runs import ROLES, SETTINGS, own_runs
from shapelaw.report.charts import Chart
from shapelaw.report.write import Results, Table
from shapelaw.studies.grid.cells import Cell, cells_of, frame_of


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
        help=f"the column of a role, where its name doesn't tell; roles: {', '.join(ROLES)}, and what networks may "
        f"differ in: {', '.join(SETTINGS)}; may be repeated",
    )
    parser.add_argument(
        "--best-of",
        action="append",
        default=[],
        choices=["learning_rate"],
        help="of several learning rates at one shape take the best, by the mean loss over seeds",
    )
    parser.add_argument(
        "--tokens",
        type=float,
        metavar="N",
        help="only the runs of this token budget (default: one fit for each)",
    )


@dataclass(frozen=True)
class GivenRuns:
    """The runs of one token budget.

    Attributes:
        budget: the budget with all of its runs.
        cells: each cell with its checked runs: networks that differ in depth, width and seed alone, and in what
            follows from these.
    """

    budget: Budget
    cells: tuple[Cell, ...]

    def results(self, present: Callable[[Budget], Results]) -> Results:
        """The results of all cells in one: tables with the columns that tell the cells apart, figures for each.

        Args:
            present: makes the results of the runs of one cell.
        """
        made = [(cell, present(replace(self.budget, runs=cell.runs))) for cell in self.cells]
        return made[0][1] if len(made) == 1 else combined(made)

    def noise_of(self, runs: pd.DataFrame) -> Noise | None:
        """The noise between seeds of a cell's runs; of one that repeats no shape that of all cells of one text.

        Raises:
            UserError: repeated seeds have exactly equal losses.
        """
        texts = {(cell.value("corpus"), cell.value("vocab_size")) for cell in self.cells}
        everything = pooled_noise(*(cell.runs for cell in self.cells)) if len(texts) == 1 else None
        return pooled_noise(runs) or everything


def combined(made: Sequence[tuple[Cell, Results]]) -> Results:
    """The results of several cells in one: their tables below each other, their figures under names of their own."""
    names = list(dict.fromkeys(name for _, one in made for name in one.tables))
    tables = {}
    for name in names:
        parts = [(cell, one.tables[name]) for cell, one in made if name in one.tables]
        frame = frame_of((cell.values, table.frame) for cell, table in parts)
        tables[name] = Table(frame, parts[0][1].caption, parts[0][1].formats)
    figures: dict[str, Chart | Figure | str] = {}
    left_out: dict[str, str] = {}
    for cell, one in made:
        of = (
            "-".join(f"{name}-{value}" for name, value in cell.values.items())
            .replace("/", "over")
            .replace(" ", "")
        )
        figures |= {f"{name}-{of}": figure for name, figure in one.figures.items()}
        left_out |= {f"{name} of {cell.name}": why for name, why in one.left_out.items()}
    fits = [{"cell": dict(cell.values), "rules": list(cell.rules), **one.fit} for cell, one in made]
    return Results(tables, figures, {"cells": fits}, "\n".join(_told(made)), left_out)


def _told(made: Sequence[tuple[Cell, Results]]) -> Iterator[str]:
    axes = made[0][0].values
    yield f"{len(made)} kinds of networks, which differ in {', '.join(axes)}; each has results of its own."
    for cell, one in made:
        rules = f" ({'; '.join(cell.rules)})" if cell.rules else ""
        yield f"\n{cell.name}{rules}:"
        yield one.summary


def given_budgets(
    arguments: argparse.Namespace, size: SizeAxis, *, least: int, loss: str | None = None
) -> tuple[list[GivenRuns], list[str]]:
    """The checked runs of each token budget, cell by cell, and the sentences that say how the table was read.

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
    notes = [f"Read from {source}: {note}." for note in runs.notes]
    checked = []
    for part in parts:
        found = cells_of(part.runs, source=source, best_of=arguments.best_of, loss="loss")
        notes += [f"Read from {source}: {note}." for note in found.notes]
        checked.append(GivenRuns(part, _enough(found.cells, source, size, least, notes)))
    left = len(runs.table) - sum(len(part.runs) for part in parts)
    if left and arguments.tokens is None:
        notes.append(f"{left} runs are left out: their token budgets have too few shapes.")
    return checked, notes


def _enough(
    cells: Sequence[Cell], source: str, size: SizeAxis, least: int, notes: list[str]
) -> tuple[Cell, ...]:
    """The cells with their checked runs; those of fewer than `least` shapes are left out if others have more.

    Raises:
        UserError: the runs of a cell can't be used.
    """
    enough = [cell for cell in cells if len(cell.runs.drop_duplicates(["depth", "width"])) >= least]
    if enough and len(enough) < len(cells):
        few = "; ".join(cell.name for cell in cells if cell not in enough)
        notes.append(f"Left out, since they have fewer than {least} shapes: {few}.")
    return tuple(replace(cell, runs=_checked(cell, source, size)) for cell in (enough or cells))


def _checked(cell: Cell, source: str, size: SizeAxis) -> pd.DataFrame:
    kept = [name for name in SIZE_COLUMNS.values() if name in cell.runs]
    where = f"{source} ({cell.name})" if cell.values else source
    return check_runs(cell.runs[["depth", "width", "seed", "loss", *kept]], where, loss="loss", size=size)


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
    from shapelaw.tracking.table import read_experiment  # late: MLflow takes seconds to import

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
