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
    INK,
    MUTED,
    PAGE,
    Look,
    draw_grid,
    key,
    legend_below,
    log_axis,
    new_figure,
    ordered_looks,
    style,
    whole_axis,
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
_BOUNDS = {
    CapacityStatus.AT_LEAST: ("^", "every T tried is memorized"),
    CapacityStatus.BELOW: ("v", "no T tried is memorized"),
}


def share_figure(analysis: MemorizationAnalysis) -> Figure:
    """Accuracy (or MSE) against the size that the study varies, one colour per T, one panel per setting.

    Bars are the standard deviation over seeds. Dotted lines show the share that theorem 1 guarantees. Along H the line
    goes through the filled points, if they are consistent with one; along d_h the two fitted pieces, the knee with its
    68% interval, and n are drawn.
    """
    panels = _panels(analysis.curves)
    letters = 46 if len(panels) == 1 else 72 // min(len(panels), 3)
    return draw_grid(
        panels,
        lambda axis, mine: _draw_panel(axis, mine, analysis.along, letters),
        _keys(analysis),
        height=3.1,
        margin=0.8,
        key_columns=1 if len(panels) == 1 else 3,
    )


def per_head_figure(analysis: MemorizationAnalysis) -> Figure | str:
    """T divided by the heads that memorize 99% of it, against T; bars reach at least to the trained H on either side.

    The dotted line is theorem 1's min(n, d_h) - 1, which holds for labels of real numbers. Or the reason
    why nothing can be drawn.
    """
    found = [
        one for one in analysis.curves if one.needed is not None and one.needed.status is CapacityStatus.FOUND
    ]
    if not found:
        return f"no T is memorized to {MEMORIZED:.0%} by some H and not by others"
    with style():
        figure, axes = new_figure(height=3.4)
        axis = axes[0, 0]
        panels = _panels(found)
        looks = ordered_looks(range(len(panels)))
        for place, mine in enumerate(panels):
            examples = np.array([one.curve.examples for one in mine], dtype=np.float64)
            heads = np.array(
                [(one.needed.size, one.needed.high, one.needed.low) for one in mine if one.needed]
            )
            middle, low, high = examples / heads.T
            axis.errorbar(
                examples, middle, np.nan_to_num([middle - low, high - middle]), fmt=looks[place].marker,
                color=looks[place].color, label=_title(mine[0].curve, 60),
            )  # fmt: skip
        for theory in sorted({theory_per_head(one.curve) for one in found}):
            label = f"theory, real labels: at least {theory}"
            axis.axhline(theory, color=INK, linestyle=":", linewidth=1, label=label)
        axis.set(xlabel="examples T", ylabel=f"examples a head at {MEMORIZED:.0%}")
        axis.set_ylim(bottom=0)
        axis.set_xlim(0, 1.1 * max(one.curve.examples or 0 for one in found))
        whole_axis(axis)
        legend_below(figure, 1)
        return figure


def saturated_figure(analysis: MemorizationAnalysis) -> Figure | str:
    """The share of saturated heads, and of examples with an unsaturated head, against H; or why it is not known."""
    table = analysis.saturated.dropna(subset=list(HEADS_SAY))
    if table.empty:
        return "no run says how many of its heads are saturated"
    with style():
        figure, axes = new_figure(1, 2, width=PAGE, height=2.9)
        looks = ordered_looks([int(examples) for examples in table["examples"].unique()])
        drawn = ("share of saturated heads", "share of examples\nwith an unsaturated head")
        others = [name for name in table if name not in ("heads", "seeds", "share", *HEADS_SAY)]
        others.remove("mean_saturated_heads")
        for axis, column, label in zip(axes[0], HEADS_SAY, drawn, strict=True):
            for _, rows in table.groupby(others, sort=True):
                examples = int(rows["examples"].iloc[0])
                look, name = looks[examples], f"T = {examples:,}"
                kind = f"{look.marker}-"
                axis.plot(
                    rows["heads"],
                    rows[column],
                    kind,
                    markersize=3.5,
                    linewidth=1.0,
                    color=look.color,
                    label=name,
                )
            axis.set(xlabel=LABELS["heads"], ylabel=label, ylim=(-0.02, 1.04))
            whole_axis(axis)
        legend_below(figure, 6)
        return figure


