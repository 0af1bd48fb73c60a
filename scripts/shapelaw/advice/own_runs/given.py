"""Runs that a user gives on a command line: a table, a folder of exports, or an MLflow experiment."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd
from pandas.api.types import is_numeric_dtype

from shapelaw.advice.own_runs.budgets import Budget, budgets_of
from shapelaw.advice.own_runs.columns import ROLES, SETTINGS, setting_named
from shapelaw.advice.own_runs.exports import read_runs
from shapelaw.advice.own_runs.rows import own_runs
from shapelaw.advice.surface.forms import losses_constant
from shapelaw.errors import Parts, UserError
from shapelaw.fits.inputs import TOKENS, check_runs
from shapelaw.fits.noise import Noise, pooled_noise
from shapelaw.report.write import Drawn, Results
from shapelaw.specs.sizes import SIZE_COLUMNS, SIZE_LABELS, SizeAxis
from shapelaw.studies.grid.cells import SHOWN, Cell, cells_of, order_of, tables_of_cells
from shapelaw.studies.study_runs import sentences_of, without_diverged


def add_runs(group: argparse._ActionsContainer) -> None:
    """Add where runs come from, a table or MLflow, to a group whose options exclude each other."""
    about = "one row per run: CSV (comma, semicolon or tab), Parquet or JSON lines; or a folder of CSV exports of W&B"
    # where the position is empty, what --runs said stays
    group.add_argument("runs", nargs="?", default=argparse.SUPPRESS, metavar="RUNS", help=about)
    group.add_argument("--runs", help=argparse.SUPPRESS)
    group.add_argument(
        "--mlflow",
        metavar="URI",
        help="the finished runs of an MLflow store (sqlite:///PATH.db, http(s)://HOST:PORT), with --experiment; "
        "set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD rather than write a password here",
    )


def add_run_options(parser: argparse.ArgumentParser, ending: str) -> None:
    """Add the options that say what the columns mean, and the folder of the results.

    Args:
        ending: of that folder, behind the runs' name, where none is given.
    """
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help=f"folder for all results (default: {ending[1:]} of runs.csv go to runs{ending})",
    )
    parser.add_argument("--experiment", metavar="NAME", help="the experiment to read, with --mlflow")
    roles = f"roles: {', '.join(ROLES)}, and what networks may differ in: {', '.join(SETTINGS)}"
    best = "of several values of it at one shape, such as of learning_rate, take the best by the mean loss over seeds"
    for option, form, about in (
        ("--column", "ROLE=NAME", f"the column of a role, if its name isn't recognized; {roles}"),
        ("--best-of", "COLUMN", best),
        ("--only", "COLUMN=VALUE", "only the runs with this value, such as learning_rate=4e-3"),
    ):
        repeated = f"{about}; may be repeated"
        parser.add_argument(option, action="append", default=[], metavar=form, help=repeated)
    parser.add_argument(
        "--keep",
        action="store_true",
        help="keep runs that did not finish, ended early, or lie far off their twins or neighbours in size",
    )
    parser.add_argument(
        "--tokens",
        type=float,
        metavar="N",
        help="only the runs of this token budget (default: one fit for each)",
    )


def out_folder(arguments: argparse.Namespace, ending: str) -> Path:
    """The folder that results go to."""
    known = arguments.runs or getattr(arguments, "transitions", None) or arguments.experiment or "mlflow"
    return arguments.out or Path(f"{Path(known).stem}{ending}")


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
            present: makes the results of the runs of one cell; a cell that fails takes no other away.
        """
        parts = Parts()
        made = parts.each(
            self.cells, lambda cell: present(replace(self.budget, runs=cell.runs)), lambda cell: cell.name
        )
        return made[0][1] if len(self.cells) == 1 else combined(made, parts)

    def noise_of(self, runs: pd.DataFrame) -> Noise | None:
        """The noise between seeds of a cell's runs; of one that repeats no shape that of all cells of one text.

        Raises:
            UserError: repeated seeds have exactly equal losses.
        """
        texts = {(cell.value("corpus"), cell.value("vocab_size")) for cell in self.cells}
        everything = pooled_noise(*(cell.runs for cell in self.cells)) if len(texts) == 1 else None
        return pooled_noise(runs) or everything


