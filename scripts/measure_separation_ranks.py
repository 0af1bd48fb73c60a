"""Measure the separation ranks that a config asks for; ranks that are already measured are kept.

  python scripts/measure_separation_ranks.py --grids '{"separation_rank": [{"depth": [1, 2], "width": [2, 3],
      "tokens": [6]}], "degree_budget": [], "fractional_degree": []}' --kept FOLDER --out ranks.json

The grids are the config's sections with these names. Each network is measured within its grid's seconds; where that is
too few for an exact rank, with as many templates as they allow, which gives a lower bound. Every rank is kept in a file
of its own: a killed run goes on, and a changed grid measures only what is new. Exit codes: 0 written, 2 unusable grids.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from shapelaw.errors import UserError, command_line, end_with
from shapelaw.settings.problems import sentence
from shapelaw.studies.separation_rank.study import RankGrids, asked_of, rank_problems
from shapelaw.studies.separation_rank.tables import measure_all, write_measurements


def main() -> None:
    """Parse the command line, measure, and write."""
    parser = command_line(__doc__)
    add = parser.add_argument
    add("--grids", required=True, metavar="JSON", help="the sections of the config")
    add("--kept", type=Path, required=True, metavar="DIR", help="folder of the ranks, a file for each")
    add("--out", type=Path, required=True, metavar="FILE", help="file of all ranks (.json)")
    arguments = parser.parse_args()
    found = list(measure_all(asked_of(_grids(arguments.grids)), arguments.kept))
    write_measurements(found, arguments.out)
    exact = sum(measured.exact for _, measured in found)
    print(f"{len(found)} separation ranks are in {arguments.out}, {exact} of them exact.")


def _grids(text: str) -> RankGrids:
    try:
        grids = RankGrids.model_validate_json(text)
    except ValidationError as error:
        problems = [sentence(one, RankGrids) for one in error.errors()]
        raise UserError("\n".join(["The grids can't be used:", *problems])) from error
    problems = [problem for problem in rank_problems(grids) if " is empty; " not in problem]
    if problems:
        raise UserError("\n".join(problems))
    return grids


if __name__ == "__main__":
    end_with(main)
