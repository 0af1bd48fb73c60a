"""The figures of the memorization studies, after figures 2, 4 and 5 of Mahdavi et al. 2024."""

from __future__ import annotations

import math
from collections.abc import Sequence
from textwrap import fill

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from shapelaw.fits.capacity import CapacityStatus
from shapelaw.fits.line import Floats
from shapelaw.fits.memorized import (
    HEADS_SAY,
    MEMORIZED,
    PER_EXAMPLE,
    REGRESSION,
    MemorizationCurve,
    mean_squared_error,
)
from shapelaw.report.plots import (
    ACCENT,
    COLUMN,
    INK,
    MUTED,
    PAGE,
    explain,
    new_figure,
    ordered_colors,
    short_number,
    style,
)
from shapelaw.studies.memorization.analysis import (
    SYMBOLS,
    CurveAnalysis,
    MemorizationAnalysis,
    guaranteed_examples,
)
from shapelaw.studies.memorization.tables import theory_per_head

LABELS = {"heads": "heads H", "context": "context length n", "head_dim": "head dimension $d_h$"}
LEAST_MSE = 1e-5
_MARKERS = {CapacityStatus.FOUND: "o", CapacityStatus.AT_LEAST: "^", CapacityStatus.BELOW: "v"}


def share_figure(analysis: MemorizationAnalysis) -> Figure:
    """Accuracy (or MSE) against the size that the study varies, one colour per T, one panel per setting.

    Bars are the standard deviation over seeds. Dotted lines show the share that theorem 1 guarantees. Along H the line
    goes through the filled points, if they are consistent with one; along d_h the two fitted pieces, the knee with its
    68% interval, and n are drawn.
    """
    panels = _panels([one.curve for one in analysis.curves])
    with style():
        columns = min(len(panels), 3)
        rows = -(-len(panels) // columns)
        figure, axes = new_figure(
            rows, columns, width=COLUMN if columns == 1 else PAGE, height=0.6 + 3.1 * rows
        )
        for place in range(rows * columns):
            axis = axes[divmod(place, columns)]
            if place >= len(panels):
                axis.set_axis_off()
                continue
            mine = [one for one in analysis.curves if _panel(one.curve) == panels[place]]
            _draw_panel(axis, mine, analysis.along, letters=46 if columns == 1 else 72 // columns)
        figure.legend(handles=_keys(analysis), loc="outside lower center", ncols=2 if columns == 1 else 4)
        return figure


def per_head_figure(analysis: MemorizationAnalysis) -> Figure:
    """T divided by the heads that memorize 99% of it, against T; bars reach at least to the trained H on either side.

    The dotted line is theorem 1's min(n, d_h) - 1, which holds for labels of real numbers.
    """
    with style():
        figure, axes = new_figure(height=3.2)
        axis = axes[0, 0]
        found = [
            one
            for one in analysis.curves
            if one.needed is not None and one.needed.status is CapacityStatus.FOUND
        ]
        panels = _panels([one.curve for one in found])
        colors = ordered_colors(range(max(len(panels), 1)))
        for place, panel in enumerate(panels):
            mine = [one for one in found if _panel(one.curve) == panel]
            examples = np.array([one.curve.examples for one in mine], dtype=np.float64)
            heads = np.array(
                [(one.needed.size, one.needed.high, one.needed.low) for one in mine if one.needed]
            )
            middle, low, high = examples / heads.T
            err = np.nan_to_num([middle - low, high - middle])
            axis.errorbar(
                examples, middle, err, fmt="o", color=colors[place], label=_title(mine[0].curve, 60)
            )
        for theory in sorted({theory_per_head(one.curve) for one in found}):
            axis.axhline(theory, color=INK, linestyle=":", linewidth=1)
            axis.annotate(
                f"theory, real labels: at least {theory}", (0, theory), (2, 2),
                xycoords=axis.get_yaxis_transform(), textcoords="offset points", va="bottom", fontsize=6.5,
            )  # fmt: skip
        axis.set_xlabel("examples T")
        axis.set_ylabel(f"examples a head at {MEMORIZED:.0%}")
        if found:
            axis.set_ylim(bottom=0)
            axis.xaxis.set_major_formatter(lambda value, _: short_number(value))
            figure.legend(loc="outside lower center")
        else:
            axis.set(xticks=[], yticks=[])
            explain(axis, f"No T is memorized to {MEMORIZED:.0%}\nby some H and not by others.")
        return figure


def saturated_figure(analysis: MemorizationAnalysis) -> Figure:
    """The share of saturated heads, and of examples with an unsaturated head, against H; one colour per T."""
    table = analysis.saturated.dropna(subset=list(HEADS_SAY))
    with style():
        figure, axes = new_figure(1, 2, width=PAGE, height=2.9)
        if table.empty:
            axes[0, 1].set_axis_off()
            axes[0, 0].set(xticks=[], yticks=[])
            explain(axes[0, 0], "No run says how many of\nits heads are saturated.")
            return figure
        colors = ordered_colors([int(examples) for examples in table["examples"].unique()])
        drawn = (
            ("saturated_share", "share of saturated heads"),
            (HEADS_SAY[1], "examples with a head that is not"),
        )
        for axis, (column, label) in zip(axes[0], drawn, strict=True):
            others = [name for name in table if name not in ("heads", "seeds", "share", *HEADS_SAY)]
            others.remove("mean_saturated_heads")
            for _, rows in table.groupby(others, sort=True):
                examples = int(rows["examples"].iloc[0])
                axis.plot(
                    rows["heads"], rows[column], "o-", markersize=3.5, linewidth=1.0, color=colors[examples],
                    label=f"T = {examples:,}",
                )  # fmt: skip
            axis.set(xlabel=LABELS["heads"], ylabel=label, ylim=(-0.02, 1.04))
        named = dict(zip(*reversed(axes[0, 0].get_legend_handles_labels()), strict=True))
        figure.legend(named.values(), named.keys(), loc="outside lower center", ncols=min(len(named), 6))
        return figure


def capacity_figure(analysis: MemorizationAnalysis) -> Figure:
    """T at 99% against the size that the study varies; dotted, theory's number for real labels.

    The bar is its interval, at least from one trained T to the next. Triangles are bounds: all T (up) or no T (down)
    were memorized.
    """
    with style():
        figure, axes = new_figure(height=3.6)
        axis = axes[0, 0]
        groups = sorted({_network(curve, analysis.along) for curve, _ in analysis.capacities})
        colors = ordered_colors(range(max(len(groups), 1)))
        for place, group in enumerate(groups):
            found = [pair for pair in analysis.capacities if _network(pair[0], analysis.along) == group]
            found.sort(key=lambda pair: getattr(pair[0], analysis.along))
            x = np.array([getattr(curve, analysis.along) for curve, _ in found], dtype=np.float64)
            theory = np.array([guaranteed_examples(curve)[0] for curve, _ in found])
            axis.plot(x, theory, ":", color=colors[place], linewidth=1.1)
            for at, (_, one) in zip(x, found, strict=True):
                bound = one.status is not CapacityStatus.FOUND
                if not bound:
                    err = np.nan_to_num([[one.size - one.low], [one.high - one.size]])
                    axis.errorbar(at, one.size, err, fmt="none", color=colors[place])
                axis.plot(
                    at, one.size, _MARKERS[one.status], color=colors[place],
                    markerfacecolor="none" if bound else colors[place],
                )  # fmt: skip
            axis.plot([], [], "o", color=colors[place], label=group)
        axis.set_xlabel(LABELS[analysis.along])
        axis.set_ylabel(f"T at {MEMORIZED:.0%} accuracy")
        if not groups:
            axis.set(xticks=[], yticks=[])
            explain(axis, "No runs of a classification task.")
            return figure
        axis.set_yscale("log")
        axis.plot([], [], ":", color=MUTED, label="theory, real labels: at least")
        for marker, label in (("^", "every T is memorized"), ("v", "no T is memorized")):
            axis.plot([], [], marker, color=MUTED, markerfacecolor="none", label=label)
        figure.legend(loc="outside lower center", fontsize=6.5)
        return figure


def _draw_panel(axis: Axes, mine: Sequence[CurveAnalysis], along: str, letters: int) -> None:
    colors = ordered_colors([one.curve.examples or 0 for one in mine])
    regression = mine[0].curve.task == REGRESSION
    for one in mine:
        color = colors[one.curve.examples or 0]
        _draw_curve(axis, one, color, regression)
        _draw_fit(axis, one, color, regression)
    if along == "head_dim":
        axis.axvline(float(mine[0].curve.context or 0), color=INK, linewidth=0.8, linestyle="--", zorder=1.5)
    if regression:
        axis.set_yscale("log")
        axis.set_ylabel("mean squared error")
    else:
        axis.set_ylim(-0.02, 1.04)
        axis.set_ylabel("accuracy")
    axis.set_xlabel(LABELS[along])
    axis.set_title(_title(mine[0].curve, letters), fontsize=7.5)
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2, fontsize=6.5, handlelength=1.2)


def _draw_curve(axis: Axes, one: CurveAnalysis, color: str, regression: bool) -> None:
    curve, linear = one.curve, one.linear
    y, spread = curve.share, np.nan_to_num(curve.spread)
    err = np.stack([spread, np.minimum(spread, np.maximum(1.0 - y, 0.0))])
    if regression:
        y, err = mean_squared_error(y), np.stack([spread, spread]) / 12.0
        err[0] = np.minimum(err[0], 0.9 * y)  # a bar that would leave the logarithmic axis
    used = np.ones(len(y), dtype=np.bool_) if linear is None else linear.used
    axis.errorbar(curve.x, y, err, fmt="none", color=color, elinewidth=0.8)
    joined = "none" if linear is not None or one.knee is not None else "-"
    axis.plot(curve.x, y, linestyle=joined, color=color, linewidth=1.0)
    axis.plot(curve.x[used], y[used], "o", color=color, markersize=3.5, label=f"T = {curve.examples:,}")
    axis.plot(curve.x[~used], y[~used], "o", color=color, markersize=3.5, markerfacecolor="white")
    axis.plot(curve.x, _shown(one.guaranteed, regression), ":", color=color, linewidth=1.1)


def _draw_fit(axis: Axes, one: CurveAnalysis, color: str, regression: bool) -> None:
    if one.linear is not None and one.linear.line.usable:
        used = one.curve.x[one.linear.used]
        x = np.linspace(used[0], used[-1], 60)
        line = one.linear.line
        axis.plot(x, _shown(line.a + line.b * x, regression), color=color, linewidth=1.0)
    if one.knee is None:
        return
    if not one.knee.usable:
        axis.plot(one.curve.x, _shown(one.curve.share, regression), color=color, linewidth=0.8, alpha=0.6)
        return
    x = np.union1d(np.linspace(one.curve.x[0], one.curve.x[-1], 60), [one.knee.knee])
    axis.plot(x, _shown(one.knee.at(x), regression), color=color, linewidth=1.0)
    low, high = one.knee.low68, one.knee.high68
    span = [one.curve.x[1] if math.isnan(low) else low, one.curve.x[-2] if math.isnan(high) else high]
    top = _shown(np.full(2, one.knee.plateau), regression)
    axis.plot(span, top, color=ACCENT, linewidth=2.5, solid_capstyle="butt", zorder=4)


def _shown(share: Floats, regression: bool) -> Floats:
    """A share in the panel's units: MSE for a regression."""
    return np.maximum(mean_squared_error(share), LEAST_MSE) if regression else share


def _keys(analysis: MemorizationAnalysis) -> list[Line2D]:
    keys = [Line2D([], [], color=MUTED, linestyle=":", label="guaranteed by theory (share of T)")]
    if analysis.along == "heads":
        keys += [
            Line2D([], [], color=MUTED, marker="o", label="line through these points, where one stands"),
            Line2D([], [], color=MUTED, marker="o", markerfacecolor="white", linestyle="none", label="saturated"),
        ]  # fmt: skip
    if analysis.along == "head_dim":
        keys += [
            Line2D([], [], color=ACCENT, linewidth=2.5, label="knee, 68% interval"),
            Line2D([], [], color=INK, linestyle="--", linewidth=0.8, label="$d_h = n$"),
        ]
    return keys


Panel = tuple[object, ...]


def _panel(curve: MemorizationCurve) -> Panel:
    """The key of a curve's panel; curves of one panel differ in T and in the size that the study varies."""
    sizes = (curve.heads or 0, curve.context or 0, curve.head_dim or 0)
    return curve.task, curve.context_type, curve.width, curve.variant, *sizes


def _panels(curves: Sequence[MemorizationCurve]) -> list[Panel]:
    return list(dict.fromkeys(_panel(curve) for curve in curves))


def _title(curve: MemorizationCurve, letters: int) -> str:
    setting = curve.setting.removesuffix(f", T = {curve.examples:,}") if curve.examples else curve.setting
    wrapped = fill(setting.replace(" = ", "\u00a0=\u00a0"), letters)  # no line break inside "n = 32"
    return wrapped.replace("d_h", "$d_h$").replace("d_v", "$d_v$")


def _network(curve: MemorizationCurve, along: str) -> str:
    """The sizes shared by the networks of one line of the capacity figure."""
    sizes = [
        f"{SYMBOLS[axis]} = {getattr(curve, axis)}".replace("d_h", "$d_h$")
        for axis in ("heads", "context", "head_dim")
        if axis != along
    ]
    kind = "a context per example" if curve.context_type == PER_EXAMPLE else "shared context"
    return ", ".join(part for part in (kind, curve.variant.replace("d_v", "$d_v$"), *sizes) if part)
