"""The figures of the vocabulary study."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from shapelaw.fits.curves import SIZE_COLUMNS, SIZE_LABELS, SizeAxis
from shapelaw.report.charts import Chart, Mark, Panel, Points, Span
from shapelaw.report.plots import ACCENT, COLUMN, INK, MUTED, PAGE, ordered_looks
from shapelaw.studies.transitions.figures import MOST_PANELS, NO_TRANSITION, curves_panel, transition_points
from shapelaw.studies.vocabulary.analysis import Relation, VocabularyAnalysis
from shapelaw.studies.vocabulary.tables import LEAST_CHANCE, losses_table


def losses_figure(analysis: VocabularyAnalysis) -> Chart:
    """Test loss of the depths of each vocabulary against size, with the transition (figures 1, 3 and 5).

    The ranks of a vocabulary stand side by side, on one size axis.
    """
    series = sorted(analysis.series, key=lambda one: (one.patches, one.vocab_size))
    looks = ordered_looks(sorted({int(d) for one in series for d in one.runs["depth"].unique()}))
    panels = [curves_panel(one.transitions, looks, one.name, "test loss (nats per token)") for one in series]
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
    table, column = losses_table(analysis), SIZE_COLUMNS[SizeAxis.TOTAL]
    if "bits_per_byte" not in table or column not in table:
        return "the runs have no bits per byte or no total_params"
    marks, looks = list[Mark](), ordered_looks(range(len(analysis.series)))
    for place, one in enumerate(analysis.series):
        same = table["embedding_rank"].isna() if one.rank is None else table["embedding_rank"] == one.rank
        same &= table["embedding"] == ("patches" if one.patches else "tokens")
        mine = table[(table["vocab_size"] == one.vocab_size) & same].sort_values(column)
        label = one.name
        if "text_bytes" in mine and mine["text_bytes"].notna().any():
            label += f" ({mine['text_bytes'].mean() / 1e6:.3g} MB of text seen)"
        look, bits = looks[place], mine["bits_per_byte"]
        marks.append(Points(mine[column], bits, label, look.color, look.marker, more={"markersize": 3.5}))
        front, step = bits.cummin(), {"drawstyle": "steps-post", "linewidth": 0.8}
        marks.append(Points(mine[column], front, "", look.color, line="-", more=step))
    marks.append(Points([], [], "best of this size or less", MUTED, line="-", more={"linewidth": 0.8}))
    x, y = Span(SIZE_LABELS[SizeAxis.TOTAL], "log"), Span("bits per byte of the test set")
    return Chart([Panel(marks, x, y)], width=1.2 * COLUMN, height=2.2 + 0.15 * len(marks) / 2, legend=1)
