"""Analyse a study: its tables, figures and fits, from the table of its runs.

  python scripts/analyse.py STUDY --input FILE --out DIR [options of the study]
  python scripts/analyse.py GRID --axes AXIS ... --input FILE --out DIR
  python scripts/analyse.py STUDY --help

FILE is the study's results/STUDY/runs.parquet, any .csv or .parquet with the same columns, or what the study measured
without training. Runs that did not finish, have no finite loss or diverged are left out by name. GRID is any name; the
runs of its table differ in depth, width and the columns that --axes names.
Written to DIR: each table as .csv and .html, all of them in tables.md and tables.tex, figures as .svg and .png, and
fit.json. Exit codes: 0 done, also where no fit is possible, too many runs diverged, or a part failed (fit.json's status
and its list `failed`, and the output, say so), 2 unusable input.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd

from shapelaw.errors import UserError, command_line, end_with
from shapelaw.report.write import Answer, Results, Table, check_declared, show_results
from shapelaw.studies.grid.study import Grid, grid_study
from shapelaw.studies.registry import STUDIES
from shapelaw.studies.study import ANSWER, Study, published
from shapelaw.studies.study_runs import diverged_in


def _study(arguments: Sequence[str]) -> Study | None:
    """The study that the command line begins with: of the list, or with `--axes` a grid of that name."""
    name = arguments[0] if arguments else ""
    if name in STUDIES:
        return STUDIES[name]
    return grid_study(Grid(name)) if "--axes" in arguments and not name.startswith("-") else None


# Arrow's texts take twice as long in tables of ten rows
@pd.option_context("mode.string_storage", "python")
def main() -> None:
    """Parse the command line, analyse, write the results and print the findings.

    A study's module of results has `results(arguments)`, and `add_options(parser)` where it has options of its own; its
    docstring says what the input must contain.
    """
    study = _study(sys.argv[1:])
    room: Any = import_module(study.results) if study else None
    description = f"{__doc__}\nThe study {study.name}. {room.__doc__}" if study else __doc__
    parser = command_line(description)
    known = [*STUDIES, *([study.name] if study else [])]
    parser.add_argument("study", choices=known, metavar="STUDY", help=", ".join(STUDIES))
    parser.add_argument("--input", type=Path, metavar="FILE", help="the table or folder to analyse")
    parser.add_argument(
        "--keep",
        action="store_true",
        help="keep runs that did not finish, or lie far off their twins or neighbours in size",
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for all results")
    if study is None:
        parser.parse_args()  # prints what is wrong, or the help
        raise AssertionError("the study comes first")
    getattr(room, "add_options", lambda _: None)(parser)
    arguments = parser.parse_args()
    if arguments.input is None and getattr(room, "NEEDS_INPUT", True):
        raise UserError(
            f"{arguments.study} needs --input FILE; analyse.py {arguments.study} --help says of what."
        )
    try:
        found: Results = room.results(arguments)
    except UserError as error:  # the runs that are left may be too few
        if not (lost := diverged_in(arguments.input)):
            raise
        why = f"{lost}. {error}"  # what stands in the place of results that can't be made
        table = Table(pd.DataFrame({"failed": [why]}), "This table failed.")
        tables, figures = dict.fromkeys(study.tables, table), dict.fromkeys(study.figures, why)
        found = Results(tables, figures, {"status": "diverged"}, why, answer=Answer(why, decided=False))
    theirs = study.published or published(study.name, ANSWER).value
    if found.answer and not found.answer.published:
        found = replace(found, answer=replace(found.answer, published=theirs))
    check_declared(found, study.tables, study.figures)
    show_results(found, arguments.out, study.name, study.carrying)


if __name__ == "__main__":
    end_with(main)