def combined(made: Sequence[tuple[Cell, Results]], parts: Parts) -> Results:
    """The results of several cells in one: their tables below each other, their figures under names of their own.

    Args:
        parts: the cells that failed.
    """
    tables = tables_of_cells((cell.values, one.tables) for cell, one in made)
    figures: dict[str, Drawn] = {}
    left_out: dict[str, str] = {}
    for cell, one in made:
        of = "-".join(f"{name}-{value}" for name, value in cell.values.items())
        of = of.replace("/", "over").replace(" ", "")
        figures |= {f"{name}-{of}": figure for name, figure in one.figures.items()}
        left_out |= {f"{name} of {cell.name}": why for name, why in one.left_out.items()}
        parts.failed |= {f"{cell.name}, {part}": why for part, why in one.parts.failed.items()}
    fits = [{"cell": dict(cell.values), "rules": list(cell.rules), **one.fit} for cell, one in made]
    return Results(tables, figures, {"cells": fits}, "\n".join(_told(made)), left_out, parts=parts)


def _told(made: Sequence[tuple[Cell, Results]]) -> Iterator[str]:
    axes = made[0][0].values
    yield f"{len(made)} kinds of networks, which differ in {', '.join(axes)}; each has results of its own."
    for cell, one in made:
        rules = f" ({'; '.join(cell.rules)})" if cell.rules else ""
        yield f"\n{cell.name}{rules}:"
        yield one.summary


def given_columns(arguments: argparse.Namespace, loss: str | None) -> dict[str, str]:
    """The columns of the roles that the user names, role -> column; `loss` is that of `--loss`.

    Raises:
        UserError: an option is no pair of a role and a column.
    """
    return _pairs("column", arguments.column) | ({} if loss is None else {"loss": loss})


def given_budgets(
    arguments: argparse.Namespace,
    size: SizeAxis,
    *,
    least: int,
    loss: str | None = None,
    ladders: bool = False,
) -> tuple[list[GivenRuns], tuple[str, ...]]:
    """The checked runs of each token budget, cell by cell, and the sentences that say how the table was read.

    Args:
        least: shapes without which a budget can't be fitted.
        loss: the column to compare, where the user names one.
        ladders: whether tokens may follow nominal sizes (`budgets_of`).

    Raises:
        UserError: the runs can't be read, or told, or used.
    """
    if arguments.tokens is not None and not 0 < arguments.tokens < math.inf:
        raise UserError(f"--tokens is {arguments.tokens}; it is a number above zero.")
    table, source = _table(arguments)
    given = given_columns(arguments, loss)
    only = _pairs("only", arguments.only)
    runs = own_runs(table, source, given, only=only, keep=arguments.keep)
    needed = SIZE_COLUMNS[size]
    if size is not SizeAxis.BLOCK and needed not in runs.table:
        raise UserError(
            f"{source} lacks {needed}, which networks of equal {SIZE_LABELS[size]} are compared by; "
            f"name its column with --column {needed}=COLUMN, or compare by another size."
        )
    parts = budgets_of(runs.table, source, least=least, only=arguments.tokens, ladders=ladders)
    notes = list(runs.notes)
    checked = []
    for part in parts:
        table, chosen = _one_recipe(part.runs, runs.recipe, source, arguments.best_of)
        notes += chosen
        cells = without_diverged(cells_of(table, source=source, loss="loss").cells, notes, arguments.keep)
        checked.append(GivenRuns(part, _enough(cells, source, size, least, notes)))
    left = runs.table.drop(index=[row for part in parts for row in part.runs.index])
    if len(left) and arguments.tokens is None:
        few = budgets_of(left, source, least=0)
        there = ", ".join(f"{len(part.runs)} of {part.tokens:.3g} tokens" for part in few[:SHOWN])
        more = f" and {len(few) - SHOWN} more budgets" if len(few) > SHOWN else ""
        notes.append(f"runs of token budgets with fewer than {least} shapes are left out: {there}{more}")
    return checked, sentences_of(source, notes)