def capacity_figure(analysis: MemorizationAnalysis) -> Figure | str:
    """T at 99% against the size that the study varies; dotted, theory's number for real labels.

    The bar is its interval, at least from one trained T to the next. Triangles are bounds: all T (up) or no T (down)
    were memorized. Without a classification task, the reason.
    """
    if not analysis.capacities:
        return "there are no runs of a classification task"
    with style():
        figure, axes = new_figure(height=3.6)
        axis = axes[0, 0]
        groups = sorted({_network(curve, analysis.along) for curve, _ in analysis.capacities})
        looks, drawn = ordered_looks(range(len(groups))), set[CapacityStatus]()
        for place, group in enumerate(groups):
            color = looks[place].color
            found = [pair for pair in analysis.capacities if _network(pair[0], analysis.along) == group]
            found.sort(key=lambda pair: getattr(pair[0], analysis.along))
            x = np.array([getattr(curve, analysis.along) for curve, _ in found], dtype=np.float64)
            theory = np.array([guaranteed_examples(curve)[0] for curve, _ in found])
            axis.plot(x, theory, ":", color=color, linewidth=1.1, label="theory, real labels: at least")
            for at, (_, one) in zip(x, found, strict=True):
                bound = one.status is not CapacityStatus.FOUND
                if not bound:
                    err = np.nan_to_num([[one.size - one.low], [one.high - one.size]])
                    axis.errorbar(at, one.size, err, fmt="none", color=color)
                shape, _ = _BOUNDS.get(one.status, (looks[place].marker, ""))
                drawn.add(one.status)
                axis.plot(at, one.size, shape, color=color, markerfacecolor="none" if bound else color)
            axis.plot([], [], looks[place].marker, color=color, label=group)
        axis.set(xlabel=LABELS[analysis.along], ylabel=f"T at {MEMORIZED:.0%} accuracy")
        log_axis(axis, "y", whole=True)
        whole_axis(axis)
        for status, (shape, label) in _BOUNDS.items():
            if status in drawn:
                axis.plot([], [], shape, color=MUTED, markerfacecolor="none", label=label)
        legend_below(figure, 1)
        return figure


def _draw_panel(axis: Axes, mine: Sequence[CurveAnalysis], along: str, letters: int) -> None:
    looks = ordered_looks([one.curve.examples or 0 for one in mine])
    regression = mine[0].curve.task == REGRESSION
    for one in mine:
        look = looks[one.curve.examples or 0]
        _draw_curve(axis, one, look, regression)
        _draw_fit(axis, one, look.color, regression)
    if along == "head_dim":
        axis.axvline(float(mine[0].curve.context or 0), color=INK, linewidth=0.8, linestyle="--", zorder=1.5)
    if regression:
        log_axis(axis, "y")
        axis.set_ylabel("mean squared error")
    else:
        axis.set_ylim(-0.02, 1.04)
        axis.set_ylabel("accuracy")
    axis.set_xlabel(LABELS[along])
    whole_axis(axis)
    axis.set_title(_title(mine[0].curve, letters), fontsize=7.5)
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2, fontsize=6.5, handlelength=1.2)


def _draw_curve(axis: Axes, one: CurveAnalysis, look: Look, regression: bool) -> None:
    curve, linear, color = one.curve, one.linear, look.color
    y, spread = curve.share, np.nan_to_num(curve.spread)
    err = np.stack([spread, np.minimum(spread, np.maximum(1.0 - y, 0.0))])
    if regression:
        y, err = mean_squared_error(y), np.stack([spread, spread]) / 12.0
        err[0] = np.minimum(err[0], 0.9 * y)  # a bar that would leave the logarithmic axis
    used = np.ones(len(y), dtype=np.bool_) if linear is None else linear.used
    axis.errorbar(curve.x, y, err, fmt="none", color=color, elinewidth=0.8)
    joined = "none" if linear is not None or one.knee is not None else "-"
    axis.plot(curve.x, y, linestyle=joined, color=color, linewidth=1.0)
    axis.plot(
        curve.x[used], y[used], look.marker, color=color, markersize=3.5, label=f"T = {curve.examples:,}"
    )
    axis.plot(curve.x[~used], y[~used], look.marker, color=color, markersize=3.5, markerfacecolor="white")
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
    """The meaning of what was drawn beside the points of each T, and of nothing else."""
    linear = [one.linear for one in analysis.curves if one.linear is not None]
    keys = [key("guaranteed by theory (share of T)", line=":")]
    if any(np.nan_to_num(one.curve.spread).any() for one in analysis.curves):
        keys.append(key("± one σ over seeds", line="none", marker="|", markersize=9))
    if any(one.line.usable for one in linear):
        keys.append(key("line through filled points"))
    if any(not one.used.all() for one in linear):
        keys.append(key("saturated", line="none", marker="o", markerfacecolor="white"))
    if any(one.knee is not None and one.knee.usable for one in analysis.curves):
        keys.append(key("knee, 68% interval", ACCENT, linewidth=2.5))
    if analysis.along == "head_dim":
        keys.append(key("$d_h = n$", INK, "--", linewidth=0.8))
    return keys


def _panels(curves: Sequence[CurveAnalysis]) -> list[list[CurveAnalysis]]:
    """The curves of each panel: they differ in T and in the size that the study varies."""
    panels: dict[tuple[object, ...], list[CurveAnalysis]] = {}
    for one in curves:
        curve = one.curve
        sizes = (curve.heads or 0, curve.context or 0, curve.head_dim or 0)
        panels.setdefault((curve.task, curve.context_type, curve.width, curve.variant, *sizes), []).append(
            one
        )
    return list(panels.values())


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
