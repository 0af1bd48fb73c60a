"""Which degree of linear attention is best in a decoder at equal parameters, and how far is it from softmax?

  python scripts/fit_attention_degree.py --runs runs.csv --out DIR

Runs are rows of `depth, width, attention_degree, seed, test_loss` (CSV or Parquet; no attention_degree is softmax);
`attention_dim` and `total_params` are shown where they are there. Written to DIR: the tables losses and differences
as .csv, .md and .tex, fit.json, and the figure losses as .svg and .png. Exit codes: 0 done, also when nothing can be
compared (said in fit.json's status and here), 2 unusable input.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from shapelaw.errors import exit_code
from shapelaw.studies.attention_degree.results import analyse, summary


def main() -> None:
    """Parse the command line, analyse, and say what was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=Path, required=True, metavar="FILE", help="one row a run")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for all results")
    arguments = parser.parse_args()
    print(summary(analyse(arguments.runs, arguments.out)))
    print(f"Tables and figures are in {arguments.out}.")


if __name__ == "__main__":
    sys.exit(exit_code(main))