def _one_recipe(
    runs: pd.DataFrame, recipe: Sequence[str], source: str, best_of: Sequence[str]
) -> tuple[pd.DataFrame, list[str]]:
    """The runs with one recipe at each shape of a kind of network, and a sentence that says what was chosen.

    Raises:
        UserError: a column of `best_of` is not there; or runs of one shape differ in their recipes, by rates or what
            else no seed explains.
    """
    names = [name if name in runs else setting_named(name) for name in best_of]
    if absent := sorted(set(names) - {*runs}):
        raise UserError(
            f"--best-of {absent[0]}: {source} has no such column; it may be {', '.join(recipe[:4])}."
        )
    recipes = [name for name in recipe if name in runs]
    kind = ["depth", "width", *(name for name in SETTINGS if name in runs and name not in recipes)]
    notes = []
    if names:
        others = [name for name in (*kind, *recipes) if name not in names]
        means = runs.groupby([*others, *names], dropna=False)["loss"].mean().reset_index()
        best = means.sort_values("loss", kind="stable").drop_duplicates(others)[[*others, *names]]
        kept = runs.reset_index(names="row").merge(best, on=[*others, *names]).set_index("row")
        notes = [
            f"of {', '.join(names)} each shape has its best by mean loss: {len(kept)} of {len(runs)} rows",
            *_at_edges(runs, best, names),
        ]
        runs = kept
    shapes = runs.groupby(kind, dropna=False)
    mixed = [name for name in recipes if shapes[name].nunique(dropna=False).max() > 1]
    if mixed:
        raise UserError(_mixed(runs, mixed, source))
    return runs, notes


def _at_edges(runs: pd.DataFrame, best: pd.DataFrame, names: Sequence[str]) -> Iterator[str]:
    for name in names:
        if is_numeric_dtype(runs[name]) and runs[name].nunique() > 2:
            edge = best[name].isin([runs[name].min(), runs[name].max()])
            if edge.any():
                yield f"the best {name} of {int(edge.sum())} of {len(best)} shapes is the least or the greatest tried"


def _mixed(runs: pd.DataFrame, names: Sequence[str], source: str) -> str:
    """The refusal of recipes that differ at one shape, with the options that settle it."""
    values = {
        name: [
            f"{value:g}" if isinstance(value, int | float) else str(value)
            for value in sorted(runs[name].dropna().unique(), key=order_of)
        ]
        for name in names
    }
    shown = [
        f"{name} ({', '.join(some[:SHOWN])}{', ...' if len(some) > SHOWN else ''})"
        for name, some in values.items()
    ]
    first, value = names[0], values[names[0]][0]
    best = " ".join(f"--best-of {name}" for name in names)
    seed = "" if first in SETTINGS else f" If it only counts repeats, say --column seed={first}."
    seed += " If they are steps of one run, say --column step=COLUMN." if first == "steps" else ""
    return (
        f"{source} has runs of one depth and width with several values of {' and of '.join(shown)}, which no seed "
        f"explains; take the best of each shape with {best}, or one value with --only {first}={value}.{seed}"
    )


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
        notes.append(f"left out, since they have fewer than {least} shapes: {few}")
    return tuple(replace(cell, runs=_checked(cell, source, size)) for cell in (enough or cells))


def _checked(cell: Cell, source: str, size: SizeAxis) -> pd.DataFrame:
    runs = cell.runs.rename(columns={"tokens": TOKENS})
    kept = [name for name in (*SIZE_COLUMNS.values(), TOKENS) if name in runs]
    where = f"{source} ({cell.name})" if cell.values else source
    losses = cell.runs["loss"]
    if len(losses) > 1 and losses_constant(losses):
        raise UserError(
            f"{where}: the losses don't vary ({losses.min():.6g} to {losses.max():.6g}), so they tell no shape from "
            "another; are they the losses at the end of the training?"
        )
    return check_runs(runs[["depth", "width", "seed", "loss", *kept]], where, loss="loss", size=size)


def _table(arguments: argparse.Namespace) -> tuple[pd.DataFrame, str]:
    """The table and its name."""
    if arguments.mlflow is None:
        if arguments.experiment is not None:
            raise UserError("--experiment needs the store that it is in: --mlflow URI.")
        return read_runs(Path(arguments.runs)), str(Path(arguments.runs))
    if arguments.experiment is None:
        raise UserError("--mlflow needs the name of an experiment: --experiment NAME.")
    from shapelaw.advice.own_runs.experiments import read_experiment  # late: MLflow takes seconds to import

    return read_experiment(arguments.mlflow, arguments.experiment), f"the experiment {arguments.experiment}"


def _pairs(option: str, given: Sequence[str]) -> dict[str, str]:
    """The pairs of an option that is given as `NAME=VALUE`, once or more."""
    pairs = {}
    for text in given:
        name, sign, value = text.partition("=")
        if not sign or not name.strip() or not value.strip():
            example = {"column": "ROLE=NAME, such as depth=n_layer", "only": "COLUMN=VALUE, such as lr=4e-3"}
            raise UserError(f"--{option} {text} is not of the form {example[option]}.")
        pairs[name.strip()] = value.strip()
    return pairs
