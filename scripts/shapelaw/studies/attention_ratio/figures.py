"""The figures of the study of the attention ratio."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from shapelaw.fits.curves import SIZE_COLUMNS, SIZE_LABELS, SizeAxis
from shapelaw.fits.redundancy import RedundancyStatus
from shapelaw.report.plots import (
    ACCENT,
    INK,
    MARKERS,
    MUTED,
    PAGE,
    SECOND,
    Look,
    explain,
    legend_below,
    new_figure,
    ordered_looks,
    side_by_side,
    size_axis,
    style,
    value_axis,
)
from shapelaw.studies.attention_ratio.analysis import ATTENTION, WIDTH, Found, RatioAnalysis
from shapelaw.studies.attention_ratio.tables import PUBLISHED
from shapelaw.studies.reference import published_json

_TITLES = {ATTENTION: "feed-forward width $4 H d_a$, as in T5", WIDTH: "feed-forward width $4 d$"}
_COLORS = {ATTENTION: ACCENT, WIDTH: SECOND}
_LABELS = {ATTENTION: "feed-forward width $4 H d_a$", WIDTH: _TITLES[WIDTH]}
_SHAPES = {ATTENTION: "o", WIDTH: "s"}
_BOUNDS = {RedundancyStatus.AT_LEAST: "^", RedundancyStatus.AT_MOST: "v"}
_RATIO = "$H d_a / d$"


def losses_figure(analysis: RatioAnalysis) -> Figure:
    """Test loss of every ratio at the best depth of each size, against size (figure 4 of the vocabulary paper)."""
    with style():
        figure = _panels(analysis)
        legend_below(figure, 5)
        return figure


def depths_figure(analysis: RatioAnalysis) -> Figure:
    """The same with all networks, a marker for each depth (figure 6 of the vocabulary paper)."""
    column, networks = SIZE_COLUMNS[analysis.axis], analysis.networks
    depths = sorted(int(depth) for depth in networks["depth"].unique())
    with style():
        figure, drawn = _panels(analysis, marked=False), set[int]()
        for axis, kind in zip(figure.axes, _kinds(analysis), strict=True):
            for ratio, look in _ratio_looks(analysis).items():
                mine = networks[networks["ratio"] == ratio]
                mine = mine if ratio == 1 else mine[mine["feed_forward"] == kind]
                for depth in depths:
                    rows = mine[mine["depth"] == depth]
                    if rows.empty:
                        continue
                    drawn.add(depth)
                    shape = MARKERS[depths.index(depth) % len(MARKERS)]
                    axis.plot(
                        rows[column], rows["loss"], shape, color=look.color, markersize=6, fillstyle="none"
                    )
        for depth in sorted(drawn):
            shape = MARKERS[depths.index(depth) % len(MARKERS)]
            figure.axes[0].plot(
                [], [], shape, color=INK, markersize=6, fillstyle="none", label=f"L = {depth}"
            )
        legend_below(figure, 5)
        return figure


def _kinds(analysis: RatioAnalysis) -> list[str]:
    return [kind for kind in _TITLES if any(one.feed_forward == kind for one in analysis.on_axis)]


def _ratio_looks(analysis: RatioAnalysis) -> dict[float, Look]:
    ratios = sorted({float(ratio) for ratio in analysis.networks["ratio"]})
    return dict(zip(ratios, ordered_looks(range(len(ratios))).values(), strict=True))


def _panels(analysis: RatioAnalysis, *, marked: bool = True) -> Figure:
    """The best depths of every ratio, a panel for each feed-forward width, with markers or lines alone."""
    kinds, std = _kinds(analysis), np.nan if analysis.noise is None else analysis.noise.std
    figure, axes = new_figure(1, len(kinds), width=PAGE, height=3.2, sharey=True)
    for axis, kind in zip(axes[0], kinds, strict=True):
        for ratio, look in _ratio_looks(analysis).items():
            best = [one.at for one in analysis.on_axis if (one.feed_forward, one.ratio) == (kind, ratio)]
            points = analysis.baseline if ratio == 1 else best
            if points:
                size, loss = [at.size for at in points], [at.loss for at in points]
                err = np.nan_to_num([std / np.sqrt(at.runs(analysis.noise)) for at in points])
                label = f"{_RATIO} = {ratio:g}"
                shape = look.marker if marked else ""
                axis.errorbar(
                    size,
                    loss,
                    err,
                    fmt=f"{shape}{look.dashes}",
                    color=look.color,
                    markersize=3.5,
                    label=label,
                )
        size_axis(axis)
        axis.set_title(_TITLES[kind])
        axis.set_xlabel(SIZE_LABELS[analysis.axis])
    axes[0, 0].set_ylabel("test loss (nats per token)")
    return figure


def redundancy_figure(analysis: RatioAnalysis) -> Figure:
    """Redundancy against the ratio, a panel for each of blocks and all parameters, with 68% intervals and bounds."""
    theirs = published_json("vocabulary_findings")["redundancy"]
    with style():
        figure, axes = new_figure(1, 2, width=PAGE, height=3.0, sharey=True)
        for axis, size in zip(axes[0], (SizeAxis.BLOCK, SizeAxis.TOTAL), strict=True):
            mine = [one for one in analysis.found if one.axis is size and one.redundancy is not None]
            axis.axhline(0, color=MUTED, linewidth=0.8, label="no redundancy")
            places = sorted({(one.at.size, one.feed_forward) for one in mine})
            for kind, color in _COLORS.items():
                of_kind = [one for one in mine if one.feed_forward == kind]
                _draw_redundancies(axis, of_kind, kind, color, places)
            shares = [1 - float(theirs[finding]) for finding in PUBLISHED.values()]
            axis.plot(
                list(PUBLISHED), shares, "D", color=MUTED, fillstyle="none", label="published, 30M to 70M"
            )
            value_axis(axis, sorted({one.ratio for one in mine} | set(PUBLISHED)))
            axis.set_title(f"in {SIZE_LABELS[size]}")
            axis.set_xlabel(_RATIO)
        axes[0, 0].set_ylabel("redundancy")
        if analysis.noise is None:
            explain(axes[0, 0], "No network has two seeds: no intervals.", (0.5, 0.1))
        legend_below(figure, 3)
        return figure


def _draw_redundancies(
    axis: Axes, found: list[Found], kind: str, color: str, places: list[tuple[float, str]]
) -> None:
    """Points of one feed-forward width; the sizes of a ratio stand side by side, the smallest on the left.

    Args:
        places: size and feed-forward width of all points of the panel, from left to right.
    """
    shape, named = _SHAPES[kind], False
    for one in found:
        assert one.redundancy is not None
        measured = one.redundancy
        x = one.ratio * side_by_side(places.index((one.at.size, kind)), len(places))
        ends = np.array([[max(measured.low, -1.0)], [measured.high]])
        err = np.nan_to_num(np.clip([measured.value - ends[0], ends[1] - measured.value], 0, None))
        bound = _BOUNDS.get(measured.status)
        label = None if named or bound else f"{_LABELS[kind]}, 68% interval"
        named |= label is not None
        axis.errorbar([x], [measured.value], err, fmt=bound or shape, color=color, label=label)
    for status in dict.fromkeys(one.redundancy.status for one in found if one.redundancy is not None):
        if status in _BOUNDS:
            words = f"{_LABELS[kind]}, {status}"
            axis.plot([], [], _BOUNDS[status], color=color, label=words)
