"""The effect of the vocabulary on the best depth (Wies et al. 2021, section 5.2, figures 1, 3 and 5).

Input: rows of `vocab_size, embedding_rank, depth, width, seed, test_loss`; an empty rank is full. `block_params`,
`total_params`, `step_flops`, `bits_per_byte` and `tokens_trained` are used where the table has them.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from shapelaw.fits.line import FitStatus
from shapelaw.fits.noise import SIGNIFICANT, chance_words
from shapelaw.report.charts import Chart, Mark, Panel, Points, Span
from shapelaw.report.plots import ACCENT, COLUMN, INK, MUTED, PAGE, ordered_looks
from shapelaw.report.tables import plain_rows
from shapelaw.report.write import Answer, Results, Table, TableOf, assembled
from shapelaw.specs.sizes import SIZE_COLUMNS, SIZE_LABELS, SizeAxis
from shapelaw.studies.decoders.vocabulary_analysis import (
    LEAST_CHANCE,
    LEVEL,
    POWER,
    Relation,
    VocabularyAnalysis,
    analyse_series,
    comparison_table,
    corpus_of,
    losses_of,
    losses_table,
    named,
    relation_table,
    spread_of_seeds,
)
from shapelaw.studies.grid.results import cell_tables, results_of
from shapelaw.studies.transitions.figures import MOST_PANELS, NO_TRANSITION, curves_panel, transition_points
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
        {
            "losses": lambda _: losses_figure(analysis),
            "relation": lambda _: relation_figure(analysis),
            "bits_per_byte": lambda _: bits_per_byte_figure(analysis),
        },
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


def relation_figure(analysis: VocabularyAnalysis) -> Chart | str:
    """Transition width against min(V, r), the fitted line and width = min(V, r); without a transition, the reason."""
    places = [one.bottleneck for one in analysis.series]
    ends = np.array([min(places) * 0.8, max(places) * 1.25])
    drawn: list[Mark] = []
    for one in analysis.series:
        color, kind = (INK, "full rank") if one.rank is None else (ACCENT, "rank r")
        label = f"{kind}: transition, or a bound (triangle)"
        for row in one.transitions.bootstrap_rows[:1]:
            drawn += transition_points(one.bottleneck, row, color, label)
    if not drawn:
        return NO_TRANSITION
    equal = Points(ends, ends, "width = min(V, r)", MUTED, line="--", more={"linewidth": 0.8})
    marks = [equal, *drawn, *_models(analysis.relations[0], ends)]
    y = Span("width at which the deeper network wins", "whole log")
    return Chart([Panel(marks, Span("min(V, r)", "values", set(places)), y)], height=3.6, legend=1)


def _models(relation: Relation, ends: npt.NDArray[np.float64]) -> Iterator[Mark]:
    """The power law, and the proportion with its level; neither where its points don't lie on it."""
    power, level, thin = relation.power, relation.level, {"linewidth": 1.0}
    if power.usable and relation.power_chance >= LEAST_CHANCE:
        line = np.exp(power.a + power.b * np.log(ends))
        yield Points(
            ends, line, f"width ~ min(V, r)^({power.b:.2f} ± {power.b_err:.2f})", line="-", more=thin
        )
    if level.usable and relation.level_chance >= LEAST_CHANCE:
        at = np.array([ends[0], np.exp(level.level - level.k), ends[1]])
        line = np.exp(np.minimum(level.k + np.log(at), level.level))
        label = f"{np.exp(level.k):.2f} min(V, r) up to {np.exp(level.level):.0f}"
        yield Points(at, line, label, line=":", more=thin)


def bits_per_byte_figure(analysis: VocabularyAnalysis) -> Chart | str:
    """Bits per byte against all parameters, the only loss that vocabularies share; without the columns, the reason."""
    tables, column = [losses_of(one) for one in analysis.series], SIZE_COLUMNS[SizeAxis.TOTAL]
    if not all({"bits_per_byte", column} <= {*table} for table in tables):
        return "the runs have no bits per byte or no total_params"
    marks, looks = list[Mark](), ordered_looks(range(len(analysis.series)))
    for look, one, table in zip(looks.values(), analysis.series, tables, strict=True):
        mine = table.sort_values(column)
        label = one.name
        if "text_bytes" in mine and mine["text_bytes"].notna().any():
            label += f" ({mine['text_bytes'].mean() / 1e6:.3g} MB of text seen)"
        bits = mine["bits_per_byte"]
        marks.append(Points(mine[column], bits, label, look.color, look.marker, more={"markersize": 3.5}))
        front, step = bits.cummin(), {"drawstyle": "steps-post", "linewidth": 0.8}
        marks.append(Points(mine[column], front, "", look.color, line="-", more=step))
    marks.append(Points([], [], "best of this size or less", MUTED, line="-", more={"linewidth": 0.8}))
    x, y = Span(SIZE_LABELS[SizeAxis.TOTAL], "log"), Span("bits per byte of the test set")
    return Chart([Panel(marks, x, y)], width=1.2 * COLUMN, height=2.2 + 0.15 * len(marks) / 2, legend=1)
