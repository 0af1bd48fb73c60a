"""Draws the committed pass rates of the memorization theorem's assumptions on real networks.

  PYTHONPATH=scripts python benchmarks/pass_rates.py --out docs/figures/assumptions_pass_rate

Writes OUT.svg and OUT.png. The layers that the rates were counted on are not committed (some 40 CPU minutes make them:
docs/results/assumptions.md); docs/results/assumptions_pass_rate.csv has what the figure shows of them. An empty
tolerance is float32's, which depends on the size of the subset.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from shapelaw.errors import command_line
from shapelaw.report.plots import save_figure
from shapelaw.studies.assumptions.results import pass_rate_chart

TABLE = Path(__file__).resolve().parents[1] / "docs" / "results" / "assumptions_pass_rate.csv"


def main() -> None:
    """Draw the figure."""
    parser = command_line(__doc__)
    parser.add_argument("--out", type=Path, required=True, help="path of the figure without its ending")
    print(*save_figure(pass_rate_chart(pd.read_csv(TABLE)).figure(), parser.parse_args().out), sep="\n")


if __name__ == "__main__":
    main()
