"""The memorization theorem's assumptions on real networks (Mahdavi et al. 2024, section 5.1).

Input: the folder layers/ that scripts/check_assumptions.py wrote, one .npz file a layer.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence

import pandas as pd

from shapelaw.errors import UserError
from shapelaw.report.write import Answer, Results, Table, tables_of
from shapelaw.studies.assumptions.figures import pass_rate_figure
from shapelaw.studies.assumptions.findings import Row, read_rows
from shapelaw.studies.assumptions.study import NAME
from shapelaw.studies.assumptions.tables import ASSUMPTIONS, HOLDS, TABLES, in_order
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
    tables = tables_of(TABLES, TABLES, rows)
    known, agree = agreement(tables["verdicts"].frame)
    fit = {
        "study": NAME,
        "status": "measured",
        "tolerance": TOLERANCE,
        "layers": len(rows),
        "verdicts_published": known,
        "verdicts_that_agree": agree,
    }
    return Results(tables, {"pass_rate": pass_rate_figure(rows)}, fit, summary(rows), answer=answer(tables))


def agreement(verdicts: pd.DataFrame) -> tuple[int, int]:
    """The number of verdicts that were published, and how many of them are ours."""
    known = verdicts[verdicts["published"].notna()]
    return len(known), int((known["published"] == known["ours"]).sum())


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


def answer(tables: Mapping[str, Table]) -> Answer:
    """The number of layers on which each assumption holds, and how many verdicts agree with published ones.

    Args:
        tables: `verdicts` of the study.
    """
    verdicts = tables["verdicts"].frame
    said = ", ".join(
        f"{name} on {int((rows['ours'] == HOLDS).sum())} of {len(rows)}"
        for name, rows in verdicts.groupby("assumption", sort=True)
    )
    known, agree = agreement(verdicts)
    published = f"{agree} of {known} published verdicts agree with ours." if known else ""
    return Answer(f"Layers on which it holds: {said}.", bool(len(verdicts)), published)
