"""The figures of the vocabulary study."""

from __future__ import annotations

import math

import numpy as np
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
    explain,
    new_figure,
    ordered_colors,
    size_axis,
    style,
    value_axis,
)
from shapelaw.studies.transitions.drawing import draw_curves, draw_transition
from shapelaw.studies.vocabulary.analysis import VocabularyAnalysis
from shapelaw.studies.vocabulary.tables import losses_table

PANELS = 3  # in a row


def losses_figure(analysis: VocabularyAnalysis) -> Figure:
    """Test loss of the depths of each vocabulary against size, with the transition (figures 1, 3 and 5)."""
    rows = math.ceil(len(analysis.series) / PANELS)
    with style():
        figure, axes = new_figure(rows, PANELS, width=PAGE, height=2.3 * rows)
        depths = sorted({int(d) for one in analysis.series for d in one.runs["depth"].unique()})
        colors = ordered_colors(depths)
        panels: list[Axes] = axes.ravel().tolist()
        for axis, one in zip(panels, analysis.series, strict=False):
            assert one.transitions.runs is not None
            draw_curves(axis, one.transitions.runs, one.transitions.bootstrap_rows, colors)
            axis.set_title(one.name)
        for axis in panels[len(analysis.series) :]:
            axis.set_axis_off()
        for axis in axes[:, 0]:
            axis.set_ylabel("test loss (nats per token)")
        return figure


def relation_figure(analysis: VocabularyAnalysis) -> Figure:
    """Transition width against min(V, r), with the fitted line and with width = min(V, r)."""
    with style():
        figure, axes = new_figure(width=COLUMN, height=3.0)
        axis, places = axes[0, 0], [one.bottleneck for one in analysis.series]
        ends = np.array([min(places) * 0.8, max(places) * 1.25])
        axis.plot(ends, ends, color=MUTED, linestyle="--", linewidth=0.8, label="width = min(V, r)")
        drawn = False
        for one in analysis.series:
            for row in one.transitions.bootstrap_rows[:1]:
                color = INK if one.rank is None else ACCENT
                drawn |= draw_transition(axis, one.bottleneck, row, color, MUTED)
        fit = analysis.relation
        if fit.usable:
            line = np.exp(fit.a + fit.b * np.log(ends))
            axis.plot(
                ends,
                line,
                color=INK,
                linewidth=1.0,
                label=f"width ~ min(V, r)^({fit.b:.2f} ± {fit.b_err:.2f})",
            )
        value_axis(axis, places)
        axis.set_yscale("log")
        axis.set(xlabel="min(V, r)", ylabel="width at which the deeper network wins")
        axis.legend()
        if not drawn:
            explain(axis, "No transition within the widths that were trained.")
        return figure


def bits_per_byte_figure(analysis: VocabularyAnalysis) -> Figure:
    """Bits per byte against all parameters, the only loss that vocabularies share; the best depth of each size."""
    with style():
        figure, axes = new_figure(width=COLUMN, height=3.0)
        axis, table = axes[0, 0], losses_table(analysis)
        column = SIZE_COLUMNS[SizeAxis.TOTAL]
        if "bits_per_byte" not in table or column not in table:
            explain(axis, "The runs have no bits per byte or no total_params.")
            return figure
        names = [one.name for one in analysis.series]
        colors = ordered_colors(range(len(names)))
        for place, one in enumerate(analysis.series):
            same = table["embedding_rank"].isna() if one.rank is None else table["embedding_rank"] == one.rank
            mine = table[(table["vocab_size"] == one.vocab_size) & same].sort_values(column)
            label = one.name
            if "text_bytes" in mine and mine["text_bytes"].notna().any():
                label += f" ({mine['text_bytes'].mean() / 1e6:.3g} MB of text seen)"
            axis.plot(
                mine[column], mine["bits_per_byte"], "o", markersize=3, color=colors[place], label=label
            )
            front = pd.Series(mine["bits_per_byte"].to_numpy()).cummin()
            axis.step(mine[column], front, where="post", color=colors[place], linewidth=0.8)
        size_axis(axis)
        axis.set(xlabel=SIZE_LABELS[SizeAxis.TOTAL], ylabel="bits per byte of the test set")
        axis.legend()
        return figure
