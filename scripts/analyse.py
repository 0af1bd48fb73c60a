"""Analyse a study: its tables, figures and fits, from the table of its runs.

  python scripts/analyse.py STUDY --input FILE --out DIR [options of the study]
  python scripts/analyse.py STUDY --help

FILE is the study's results/STUDY/runs.parquet, any .csv or .parquet with the same columns, or what the study measured
without training. Written to DIR: tables as .csv, .md and .tex, figures as .svg and .png, and fit.json. Exit codes: 0
done, also where no fit is possible (fit.json's status and the output say so), 2 unusable input.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from shapelaw.errors import UserError, exit_code
from shapelaw.report.write import Results, check_declared, show_results
from shapelaw.studies.registry import STUDIES


class Room(Protocol):
    """The interface of a study's module of results; its docstring says what the input must contain."""

    __doc__: str | None

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add the study's own options."""

    def results(self, arguments: argparse.Namespace) -> Results:
        """The results from `arguments.study`, `arguments.input` and the study's own options."""


def main() -> None:
    """Parse the command line, analyse, write the results and print the findings."""
    known = sys.argv[1] if len(sys.argv) > 1 and sys.argv[1] in STUDIES else None
    room = cast(Room, import_module(STUDIES[known].results)) if known else None
    description = f"{__doc__}\nThe study {known}. {room.__doc__}" if room else __doc__
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("study", choices=STUDIES, metavar="STUDY", help=", ".join(STUDIES))
    parser.add_argument("--input", type=Path, metavar="FILE", help="the table or folder to analyse")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for all results")
    if room is None:
        parser.parse_args()  # prints what is wrong, or the help
        raise AssertionError("the study comes first")
    room.add_options(parser)
    arguments = parser.parse_args()
    if arguments.input is None and getattr(room, "NEEDS_INPUT", True):
        raise UserError(
            f"{arguments.study} needs --input FILE; analyse.py {arguments.study} --help says of what."
        )
    study, found = STUDIES[arguments.study], room.results(arguments)
    check_declared(found, study.tables, study.figures)
    show_results(found, arguments.out, study.name)


if __name__ == "__main__":
    sys.exit(exit_code(main))
