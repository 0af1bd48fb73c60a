"""The effect of the vocabulary on the best depth (Wies et al. 2021, section 5.2, figures 1, 3 and 5).

Input: rows of `vocab_size, embedding_rank, depth, width, seed, test_loss`; an empty rank is full. `block_params`,
`total_params`, `step_flops`, `bits_per_byte` and `tokens_trained` are used where the table has them.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from shapelaw.fits.curves import SizeAxis
from shapelaw.fits.inputs import read_table
from shapelaw.report.tables import plain_rows
from shapelaw.report.write import Results, Table
from shapelaw.studies.transitions.analysis import Options
from shapelaw.studies.transitions.options import add_size_options as add_options
from shapelaw.studies.transitions.results import WIDTH_FORMATS
from shapelaw.studies.transitions.sentences import transition_sentences
from shapelaw.studies.vocabulary import figures, tables
from shapelaw.studies.vocabulary.analysis import VocabularyAnalysis, analyse_series
from shapelaw.studies.vocabulary.answer import answer
from shapelaw.studies.vocabulary.study import NAME

__all__ = ["add_options", "results"]


def results(arguments: argparse.Namespace) -> Results:
    """The results of a table of runs.

    Raises:
        UserError: the table can't be used.
    """
    return present(analyse(arguments.input, Options(size=SizeAxis(arguments.size), draws=arguments.draws)))


def analyse(runs: Path, options: Options | None = None) -> VocabularyAnalysis:
    """Read a table of runs (.csv or .parquet) and analyse it.

    Raises:
        UserError: the table can't be used.
    """
    return analyse_series(read_table(runs), str(runs), options or Options())


def present(analysis: VocabularyAnalysis) -> Results:
    """The tables, figures and fit.json of an analysis."""
    made = {
        "transitions": Table(
            tables.transitions_table(analysis),
            "The width at which the deeper network begins to win, for each vocabulary and rank.",
            WIDTH_FORMATS,
        ),
        "size_axes": Table(
            tables.size_axes_table(analysis),
            "The transitions at equal parameters of the blocks, all parameters, and FLOPs.",
            WIDTH_FORMATS,
        ),
        "relation": Table(tables.relation_table(analysis), "The dependence of the transition on min(V, r)."),
        "losses": Table(
            tables.losses_table(analysis),
            "Test loss in nats per token, bits per byte, and text seen.",
            {"test_loss": ".4f", "text_bytes": ".3g"},
        ),
        "seed_noise": Table(tables.seed_noise_table(analysis), "Spread of the loss over seeds."),
        "comparison": Table(
            tables.comparison_table(analysis),
            "Transitions beside min(V, r) and the published ones (Wies et al. 2021).",
            dict.fromkeys(("ours", "low", "high"), ".1f") | {"over_bottleneck": ".2f"},
        ),
    }
    drawn = {
        "losses": figures.losses_figure(analysis),
        "relation": figures.relation_figure(analysis),
        "bits_per_byte": figures.bits_per_byte_figure(analysis),
    }
    return Results(made, drawn, _fit(analysis), summary(analysis), answer=answer(made))


def summary(analysis: VocabularyAnalysis) -> str:
    """Each transition beside min(V, r), and the line through them, a sentence a line."""
    lines = [
        f"{sentence}; min(V, r) is {one.bottleneck:,}."
        for one in analysis.series
        for sentence in transition_sentences(one.name, one.transitions)
    ]
    fit = analysis.relation
    if not fit.usable:
        lines.append(f"How the transition follows min(V, r) can't be fitted, {fit.status}: {fit.message}.")
    else:
        tested = tables.relation_table(analysis).iloc[0]
        lines.append(
            f"Transition width ~ min(V, r)^b with b = {fit.b:.2f} ± {fit.b_err:.2f}; in proportion (b = 1): "
            f"p = {tested['p_proportional']:.2g}; without effect (b = 0): p = {tested['p_none']:.2g}; {fit.message}."
        )
    return "\n".join(lines)


def _fit(analysis: VocabularyAnalysis) -> dict[str, Any]:
    """The content of fit.json."""
    return {
        "study": NAME,
        "model": "log width = a + b log min(V, r)",
        **analysis.relation.to_dict(),
        "transitions": plain_rows(tables.comparison_table(analysis)),
    }
