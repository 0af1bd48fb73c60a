"""The cost of a low rank of the positional embedding (Wies et al. 2021, appendix C.4 and figure 7).

Input: rows of `depth, width, vocab_size, context_length, embedding_rank, positional_rank, seed, test_loss,
block_params, total_params, step_flops`; an empty rank is a plain embedding, and one of the two must be. Networks
differ in ranks alone: they have one text and recipe, where the table says.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

from shapelaw.fits.inputs import read_table
from shapelaw.fits.noise import noise_sentence
from shapelaw.fits.redundancy import needed_words
from shapelaw.report.tables import plain_rows
from shapelaw.report.write import Results, Table
from shapelaw.studies.positional_rank import figures, tables
from shapelaw.studies.positional_rank.analysis import (
    Equivalent,
    PositionalAnalysis,
    analyse_runs,
    check_positional_runs,
)
from shapelaw.studies.positional_rank.answer import answer
from shapelaw.studies.positional_rank.study import NAME

_RANKS = dict.fromkeys(("low", "high"), ".3g")


def results(arguments: argparse.Namespace) -> Results:
    """The results of a table of runs.

    Raises:
        UserError: the table can't be used.
    """
    return present(analyse(arguments.input))


def analyse(runs: Path) -> PositionalAnalysis:
    """Read a table of runs (.csv or .parquet) and analyse it.

    Raises:
        UserError: the table can't be used.
    """
    return analyse_runs(check_positional_runs(read_table(runs), str(runs)))


def present(analysis: PositionalAnalysis) -> Results:
    """The tables, figures and fit.json of an analysis."""
    made = {
        "losses": Table(
            tables.losses_table(analysis),
            "Test loss in nats per token; cost: against plain embeddings, with 95% intervals.",
            dict.fromkeys(("test_loss", "cost", "cost_low", "cost_high"), ".4f"),
        ),
        "needed": Table(tables.needed_table(analysis), "The rank from which nothing is lost."),
        "equivalents": Table(
            tables.equivalents_table(analysis),
            "The vocabulary rank that costs as much as a positional rank, with 68% intervals.",
            {"vocabulary_rank": ".3g", "over_full": ".3f", **_RANKS},
        ),
        "comparison": Table(
            tables.comparison_table(analysis),
            "Ours beside the published statements (Wies et al. 2021).",
            {"ours": ".3g", **_RANKS},
        ),
    }
    drawn = {"losses": figures.losses_figure(analysis), "equivalents": figures.equivalents_figure(analysis)}
    return Results(made, drawn, _fit(analysis), summary(analysis), answer=answer(made))


def summary(analysis: PositionalAnalysis) -> str:
    """The rank that is enough in each series, and the equivalent of every positional rank, a sentence a line."""
    lines = [noise_sentence(analysis.noise)]
    for (name, against), needed in analysis.needed.items():
        lines.append(f"The {name} embedding, against {against}: {needed_words(needed)}.")
    lines += [_equal(one) for one in analysis.equivalents]
    return "\n".join(lines)


def _equal(one: Equivalent) -> str:
    interval = "" if math.isnan(one.low) else f" ({_interval(one.low, one.high)})"
    return (
        f"Positional rank {one.positional_rank} costs as much as vocabulary rank {one.rank:.3g}{interval}, "
        f"{one.status}."
    )


def _interval(low: float, high: float) -> str:
    if math.isinf(high):
        return "open on both sides" if low == 0 else f"{low:.3g} and more"
    return f"up to {high:.3g}" if low == 0 else f"{low:.3g} to {high:.3g}"


def _fit(analysis: PositionalAnalysis) -> dict[str, Any]:
    """The content of fit.json."""
    return {
        "study": NAME,
        "model": "rank of the vocabulary series with equal loss, by monotone interpolation in log rank",
        "status": "no noise estimate" if analysis.noise is None else "measured",
        "noise": None if analysis.noise is None else analysis.noise.std,
        "needed": plain_rows(tables.needed_table(analysis)),
        "equivalents": plain_rows(tables.equivalents_table(analysis)),
    }
