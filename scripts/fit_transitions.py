"""Fit the widths at which deeper networks become the better ones, from runs or from known transitions.

  python scripts/fit_transitions.py --runs runs.csv --out DIR
  python scripts/fit_transitions.py --transitions transitions.csv --out DIR

Runs are rows of `depth, width, seed, test_loss` (CSV or Parquet). For each pair of adjacent depths the transition is
found by the paper's rule (Levine et al. 2020, section 5.2.2) and by a bootstrap of the smooth loss curves. Transitions
are rows of `depth, width, width_err`; a transitions.csv that this command wrote is one. Then comes the weighted line
log d = a + b L, N_transition(L) = 12 L exp(2a + 2bL), and the shapes that it projects for larger sizes.

Written to DIR: transitions, fit, projection and comparison (with runs also size_axes, seed_noise and best_depth) as
.csv, .md and .tex, fit.json, and the figures as .svg and .png. Exit codes: 0 done, also when no fit is possible (said
in fit.json's status and here), 2 unusable input.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from shapelaw.errors import exit_code
from shapelaw.fits.crossing import BOOTSTRAP
from shapelaw.fits.curves import SizeAxis
from shapelaw.fits.transitions import PAPER_RULE
from shapelaw.studies.depth_width.results import Options, analyse, summary

METHODS = {"bootstrap": BOOTSTRAP, "paper": PAPER_RULE}


def main() -> None:
    """Parse the command line, analyse, and say what was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    table = parser.add_mutually_exclusive_group(required=True)
    table.add_argument(
        "--runs",
        type=Path,
        metavar="FILE",
        help="one row a run: depth, width, seed, test_loss; params (optional) replaces 12 L d^2 as the size",
    )
    table.add_argument(
        "--transitions",
        type=Path,
        metavar="FILE",
        help="one row a transition: depth, width, width_err; of rows with a status only 'crossing' counts",
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for all results")
    parser.add_argument(
        "--method",
        choices=METHODS,
        default="bootstrap",
        help="whose transitions the main fit, the projection and the figures use (default: bootstrap; the paper's "
        "rule gives half the distance of two sizes as error, which is no standard error); both are fitted",
    )
    parser.add_argument(
        "--loss",
        default="test_loss",
        metavar="COLUMN",
        help="the column to compare: test_loss (nats per token, default) or bits_per_byte",
    )
    parser.add_argument(
        "--size",
        choices=[axis.value for axis in SizeAxis],
        default=SizeAxis.BLOCK.value,
        help="what compared networks have alike: parameters of the blocks (params or 12 L d^2, default), all "
        "parameters (total_params) or FLOPs of a training step (step_flops); the others' transitions stand beside",
    )
    parser.add_argument(
        "--noise",
        type=float,
        metavar="STD",
        help="standard deviation of one run's loss over seeds, in place of the one pooled over repeated seeds; "
        "needed where no shape has two seeds",
    )
    parser.add_argument("--draws", type=int, default=2000, help="bootstrap draws (default: 2000)")
    parser.add_argument("--seed", type=int, default=0, help="of the bootstrap (default: 0)")
    arguments = parser.parse_args()
    options = Options(
        arguments.loss,
        arguments.noise,
        METHODS[arguments.method],
        arguments.draws,
        arguments.seed,
        SizeAxis(arguments.size),
    )
    analysis = analyse(arguments.out, runs=arguments.runs, transitions=arguments.transitions, options=options)
    print(summary(analysis))
    print(f"Tables and figures are in {arguments.out}.")


if __name__ == "__main__":
    sys.exit(exit_code(main))
