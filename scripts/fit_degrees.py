"""Which polynomial degree of a layer learns best at equal parameters? From runs of product networks.

  python scripts/fit_degrees.py --runs runs.csv --out DIR

Runs are rows of `target, target_rank, degrees, mixture, inputs, width, steps, learning_rate, seed, loss`, as CSV or
Parquet; `mean_degree` and `steps_to_<loss>` are used where they are there. Each seed of a network is taken at the
learning rate that is best on its other seeds. Written to DIR: the tables losses, differences, speed, mixtures,
rank_losses and rank_correlation as .csv, .md and .tex, fit.json, and figures as .svg and .png. Exit codes: 0 done,
also when nothing can be compared (said in fit.json's status and here), 2 unusable input.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from shapelaw.errors import exit_code
from shapelaw.studies.block_degree.ranks import SECONDS
from shapelaw.studies.block_degree.results import analyse, summary


def main() -> None:
    """Parse the command line, analyse, and say what was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=Path, required=True, metavar="FILE", help="one row a run")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for all results")
    parser.add_argument(
        "--rank-seconds",
        type=float,
        default=SECONDS,
        help="of one core, for the exact separation rank of a network; a longer one gets its upper bound (default: "
        f"{SECONDS:g})",
    )
    arguments = parser.parse_args()
    print(summary(analyse(arguments.runs, arguments.out, arguments.rank_seconds)))
    print(f"Tables and figures are in {arguments.out}.")


if __name__ == "__main__":
    sys.exit(exit_code(main))
