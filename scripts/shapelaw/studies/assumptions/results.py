"""The memorization theorem's assumptions on real networks (Mahdavi et al. 2024, section 5.1).

Input: the folder layers/ that scripts/check_assumptions.py wrote, one .npz file a layer.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from shapelaw.errors import UserError
from shapelaw.report.write import Results, Table
from shapelaw.studies.assumptions.answer import answer
from shapelaw.studies.assumptions.figures import pass_rate_figure
from shapelaw.studies.assumptions.stored_findings import Row, read_rows
from shapelaw.studies.assumptions.study import NAME
from shapelaw.studies.assumptions.tables import (
    ASSUMPTIONS,
    curve_table,
    in_order,
    layer_table,
    sensitivity_table,
    verdict_table,
)
from shapelaw.theory.memorization import TOLERANCE


def results(arguments: argparse.Namespace) -> Results:
    """The results of a folder of layers.

    Raises:
        UserError: a layer can't be read, or the folder has none.
    """
    rows = read_rows(arguments.input)
    if not rows:
        raise UserError(f"{arguments.input} has no layers; measure some: snakemake assumptions")
    return present(rows)


def present(rows: Sequence[Row]) -> Results:
    """Verdicts beside the published ones, each layer's ranks, the effect of the tolerance, and figure 1."""
    verdicts = verdict_table(rows)
    known = verdicts[verdicts["published"].notna()]
    fit = {
        "study": NAME,
        "status": "measured",
        "tolerance": TOLERANCE,
        "layers": len(rows),
        "verdicts_published": len(known),
        "verdicts_that_agree": int((known["published"] == known["ours"]).sum()),
    }
    tables = {
        "verdicts": Table(
            verdicts,
            "Assumptions 1 to 3 and general position, published and ours.",
            {"rate": ".4f", "tolerance": ".0e", "holds_below": ".1e"},
        ),
        "layers": Table(
            layer_table(rows),
            "Sizes and ranks of each layer's queries.",
            {"smallest_kept": ".1e", "largest_dropped": ".1e", "float32_tolerance": ".1e"},
        ),
        "sensitivity": Table(sensitivity_table(rows), "The share that passes, at each tolerance."),
        "pass_rate": Table(
            curve_table(rows),
            "Share of random subsets that are linearly independent.",
            {"tolerance": ".1e"},
        ),
    }
    return Results(tables, {"pass_rate": pass_rate_figure(rows)}, fit, summary(rows), answer=answer(tables))


def summary(rows: Sequence[Row]) -> str:
    """A sentence for each layer on the assumptions that hold."""
    lines = []
    for row in in_order(rows):
        held = [ASSUMPTIONS[name] for name, holds in row.findings.verdicts(TOLERANCE).items() if holds]
        lines.append(
            f"{row.model}, {row.weights}, {row.layer}: {', '.join(held) or 'nothing'} holds at a tolerance of "
            f"{TOLERANCE:.0e}."
        )
    return "\n".join(lines)
