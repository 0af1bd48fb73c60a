"""The figures of the memorization studies, after figures 2, 4 and 5 of Mahdavi et al. 2024."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from textwrap import fill

import numpy as np
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
from shapelaw.report.charts import Across, Chart, Mark, Panel, Points, Span, looked
from shapelaw.report.plots import ACCENT, INK, MOST_COLUMNS, MUTED, PAGE, Look, key, ordered_looks
from shapelaw.studies.memorization.analysis import (
    SYMBOLS,
    CurveAnalysis,
    MemorizationAnalysis,
    guaranteed_examples,
)
from shapelaw.studies.memorization.tables import theory_per_head

LABELS = {"heads": "heads H", "context": "context length n", "head_dim": "head dimension $d_h$"}
LEAST_MSE = 1e-5
_SMALL = {"markersize": 3.5}
_BOUNDS = {
    CapacityStatus.AT_LEAST: ("^", "every T tried is memorized"),
    CapacityStatus.BELOW: ("v", "no T tried is memorized"),
}


def share_figure(analysis: MemorizationAnalysis) -> Chart:
    """Accuracy (or MSE) against the size that the study varies, one colour per T, one panel per setting.

    Bars are the standard deviation over seeds. Dotted lines show the share that theorem 1 guarantees. Along H the line
    goes through the filled points, if they are consistent with one; along d_h the two fitted pieces, the knee with its
    68% interval, and n are drawn.
    """
    panels = _panels(analysis.curves)
    columns = min(len(panels), MOST_COLUMNS)
    letters = 46 if len(panels) == 1 else 72 // columns
    return Chart(
        [_share_panel(mine, analysis.along, letters) for mine in panels],
        columns,
        height=0.8 + 3.1 * -(-len(panels) // columns),
        keys=_keys(analysis),
        legend=1 if len(panels) == 1 else 3,
    )


def per_head_figure(analysis: MemorizationAnalysis) -> Chart | str:
    """T divided by the heads that memorize 99% of it, against T; bars reach at least to the trained H on either side.

    The dotted line is theorem 1's min(n, d_h) - 1, which holds for labels of real numbers. Or the reason
    why nothing can be drawn.
    """
    found = [
        one for one in analysis.curves if one.needed is not None and one.needed.status is CapacityStatus.FOUND
    ]
    if not found:
        return f"no T is memorized to {MEMORIZED:.0%} by some H and not by others"
    panels = _panels(found)
    looks, marks = ordered_looks(range(len(panels))), list[Mark]()
    for place, mine in enumerate(panels):
        examples = np.array([one.curve.examples for one in mine], dtype=np.float64)
        heads = np.array([(one.needed.size, one.needed.high, one.needed.low) for one in mine if one.needed])
        middle, low, high = examples / heads.T
        bars = [middle - low, high - middle]
        name = _title(mine[0].curve, 60)
        marks.append(Points(examples, middle, name, looks[place].color, looks[place].marker, err=bars))
    for theory in sorted({theory_per_head(one.curve) for one in found}):
        label = f"theory, real labels: at least {theory}"
        marks.append(Across(theory, label=label, color=INK, line=":", more={"linewidth": 1}))
    most = max(one.curve.examples or 0 for one in found)
    x = Span("examples T", "whole", limits=(0, 1.1 * most))
    y = Span(f"examples per head at {MEMORIZED:.0%}", limits=(0, None))
    return Chart([Panel(marks, x, y)], height=3.4, legend=1)


def saturated_figure(analysis: MemorizationAnalysis) -> Chart | str:
    """The share of saturated heads, and of examples with an unsaturated head, against H; or why it is not known."""
    table = analysis.saturated.dropna(subset=list(HEADS_SAY))
    if table.empty:
        return "no run says how many of its heads are saturated"
    looks = ordered_looks([int(examples) for examples in table["examples"].unique()])
    kept = ("heads", "seeds", "share", "mean_saturated_heads", *HEADS_SAY)
    groups = [rows for _, rows in table.groupby([name for name in table if name not in kept], sort=True)]
    panels = []
    for column, label in zip(
        HEADS_SAY, ("share of saturated heads", "share of examples\nwith an unsaturated head"), strict=True
    ):
        marks = []
        for rows in groups:
            examples = int(rows["examples"].iloc[0])
            look = looked(looks[examples]) | {"line": "-", "more": _SMALL | {"linewidth": 1.0}}
            marks.append(Points(rows["heads"], rows[column], f"T = {examples:,}", **look))
        panels.append(Panel(marks, Span(LABELS["heads"], "whole"), Span(label, limits=(-0.02, 1.04))))
    return Chart(panels, 2, PAGE, 2.9, legend=6)


def capacity_figure(analysis: MemorizationAnalysis) -> Chart | str:
    """T at 99% against the size that the study varies; dotted, theory's number for real labels.

    The bar is its interval, at least from one trained T to the next. Triangles are bounds: all T (up) or no T (down)
    were memorized. Without a classification task, the reason.
    """
    if not analysis.capacities:
        return "there are no runs of a classification task"
    groups = sorted({_network(curve, analysis.along) for curve, _ in analysis.capacities})
    looks, marks = ordered_looks(range(len(groups))), list[Mark]()
    for place, group in enumerate(groups):
        color, marker = looks[place].color, looks[place].marker
        found = [pair for pair in analysis.capacities if _network(pair[0], analysis.along) == group]
        found.sort(key=lambda pair: getattr(pair[0], analysis.along))
        x = np.array([getattr(curve, analysis.along) for curve, _ in found], dtype=np.float64)
        theory = np.array([guaranteed_examples(curve)[0] for curve, _ in found])
        dotted = {"linewidth": 1.1}
        marks.append(Points(x, theory, "theory, real labels: at least", color, line=":", more=dotted))
        for at, (_, one) in zip(x, found, strict=True):
            bound = one.status is not CapacityStatus.FOUND
            bars = None if bound else [[one.size - one.low], [one.high - one.size]]
            shape, _ = _BOUNDS.get(one.status, (marker, ""))
            marks.append(Points(at, one.size, color=color, marker=shape, err=bars, hollow=bound))
        marks.append(Points([], [], group, color, marker))
    drawn = {one.status for _, one in analysis.capacities}
    marks += [
        Points([], [], label, MUTED, shape, hollow=True)
        for status, (shape, label) in _BOUNDS.items()
        if status in drawn
    ]
    y = Span(f"T at {MEMORIZED:.0%} accuracy", "whole log")
    return Chart([Panel(marks, Span(LABELS[analysis.along], "whole"), y)], height=3.6, legend=1)


def _share_panel(mine: Sequence[CurveAnalysis], along: str, letters: int) -> Panel:
    looks = ordered_looks([one.curve.examples or 0 for one in mine])
    regression = mine[0].curve.task == REGRESSION
    marks = list[Mark]()
    for one in mine:
        look = looks[one.curve.examples or 0]
        marks += [*_curve_marks(one, look, regression), *_fit_marks(one, look.color, regression)]
    if along == "head_dim":
        context = float(mine[0].curve.context or 0)
        marks.append(Across(context, "x", color=INK, line="--", more={"zorder": 1.5}))
    y = Span("mean squared error", "log") if regression else Span("accuracy", limits=(-0.02, 1.04))
    legend = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.2), "ncols": 2, "fontsize": 6.5}
    title = _title(mine[0].curve, letters)
    return Panel(marks, Span(LABELS[along], "whole"), y, title, legend | {"handlelength": 1.2})


def _curve_marks(one: CurveAnalysis, look: Look, regression: bool) -> Iterator[Mark]:
    curve, linear, color = one.curve, one.linear, look.color
    y, spread = curve.share, np.nan_to_num(curve.spread)
    err = np.stack([spread, np.minimum(spread, np.maximum(1.0 - y, 0.0))])
    if regression:
        y, err = mean_squared_error(y), np.stack([spread, spread]) / 12.0
        err[0] = np.minimum(err[0], 0.9 * y)  # a bar that would leave the logarithmic axis
    used = np.ones(len(y), dtype=np.bool_) if linear is None else linear.used
    joined = "" if linear is not None or one.knee is not None else "-"
    yield Points(curve.x, y, color=color, line=joined, err=err, more={"elinewidth": 0.8, "linewidth": 1.0})
    yield Points(curve.x[used], y[used], f"T = {curve.examples:,}", color, look.marker, more=_SMALL)
    white = _SMALL | {"markerfacecolor": "white"}
    yield Points(curve.x[~used], y[~used], color=color, marker=look.marker, more=white)
    dotted = {"linewidth": 1.1}
    yield Points(curve.x, _shown(one.guaranteed, regression), color=color, line=":", more=dotted)


def _fit_marks(one: CurveAnalysis, color: str, regression: bool) -> Iterator[Mark]:
    def line(x: Floats, share: Floats, color: str = color, **more: object) -> Mark:
        return Points(x, _shown(share, regression), color=color, line="-", more={"linewidth": 1.0, **more})

    if one.linear is not None and one.linear.line.usable:
        used = one.curve.x[one.linear.used]
        x = np.linspace(used[0], used[-1], 60)
        yield line(x, one.linear.line.a + one.linear.line.b * x)
    if one.knee is None:
        return
    if not one.knee.usable:
        yield line(one.curve.x, one.curve.share, linewidth=0.8, alpha=0.6)
        return
    x = np.union1d(np.linspace(one.curve.x[0], one.curve.x[-1], 60), [one.knee.knee])
    yield line(x, one.knee.at(x))
    low, high = one.knee.low68, one.knee.high68
    span = np.array(
        [one.curve.x[1] if math.isnan(low) else low, one.curve.x[-2] if math.isnan(high) else high]
    )
    top = np.full(2, one.knee.plateau)
    yield line(span, top, ACCENT, linewidth=2.5, solid_capstyle="butt", zorder=4)


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
        setting = ("task", "context_type", "width", "variant", "heads", "context", "head_dim")
        panels.setdefault(tuple(getattr(one.curve, name) for name in setting), []).append(one)
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
