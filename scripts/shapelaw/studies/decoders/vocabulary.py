"""The effect of the vocabulary on the best depth (Wies et al. 2021, section 5.2, figures 1, 3 and 5).

Input: rows of `vocab_size, embedding_rank, depth, width, seed, test_loss`; an empty rank is full. `block_params`,
`total_params`, `step_flops`, `bits_per_byte` and `tokens_trained` are used where the table has them.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import pandas as pd

from shapelaw.fits.line import FitStatus
from shapelaw.fits.noise import SIGNIFICANT, chance_words
from shapelaw.report.charts import Chart
from shapelaw.report.plots import PAGE, ordered_looks
from shapelaw.report.tables import plain_rows
from shapelaw.report.write import Answer, Results, Table, TableOf, assembled
from shapelaw.studies.decoders.vocabulary_analysis import (
    LEVEL,
    POWER,
    VocabularyAnalysis,
    analyse_series,
    comparison_table,
    corpus_of,
    losses_table,
    named,
    relation_table,
    spread_of_seeds,
)
from shapelaw.studies.grid.results import cell_tables, results_of
from shapelaw.studies.transitions.figures import MOST_PANELS, curves_panel
from shapelaw.studies.transitions.results import add_size_options as add_options

__all__ = ["add_options", "results"]
CLEAR_GAIN = 6.6  # of chi2 over a model with as many parameters: a factor of 27 in likelihood
TABLES = {
    "relation": TableOf(relation_table, "The dependence of the transition on min(V, r)."),
    "losses": TableOf(
        losses_table,
        "Test loss in nats per token, bits per byte, and text seen.",
        {"test_loss": ".4f", "text_bytes": ".3g"},
    ),
    "seed_noise": TableOf(spread_of_seeds, "Spread of the loss over seeds."),
    "comparison": TableOf(
        comparison_table,
        "Transitions beside min(V, r) and the published ones (Wies et al. 2021).",
        dict.fromkeys(("ours", "low", "high", "bound", "bound_err"), ".1f")
        | dict.fromkeys(("over_bottleneck", "published_over_bottleneck"), ".2f"),
    ),
}
MIXED = "; embeddings of one matrix and of two factors, which train differently, are taken together"


def results(arguments: argparse.Namespace) -> Results:
    """The results of a table of runs.

    Raises:
        UserError: the table can't be used.
    """
    return results_of(arguments, analyse_series, present)


def present(analysis: VocabularyAnalysis) -> Results:
    """The tables, figures and fit.json of an analysis."""
    own = {name: partial(one.of, analysis) for name, one in TABLES.items()}
    return assembled(
        analysis.parts,
        {**cell_tables(analysis.series, analysis.parts, named, "each vocabulary and rank"), **own},
        {"losses": lambda _: losses_figure(analysis)},
        {"the texts": lambda _: _corpus_sentences(analysis)},
        lambda _: _fit(analysis),
        answer,
    )


def _corpus_sentences(analysis: VocabularyAnalysis) -> Iterator[str]:
    """The series of each corpus, where there are several: they differ in their text too."""
    corpora: dict[str, list[str]] = {}
    for one in analysis.series:
        if (corpus := corpus_of(one)) is not None:
            corpora.setdefault(corpus, []).append(one.name)
    if len(corpora) > 1:
        told = [f"{name} ({'; '.join(series)})" for name, series in corpora.items()]
        yield f"Series differ in their text too: {', '.join(told)}."


def _fit(analysis: VocabularyAnalysis) -> dict[str, Any]:
    """The content of fit.json."""
    return {
        "study": "vocabulary",
        "models": {
            POWER: "log width = a + b log min(V, r)",
            LEVEL: "width = min(ratio min(V, r), flat_width)",
        },
        "relations": plain_rows(relation_table(analysis)),
        "transitions": plain_rows(comparison_table(analysis)),
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
        return Answer(f"How the transition follows min(V, r) can't be fitted: {power['message']}.", False)
    if power["status"] == FitStatus.CURVED:
        return _without_a_power(power, level, note)
    decided = power["p_none"] < SIGNIFICANT or power["p_proportional"] < SIGNIFICANT
    said = "" if decided else "; neither b = 0 nor b = 1 is excluded"
    value = f"{power['b']:.2f} \u00b1 {power['b_err']:.2f}"
    return Answer(
        f"The width where depth pays goes as min(V, r)^b with b = {value}{said}{note}.",
        bool(decided),
    )


def _without_a_power(power: Mapping[Any, Any], level: Mapping[Any, Any], note: str) -> Answer:
    """The answer where the transitions lie on no power of min(V, r)."""
    wrong = f"The width where depth pays follows no power of min(V, r) ({chance_words(power['p_fit'])})"
    better = level["status"] == FitStatus.CONVERGED and power["chi2"] - level["chi2"] >= CLEAR_GAIN
    if not better:
        return Answer(f"{wrong}; a level beyond some width does not explain it either{note}.", False)
    return Answer(
        f"The width where depth pays is {level['ratio']:.2f} \u00b1 {level['ratio_err']:.2f} of min(V, r) up to width "
        f"{level['flat_width']:.0f} \u00b1 {level['flat_width_err']:.0f}, and the same beyond; no power of min(V, r) "
        f"fits ({chance_words(power['p_fit'])}){note}.",
        True,
    )


def losses_figure(analysis: VocabularyAnalysis) -> Chart:
    """Test loss of the depths of each vocabulary against size, with the transition (figures 1, 3 and 5).

    The ranks of a vocabulary stand side by side, on one size axis.
    """
    series = sorted(analysis.series, key=lambda one: (one.patches, one.vocab_size))
    looks = ordered_looks(sorted({int(d) for one in series for d in one.runs["depth"].unique()}))
    panels = [curves_panel(one.transitions, looks, one.name) for one in series]
    columns = min(MOST_PANELS, len(series))
    rows = -(-len(series) // columns)
    return Chart(panels, columns, PAGE, 2.3 * rows + 0.4, share_x=True, legend=6)
