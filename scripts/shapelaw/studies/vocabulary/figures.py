"""The figures of the vocabulary study."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from shapelaw.fits.curves import SIZE_COLUMNS, SIZE_LABELS, SizeAxis
from shapelaw.report.plots import (
    ACCENT,
    COLUMN,
    INK,
    MUTED,
    PAGE,
    legend_below,
    log_axis,
    new_figure,
    ordered_looks,
    size_axis,
    style,
    value_axis,
)
from shapelaw.studies.transitions.drawing import NO_TRANSITION, draw_curves, draw_transition
from shapelaw.studies.vocabulary.analysis import Relation, VocabularyAnalysis
from shapelaw.studies.vocabulary.tables import LEAST_CHANCE, losses_table

PANELS = 3  # in a row


def losses_figure(analysis: VocabularyAnalysis) -> Figure:
    """Test loss of the depths of each vocabulary against size, with the transition (figures 1, 3 and 5).

    The ranks of a vocabulary stand side by side, on one size axis.
    """
    series = sorted(analysis.series, key=lambda one: (one.patches, one.vocab_size))
    columns = min(PANELS, len(series))
    rows = math.ceil(len(series) / columns)
    with style():
        figure, axes = new_figure(rows, columns, width=PAGE, height=2.3 * rows + 0.4, sharex=True)
        depths = sorted({int(d) for one in series for d in one.runs["depth"].unique()})
        looks = ordered_looks(depths)
        panels: list[Axes] = axes.ravel().tolist()
        for axis, one in zip(panels, series, strict=False):
            draw_curves(axis, one.compared, one.transitions.bootstrap_rows, looks)
            axis.set_title(one.name)
            axis.tick_params(labelbottom=True)
        for axis in panels[len(series) :]:
            axis.set_axis_off()
        for axis in axes[:, 0]:
            axis.set_ylabel("test loss (nats per token)")
        legend_below(figure, 6)
        return figure


def relation_figure(analysis: VocabularyAnalysis) -> Figure | str:
    """Transition width against min(V, r), the fitted line and width = min(V, r); without a transition, the reason."""
    with style():
        figure, axes = new_figure(width=COLUMN, height=3.0)
        axis, places = axes[0, 0], [one.bottleneck for one in analysis.series]
        ends = np.array([min(places) * 0.8, max(places) * 1.25])
        axis.plot(ends, ends, color=MUTED, linestyle="--", linewidth=0.8, label="width = min(V, r)")
        drawn = set[str]()
        for one in analysis.series:
            for row in one.transitions.bootstrap_rows[:1]:
                color, kind = (INK, "full rank") if one.rank is None else (ACCENT, "rank r")
                label = None if kind in drawn else f"{kind}: transition, or a bound (triangle)"
                if draw_transition(axis, one.bottleneck, row, color, color, label):
                    drawn.add(kind)
        if not drawn:
            return NO_TRANSITION
        _draw_relation(axis, analysis.relations[0], ends)
        value_axis(axis, places)
        log_axis(axis, "y", whole=True)
        axis.set(xlabel="min(V, r)", ylabel="width at which the deeper network wins")
        legend_below(figure, 1)
        return figure


def _draw_relation(axis: Axes, relation: Relation, ends: npt.NDArray[np.float64]) -> None:
    """The power law, and the proportion with its level; neither where its points don't lie on it."""
    power, level = relation.power, relation.level
    if power.usable and relation.power_chance >= LEAST_CHANCE:
        line = np.exp(power.a + power.b * np.log(ends))
        label = f"width ~ min(V, r)^({power.b:.2f} ± {power.b_err:.2f})"
        axis.plot(ends, line, color=INK, linewidth=1.0, label=label)
    if level.usable and relation.level_chance >= LEAST_CHANCE:
        at = np.array([ends[0], np.exp(level.level - level.k), ends[1]])
        label = f"{np.exp(level.k):.2f} min(V, r) up to {np.exp(level.level):.0f}"
        line = np.exp(np.minimum(level.k + np.log(at), level.level))
        axis.plot(at, line, color=INK, linewidth=1.0, linestyle=":", label=label)


def bits_per_byte_figure(analysis: VocabularyAnalysis) -> Figure | str:
    """Bits per byte against all parameters, the only loss that vocabularies share; without the columns, the reason."""
    table, column = losses_table(analysis), SIZE_COLUMNS[SizeAxis.TOTAL]
    if "bits_per_byte" not in table or column not in table:
        return "the runs have no bits per byte or no total_params"
    with style():
        figure, axes = new_figure(width=COLUMN * 1.2, height=3.2)
        axis = axes[0, 0]
        names = [one.name for one in analysis.series]
        looks = ordered_looks(range(len(names)))
        for place, one in enumerate(analysis.series):
            look = looks[place]
            same = table["embedding_rank"].isna() if one.rank is None else table["embedding_rank"] == one.rank
            same &= table["embedding"] == ("patches" if one.patches else "tokens")
            mine = table[(table["vocab_size"] == one.vocab_size) & same].sort_values(column)
            label = one.name
            if "text_bytes" in mine and mine["text_bytes"].notna().any():
                label += f" ({mine['text_bytes'].mean() / 1e6:.3g} MB of text seen)"
            axis.plot(
                mine[column],
                mine["bits_per_byte"],
                look.marker,
                markersize=3.5,
                color=look.color,
                label=label,
            )
            front = pd.Series(mine["bits_per_byte"].to_numpy()).cummin()
            axis.step(mine[column], front, where="post", color=look.color, linewidth=0.8)
        axis.plot([], [], color=MUTED, linewidth=0.8, label="best of this size or less")
        size_axis(axis)
        axis.set(xlabel=SIZE_LABELS[SizeAxis.TOTAL], ylabel="bits per byte of the test set")
        legend_below(figure, 1)
        return figure
