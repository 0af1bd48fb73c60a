"""Loss curves of several depths in one panel, as the studies of several settings draw them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from shapelaw.fits.curves import SIZE_LABELS, Side, TransitionStatus
from shapelaw.report.plots import (
    INK,
    MUTED,
    PAGE,
    Look,
    legend_below,
    new_figure,
    ordered_looks,
    size_axis,
    style,
)
from shapelaw.studies.transitions.analysis import LOSS_LABELS, Runs, TransitionAnalysis

NO_TRANSITION = "there is no transition within the widths that were trained"


def is_told(row: Mapping[Hashable, Any]) -> bool:
    """True where a row of transitions.csv has a width or a bound, so that there is something to draw."""
    return row["status"] == TransitionStatus.CROSSING or row["side"] in (Side.ABOVE, Side.BELOW)


def draw_transition(
    axis: Axes,
    at: float,
    row: Mapping[Hashable, Any],
    color: str,
    bound_color: str,
    label: str | None = None,
    marker: str = "o",
) -> bool:
    """Draw the width of a transition at a place of the other axis: with its 68% interval, or a triangle for a bound.

    Args:
        row: the bootstrap's transition, as a row of transitions.csv.
        marker: of a width; bounds are triangles.

    Returns:
        True if there was something to draw.
    """
    if not is_told(row):
        return False
    if row["status"] == TransitionStatus.CROSSING:
        err = [[row["width"] - row["width_low"]], [row["width_high"] - row["width"]]]
        axis.errorbar(at, row["width"], err, fmt=marker, color=color, label=label)
    else:
        axis.plot(at, row["bound"], "^" if row["side"] == Side.ABOVE else "v", color=bound_color, label=label)
    return True


def draw_panels(
    analyses: Mapping[tuple[str, str], TransitionAnalysis],
    columns: Sequence[str],
    loss_label: str = LOSS_LABELS["test_loss"],
) -> Figure:
    """Loss curves of several settings, a panel each, on one size axis: where they cross can be compared.

    Args:
        analyses: by the names of their row and column, the rows in the order in which they stand.
        columns: names of the columns in order; an empty name is left out of a panel's title.
        loss_label: the label of the losses.
    """
    rows = list(dict.fromkeys(row for row, _ in analyses))
    depths = {depth for one in analyses.values() if one.runs is not None for depth in one.runs.curves}
    with style():
        figure, axes = new_figure(
            len(rows), len(columns), width=PAGE, height=2.1 * len(rows) + 0.4, sharex=True
        )
        looks = ordered_looks(sorted(depths))
        for (place, row), (at, column) in product(enumerate(rows), enumerate(columns)):
            axis, analysis = axes[place, at], analyses.get((row, column))
            if analysis is None or analysis.runs is None:
                axis.set_axis_off()
                continue
            draw_curves(axis, analysis.runs, analysis.bootstrap_rows, looks)
            axis.set_title(",\n".join(filter(None, (row, column))))
            axis.tick_params(labelbottom=True)
        for axis in axes[:, 0]:
            axis.set_ylabel(loss_label)
        legend_below(figure, 6)
        return figure


def draw_curves(
    axis: Axes, runs: Runs, rows: Sequence[Mapping[Hashable, Any]], looks: Mapping[int, Look]
) -> None:
    """Draw the loss of every depth against size, with the crossings of adjacent depths and their 68% intervals.

    Args:
        rows: the bootstrap's transition of each adjacent pair, as a row of transitions.csv.
        looks: the look of each depth.
    """
    for depth, curve in runs.curves.items():
        axis.errorbar(
            curve.size,
            curve.loss,
            np.nan_to_num(curve.loss_err),
            fmt=looks[depth].marker,
            linestyle="-",
            color=looks[depth].color,
            markersize=3,
            linewidth=0.9,
            label=f"L = {depth}",
        )
    for pair, row in zip(runs.adjacent, rows, strict=False):
        if row["status"] == TransitionStatus.CROSSING:
            low, middle, high = (
                np.interp(row[name], pair.shallow.width, pair.shallow.size)
                for name in ("width_low", "width", "width_high")
            )
            axis.axvline(middle, color=INK, linewidth=0.9, linestyle="--", label="transition, 68% interval")
            axis.axvspan(low, high, color=MUTED, alpha=0.25, linewidth=0)
    size_axis(axis)
    axis.set_xlabel(SIZE_LABELS[runs.size])
