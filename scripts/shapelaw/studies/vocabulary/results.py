"""The effect of the vocabulary on the best depth (Wies et al. 2021, section 5.2, figures 1, 3 and 5).

Input: rows of `vocab_size, embedding_rank, depth, width, seed, test_loss`; an empty rank is full. `block_params`,
`total_params`, `step_flops`, `bits_per_byte` and `tokens_trained` are used where the table has them.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from shapelaw.fits.curves import SizeAxis
from shapelaw.fits.line import FitStatus
from shapelaw.fits.noise import chance_words
from shapelaw.report.charts import Chart
from shapelaw.report.tables import plain_rows
from shapelaw.report.write import Answer, Results, Table
from shapelaw.studies.given_runs import study_runs
from shapelaw.studies.grid.results import cell_tables
from shapelaw.studies.transitions.analysis import Options
from shapelaw.studies.transitions.options import add_size_options as add_options
from shapelaw.studies.transitions.sentences import transition_sentences
from shapelaw.studies.vocabulary import figures, tables
from shapelaw.studies.vocabulary.analysis import VocabularyAnalysis, analyse_series
from shapelaw.studies.vocabulary.study import NAME

__all__ = ["add_options", "results"]
SIGNIFICANT = 0.05
CLEAR_GAIN = 6.6  # of chi2 over a model with as many parameters: a factor of 27 in likelihood
PUBLISHED = "a width beyond min(V, r) adds little, so depth pays earlier (b near 1; Wies et al. 2021)."
MIXED = "; embeddings of one matrix and of two factors, which train differently, are taken together"


def results(arguments: argparse.Namespace) -> Results:
    """The results of a table of runs.

    Raises:
        UserError: the table can't be used.
    """
    options = Options(size=SizeAxis(arguments.size), draws=arguments.draws)
    given = study_runs(arguments.input, arguments.keep)
    return present(analyse_series(given.table, given.source, options)).after(given.notes)


def present(analysis: VocabularyAnalysis) -> Results:
    """The tables, figures and fit.json of an analysis."""
    losses = tables.losses_table(analysis)
    made = {
        **cell_tables(analysis.series, tables.named, "each vocabulary and rank"),
        "relation": Table(tables.relation_table(analysis), "The dependence of the transition on min(V, r)."),
        "losses": Table(
            losses,
            "Test loss in nats per token, bits per byte, and text seen.",
            {name: how for name, how in (("test_loss", ".4f"), ("text_bytes", ".3g")) if name in losses},
        ),
        "seed_noise": Table(tables.spread_of_seeds(analysis), "Spread of the loss over seeds."),
        "comparison": Table(
            tables.comparison_table(analysis),
            "Transitions beside min(V, r) and the published ones (Wies et al. 2021).",
            dict.fromkeys(("ours", "low", "high", "bound", "bound_err"), ".1f")
            | dict.fromkeys(("over_bottleneck", "published_over_bottleneck"), ".2f"),
        ),
    }
    drawn: dict[str, Chart | str] = {
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
    lines += _corpus_sentences(analysis)
    return "\n".join([*lines, *_relation_sentences(analysis)])


def _corpus_sentences(analysis: VocabularyAnalysis) -> Iterator[str]:
    """The series of each corpus, where there are several: they differ in their text too."""
    corpora: dict[str, list[str]] = {}
    for one in analysis.series:
        if one.corpus is not None:
            corpora.setdefault(one.corpus, []).append(one.name)
    if len(corpora) > 1:
        told = [f"{name} ({'; '.join(series)})" for name, series in corpora.items()]
        yield f"Series differ in their text too: {', '.join(told)}."


def _relation_sentences(analysis: VocabularyAnalysis) -> Iterator[str]:
    """Both models of all series, and of those of one matrix and of two factors where there are both."""
    for row in tables.relation_table(analysis).to_dict("records"):
        of = "" if row["of"] == "all" else f" ({row['of']})"
        if row["model"] == tables.POWER and math.isnan(row["b"]):
            yield f"How the transition follows min(V, r){of} can't be fitted, {row['status']}: {row['message']}."
        elif row["status"] == FitStatus.CURVED.value:
            model = (
                "power of min(V, r)"
                if row["model"] == tables.POWER
                else "proportion to min(V, r) that levels off"
            )
            yield f"No {model} fits the transition width{of}: {row['message']}."
        elif row["model"] == tables.POWER:
            yield (
                f"Transition width ~ min(V, r)^b{of} with b = {row['b']:.2f} ± {row['b_err']:.2f}; in proportion "
                f"(b = 1): {chance_words(row['p_proportional'])}; without effect (b = 0): "
                f"{chance_words(row['p_none'])}; {row['message']}."
            )
        elif not math.isnan(row["ratio"]):
            yield (
                f"In proportion and then the same{of}: {row['ratio']:.2f} ± {row['ratio_err']:.2f} of min(V, r) up to "
                f"width {row['flat_width']:.0f} ± {row['flat_width_err']:.0f}; {row['message']}."
            )


def _fit(analysis: VocabularyAnalysis) -> dict[str, Any]:
    """The content of fit.json."""
    return {
        "study": NAME,
        "models": {
            tables.POWER: "log width = a + b log min(V, r)",
            tables.LEVEL: "width = min(ratio min(V, r), flat_width)",
        },
        "relations": plain_rows(tables.relation_table(analysis)),
        "transitions": plain_rows(tables.comparison_table(analysis)),
    }


def answer(tables: Mapping[str, Table]) -> Answer:
    """How the transition follows min(V, r), by the model that fits; else why nothing can be said.

    It is that of embeddings of one matrix where those have enough transitions, else that of all series.

    Args:
        tables: `relation` and `transitions` of the study.
    """
    rows = {(row["of"], row["model"]): row for row in tables["relation"].frame.to_dict("records")}
    alone = rows.get(("one matrix", "power"))
    of = "all" if alone is None or pd.isna(alone["b"]) else "one matrix"
    power, level = rows[of, "power"], rows[of, "level"]
    note = MIXED if of == "all" and alone is not None else ""
    if pd.isna(power["b"]):
        return Answer(
            f"How the transition follows min(V, r) can't be fitted: {power['message']}.", False, PUBLISHED
        )
    if power["status"] == FitStatus.CURVED:
        return _without_a_power(power, level, note)
    decided = power["p_none"] < SIGNIFICANT or power["p_proportional"] < SIGNIFICANT
    said = "" if decided else "; neither b = 0 nor b = 1 is excluded"
    value = f"{power['b']:.2f} \u00b1 {power['b_err']:.2f}"
    return Answer(
        f"The width where depth pays goes as min(V, r)^b with b = {value}{said}{note}.",
        bool(decided),
        PUBLISHED,
    )


def _without_a_power(power: Mapping[Any, Any], level: Mapping[Any, Any], note: str) -> Answer:
    """The answer where the transitions lie on no power of min(V, r)."""
    wrong = f"The width where depth pays follows no power of min(V, r) ({chance_words(power['p_fit'])})"
    better = level["status"] == FitStatus.CONVERGED and power["chi2"] - level["chi2"] >= CLEAR_GAIN
    if not better:
        return Answer(
            f"{wrong}; a level beyond some width does not explain it either{note}.", False, PUBLISHED
        )
    return Answer(
        f"The width where depth pays is {level['ratio']:.2f} \u00b1 {level['ratio_err']:.2f} of min(V, r) up to width "
        f"{level['flat_width']:.0f} \u00b1 {level['flat_width_err']:.0f}, and the same beyond; no power of min(V, r) "
        f"fits ({chance_words(power['p_fit'])}){note}.",
        True,
        PUBLISHED,
    )
