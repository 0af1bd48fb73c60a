"""What the answer tells of public runs that it has not seen, against what was measured.

  shapelaw predict workflow/reference/bian_morph.csv --out DIR

The table has a row for each run: name, budget, depth, width, vocab_size, tied, total_params, tokens, loss; lines that
begin with # are comments. Written to DIR: predicted.csv (each run's told cost with its interval, and the measured one),
predicted_budgets.csv, and the figure predicted.svg. Predict a grid before its runs become evidence, and keep the files:
afterwards the answer has seen them.
Exit codes: 0 written, 2 unusable input.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from shapelaw.advice.evidence.predicted import by_budget, predicted, read_public
from shapelaw.advice.evidence.public import public_evidence
from shapelaw.errors import command_line, end_with
from shapelaw.report.charts import Chart, Mark, Panel, Points, Span
from shapelaw.report.plots import INK, MUTED, PAGE, SECOND
from shapelaw.storage.files import write_text


def main() -> None:
    """Parse the command line, predict, and write."""
    parser = command_line(__doc__, "TABLE [OPTIONS]")
    parser.add_argument("table", type=Path, metavar="TABLE", help="the runs, a CSV")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="where the files go")
    arguments = parser.parse_args()
    table = predicted(read_public(arguments.table), public_evidence(), str(arguments.table))
    budgets = by_budget(table)
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name, frame in (("predicted", table), ("predicted_budgets", budgets)):
        write_text(arguments.out / f"{name}.csv", frame.to_csv(index=False, float_format="%.4g"))
    figure_of(table).figure().savefig(arguments.out / "predicted.svg")
    print(budgets.to_string(index=False, float_format=lambda value: f"{value:.3g}"))


def figure_of(table: pd.DataFrame) -> Chart:
    """Measured against told costs, a panel for each budget, runs deeper than the told best depth apart."""
    most = 1.1 * float(table[["told", "measured"]].to_numpy().max())
    panels = []
    for budget, part in table.groupby("budget", sort=False):
        told, measured, low, high = (part[name].to_numpy() for name in ("told", "measured", "low", "high"))
        deeper = (part["depth"] > part["best_depth"]).to_numpy()
        marks: list[Mark] = [Points([0.0, most], [0.0, most], "predicted = measured", MUTED, line="-")]
        for side, words, color in (
            (~deeper, "no deeper than the predicted best depth", INK),
            (deeper, "deeper than the predicted best depth", SECOND),
        ):
            bars = np.stack([told - low, high - told])[:, side]
            look = {"markersize": 3, "elinewidth": 0.5}
            marks.append(Points(told[side], measured[side], words, color, "o", x_err=bars, more=look))
        x, y = Span("predicted excess loss (nats)"), Span("measured excess loss (nats)")
        panels.append(Panel(marks, x, y, f"{tokens_of(str(budget))}: {len(part)} runs"))
    return Chart(panels, len(panels), PAGE, 2.6, share_x=True, share_y=True)


def tokens_of(budget: str) -> str:
    """`20N` in words: 20 tokens per parameter; another name as it is."""
    return f"{budget[:-1]} tokens per parameter" if budget[:-1].isdigit() and budget.endswith("N") else budget


if __name__ == "__main__":
    end_with(main)
