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
from shapelaw.studies.assumptions.results import EXPONENTS, PassRates, pass_rate_chart, title_of

TABLE = Path(__file__).resolve().parents[1] / "docs" / "results" / "assumptions_pass_rate.csv"


def panels(table: pd.DataFrame) -> list[PassRates]:
    """The panels in the order of the table."""
    found = []
    for (model, weights, layer), mine in table.groupby(["model", "weights", "layer"], sort=False):
        float32 = mine[mine["tolerance"].isna()]
        rates = {
            exponent: mine.loc[mine["tolerance"] == 10.0**exponent, "rate"].tolist() for exponent in EXPONENTS
        }
        title = title_of(str(model), str(weights), str(layer))
        context, width = int(mine["context"].iloc[0]), int(mine["width"].iloc[0])
        found.append(
            PassRates(title, context, width, float32["size"].tolist(), rates, float32["rate"].tolist())
        )
    return found


def main() -> None:
    """Draw the figure."""
    parser = command_line(__doc__)
    parser.add_argument("--out", type=Path, required=True, help="path of the figure without its ending")
    print(
        *save_figure(pass_rate_chart(panels(pd.read_csv(TABLE))).figure(), parser.parse_args().out), sep="\n"
    )


if __name__ == "__main__":
    main()
