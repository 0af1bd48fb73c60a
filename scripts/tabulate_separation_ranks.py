"""Tables and figures of measured separation ranks, beside the papers' theorems.

  python scripts/tabulate_separation_ranks.py --measured ranks.json --out DIR

Written to DIR: tables as .csv, .md and .tex, fit.json, and figures as .svg and .png. Exit codes: 0 done, 2 unusable input.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from shapelaw.errors import exit_code
from shapelaw.studies.separation_rank.results import analyse, summary


def main() -> None:
    """Parse the command line, analyse, and say what was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--measured", type=Path, required=True, metavar="FILE", help="of measure_separation_ranks.py"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for all results")
    arguments = parser.parse_args()
    print(summary(analyse(arguments.measured, arguments.out)))
    print(f"Tables and figures are in {arguments.out}.")


if __name__ == "__main__":
    sys.exit(exit_code(main))
