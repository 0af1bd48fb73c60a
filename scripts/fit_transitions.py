"""Fit the widths at which deeper networks become the better ones, from runs or from known transitions.

  python scripts/fit_transitions.py --runs runs.csv --out DIR
  python scripts/fit_transitions.py --transitions transitions.csv --out DIR

Runs are rows of `depth, width, seed, test_loss` (CSV or Parquet). For each pair of adjacent depths the transition is
found by the paper's rule (Levine et al. 2020, section 5.2.2) and by a bootstrap of the smooth loss curves. Transitions
are rows of `depth, width, width_err`, such as a transitions.csv that this command wrote. Then comes the weighted line
log d = a + b L, N_transition(L) = 12 L exp(2a + 2bL), and the shapes that it projects for larger sizes.

Written to DIR: transitions, fit, projection and comparison (with runs also size_axes, seed_noise and best_depth) as
.csv, .md and .tex, fit.json, and the figures as .svg and .png. Exit codes: 0 done, also where no fit is possible
(fit.json's status and the output say so), 2 unusable input.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from shapelaw.errors import exit_code
from shapelaw.report.write import write_results
from shapelaw.studies.depth_width.results import add_options, analyse, options_of, present
from shapelaw.studies.depth_width.study import NAME


def main() -> None:
    """Parse the command line, analyse, write the results and print the findings."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    table = parser.add_mutually_exclusive_group(required=True)
    table.add_argument(
        "--runs",
        type=Path,
        metavar="FILE",
        help="one row a run: depth, width, seed, test_loss; block_params (optional) replaces 12 L d^2 as the size",
    )
    table.add_argument(
        "--transitions",
        type=Path,
        metavar="FILE",
        help="one row a transition: depth, width, width_err; of rows with a status only 'crossing' counts",
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for all results")
    add_options(parser)
    arguments = parser.parse_args()
    analysis = analyse(runs=arguments.runs, transitions=arguments.transitions, options=options_of(arguments))
    found = present(analysis)
    write_results(found, arguments.out, NAME)
    print(found.summary)
    print(f"Tables and figures are in {arguments.out}.")


if __name__ == "__main__":
    sys.exit(exit_code(main))
