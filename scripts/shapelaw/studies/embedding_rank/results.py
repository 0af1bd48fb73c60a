"""The cost of a low rank of the embedding, in parameters (Wies et al. 2021, section 5.1 and figure 2).

Input: rows of `depth, width, embedding_rank, positional_rank, seed, test_loss, block_params, total_params, step_flops`;
an empty rank is full. Networks differ in ranks and width alone: they have one vocabulary, text and recipe, where the
table says.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

from shapelaw.fits.curves import SIZE_LABELS, SizeAxis
from shapelaw.fits.inputs import read_table
from shapelaw.fits.redundancy import interval_words, needed_words
from shapelaw.report.tables import plain_rows
from shapelaw.report.write import Results, Table
from shapelaw.studies.embedding_rank import figures, tables
from shapelaw.studies.embedding_rank.analysis import (
    POSITIONS,
    EmbeddingAnalysis,
    analyse_runs,
    check_rank_runs,
)
from shapelaw.studies.embedding_rank.answer import answer
from shapelaw.studies.embedding_rank.study import NAME

_SHARES = dict.fromkeys(("redundancy", "low", "high", "rank_over_width"), ".3f")


def results(arguments: argparse.Namespace) -> Results:
    """The results of a table of runs.

    Raises:
        UserError: the table can't be used.
    """
    return present(analyse(arguments.input))


def analyse(runs: Path) -> EmbeddingAnalysis:
    """Read a table of runs (.csv or .parquet) and analyse it.

    Raises:
        UserError: the table can't be used.
    """
    return analyse_runs(check_rank_runs(read_table(runs), str(runs)))


def present(analysis: EmbeddingAnalysis) -> Results:
    """The tables, figures and fit.json of an analysis."""
    made = {
        "losses": Table(
            tables.losses_table(analysis),
            "Test loss at full and at low rank, in nats per token.",
            {"test_loss": ".4f"},
        ),
        "redundancy": Table(
            tables.redundancy_table(analysis),
            "Redundancy: the share of its size that a network of full rank and equal loss saves, with 68% intervals.",
            _SHARES,
        ),
        "needed": Table(tables.needed_table(analysis), "The rank from which on no loss is significant."),
        "comparison": Table(
            tables.comparison_table(analysis),
            "Our redundancy beside the published one (Wies et al. 2021).",
            dict.fromkeys(("ours", "low", "high", "published"), ".3f"),
        ),
    }
    drawn = {"losses": figures.losses_figure(analysis), "redundancy": figures.redundancy_figure(analysis)}
    return Results(made, drawn, _fit(analysis), summary(analysis), answer=answer(made))


def summary(analysis: EmbeddingAnalysis) -> str:
    """Each network's redundancy in the blocks' parameters, and the rank that is enough, a sentence a line."""
    lines = []
    if analysis.noise is None:
        lines.append("Seed noise: no network has two seeds, so redundancies have no intervals.")
    else:
        lines.append(
            f"Seed noise: {analysis.noise.std:.3g} per run, {analysis.noise.dof:.0f} degrees of freedom."
        )
    for one in analysis.found:
        if one.axis is SizeAxis.BLOCK:
            found, rank = one.redundancy, int(one.row["embedding_rank"])
            interval = "" if math.isnan(found.low) else f" ({interval_words(found.low, found.high)})"
            positions = POSITIONS[bool(one.row.notna()["positional_rank"])]
            lines.append(
                f"r = {rank}, positions {positions}: redundancy in {SIZE_LABELS[one.axis]} "
                f"{found.value:.0%}{interval}, {found.status}."
            )
    for words, needed in analysis.needed.items():
        lines.append(f"Positions {words}: {needed_words(needed)}.")
    return "\n".join(lines)


def _fit(analysis: EmbeddingAnalysis) -> dict[str, Any]:
    """The content of fit.json."""
    return {
        "study": NAME,
        "model": "1 - size of the full-rank network of equal loss / size, by monotone interpolation",
        "status": "no noise estimate" if analysis.noise is None else "measured",
        "noise": None if analysis.noise is None else analysis.noise.std,
        "redundancy": plain_rows(tables.redundancy_table(analysis)),
        "needed": plain_rows(tables.needed_table(analysis)),
    }
