"""ReLU networks and attention heads of equal parameters on the same examples (Mahdavi et al. 2024, proposition 3).

Input: the table of scripts/compare_relu.py, one row per network.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from shapelaw.errors import UserError
from shapelaw.fits.inputs import read_table
from shapelaw.fits.significance import Mean, mean_of
from shapelaw.report.tables import plain_rows
from shapelaw.report.write import Answer, Results, Table
from shapelaw.studies.memorization.study import RELU

COLUMNS = (
    *("task", "context_type", "heads", "context", "head_dim", "examples", "seed", "steps"),
    *("attention_params", "relu_units", "relu_params", "measure", "attention", "relu"),
    *("attention_at_least", "relu_at_most"),
)


def results(arguments: argparse.Namespace) -> Results:
    """The results: one row per network, ordered by its sizes.

    Raises:
        UserError: the table lacks columns or can't be read.
    """
    table = read_table(arguments.input)
    if missing := [name for name in COLUMNS if name not in table]:
        raise UserError(
            f"{arguments.input} has no {', '.join(missing)}; make it again: rm {arguments.input} && snakemake relu"
        )
    table = table.sort_values(["task", "context", "heads", "examples", "seed"], ignore_index=True)
    lines, differences = [], []
    for (task, measure), rows in table.groupby(["task", "measure"], sort=True):
        ours, theirs = rows["attention"].mean(), rows["relu"].mean()
        lines.append(
            f"{task}: {measure} {ours:.3f} of attention and {theirs:.3f} of ReLU networks, means over {len(rows)}."
        )
        differences.append((f"{task}: {measure}", mean_of(rows["relu"] - rows["attention"])))
    fit = {"study": RELU, "status": "measured", "networks": len(table), "rows": plain_rows(table)}
    caption = "Attention and ReLU networks of equal parameters on the same examples."
    shown = Table(table, caption, {"attention": ".3f", "relu": ".3f"})
    return Results({RELU: shown}, {}, fit, "\n".join(lines), answer=_answer(differences))


def _answer(differences: Sequence[tuple[str, Mean]]) -> Answer:
    """The difference for each task, with its interval over networks."""
    said = "; ".join(
        f"{what} {mean.value:+.3f} "
        + ("(one network)" if mean.seeds == 1 else f"({mean.low:+.3f} to {mean.high:+.3f})")
        for what, mean in differences
    )
    return Answer(
        f"ReLU networks minus attention heads, means over networks with 95% intervals: {said}.",
        any(mean.significant for _, mean in differences),
        "proposition 3 of Mahdavi et al. 2024 bounds both.",
    )
