"""Fit what the heads of an attention layer memorize, from runs on random examples.

  python scripts/fit_memorization.py --study memorization_heads --runs runs.csv --out DIR
  python scripts/fit_memorization.py --study memorization_saturation --attention FOLDER [--runs runs.csv] --out DIR

Runs are rows of `heads, context, head_dim, examples, seed` and `accuracy` (or, with task "regression", `loss`, the mean
squared error), as CSV or Parquet; `task`, `context_type` and `width` default to classification, shared and 64.

  memorization_heads       whether the share memorized below saturation is a line in H, its exponent, examples a head
                           where 99% are memorized, and the share of saturated heads (from saturated_share)
  memorization_context     whether the share rises with n, by a test that knows the seeds' noise
  memorization_head_dim    the knee of the share in d_h, and what is gained beyond d_h = n
  memorization_saturation  saturated heads (a folder of .npz with largest_weight, heads, examples), and the largest T
                           that is memorized perfectly

Each study also gives T at 99% accuracy and, beside it, the H (min(n, d_h) - 1) + 1 examples of theorem 1 (Mahdavi et
al. 2024). Written to DIR: tables as .csv, .md and .tex, fit.json, and figures as .svg and .png. Exit codes: 0 done,
also when no fit is possible (said in fit.json's status and here), 2 unusable input.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from shapelaw.errors import exit_code
from shapelaw.studies.memorization.results import STUDIES, analyse, summary


def main() -> None:
    """Parse the command line, analyse, and say what was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--study", choices=STUDIES, required=True, help="which size varies, or saturation")
    parser.add_argument("--runs", type=Path, metavar="FILE", help="one row a run (.csv or .parquet)")
    parser.add_argument(
        "--attention", type=Path, metavar="FOLDER", help="of memorization_saturation: one .npz file a run"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for all results")
    arguments = parser.parse_args()
    print(summary(analyse(arguments.runs, arguments.out, arguments.study, attention=arguments.attention)))
    print(f"Tables and figures are in {arguments.out}.")


if __name__ == "__main__":
    sys.exit(exit_code(main))
