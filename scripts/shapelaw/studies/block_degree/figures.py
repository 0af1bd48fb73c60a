"""The figures of the degree study: held-out losses, their ratio to degree 3, speed, and mixtures.

For separable targets they draw the networks with the most inputs and, of these, the greatest width; for digits those
with the greatest width. Of mixtures they draw those that begin half-way; the figure of mixtures has all. The tables
have everything.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TypeVar

import numpy as np

from shapelaw.fits.line import Floats
from shapelaw.fits.significance import Mean, mean_of
from shapelaw.report import plots
from shapelaw.report.charts import Across, Chart, Mark, Panel, Points, Span
from shapelaw.specs.degrees import HALF
from shapelaw.studies.block_degree.analysis import Difference, Tuned

LOOKS = {
    1: (plots.MUTED, "o"),
    2: (plots.SECOND, "s"),
    3: (plots.ACCENT, "D"),
    4: (plots.THIRD, "P"),
    6: (plots.FOURTH, "X"),
}
MIXED, UNEVEN = (plots.FIFTH, "*"), (plots.INK, "p")  # degrees that are learned, and different ones in turn
Item = TypeVar("Item")
Means = Sequence[tuple[Tuned, Mean]]  # of logarithms


def losses_figure(tuned: Sequence[Tuned]) -> Chart:
    """Held-out loss against the target's separation rank R, one colour per degree; right, digits."""
    points = [(one, one.log_loss) for one in tuned if one.log_losses and _is_half_way(one)]
    share, nats = Span("held-out loss (share of the variance)", "log"), Span("held-out loss (nats)")
    return _chart(points, share, nats)


def differences_figure(differences: Sequence[Difference]) -> Chart:
    """`losses_figure` divided by the loss of degree 3, seed by seed; no point where a seed of either diverged."""
    points = [
        (one.tuned, one.log_ratio) for one in differences if not one.diverged and _is_half_way(one.tuned)
    ]
    equal = Across(1, label="equal to degree 3", more={"zorder": 0})
    return _chart(points, Span("held-out loss / that of degree 3", "log"), Span("", "log"), [equal])


def speed_figure(tuned: Sequence[Tuned]) -> Chart | str:
    """Steps to a held-out loss against R, one panel per threshold of the separable targets; or why there is none."""
    panels: dict[float, list[tuple[Tuned, Mean]]] = {}
    half_way = [(one, one.steps_to) for one in tuned if _is_half_way(one)]
    for one, thresholds in _of_target("separable", half_way):
        for threshold in thresholds:
            if steps := one.log_steps_to(threshold):
                panels.setdefault(threshold, []).append((one, mean_of(list(steps.values()))))
    if not panels:
        return "no threshold is reached by every seed of a network after its first evaluation"
    steps_axis = Span("training steps", "whole log")
    shown = [
        _separable_panel(panels[threshold], steps_axis, title=f"to a loss of {threshold:g}")
        for threshold in sorted(panels, reverse=True)
    ]
    return Chart(shown, columns=len(shown), width=plots.PAGE, share_y=True, legend=4)


def mixtures_figure(tuned: Sequence[Tuned]) -> Chart | str:
    """Mean degree of mixtures at the end against that at the beginning, a colour per R; or why not."""
    settled = [(one, one.settled_mean) for one in tuned if one.settled]
    shown = [*_of_target("digits", settled), *_of_target("separable", settled)]
    if not shown:
        return "no network learns a mixture of degrees"
    looks = plots.ordered_looks([one.task.target_rank for one, _ in shown])
    lines: dict[tuple[int, float], list[tuple[Tuned, Mean]]] = {}
    for one, mean in sorted(shown, key=lambda point: point[0].begins_at):
        lines.setdefault((one.task.target_rank, one.mean_layer), []).append((one, mean))
    marks = list[Mark]()
    for place, (rank, degree) in enumerate(sorted(lines)):
        line, look = lines[rank, degree], looks[rank]
        x = [one.begins_at + 0.015 * (place - (len(lines) - 1) / 2) for one, _ in line]
        y, err = [mean.value for _, mean in line], [mean.reach for _, mean in line]
        marks.append(Points(x, y, f"R = {rank}" if rank else "digits", look.color, look.marker, "-", err))
    begins = [one.begins_at for one, _ in shown]
    ends = [min(begins) - 0.05, max(begins) + 0.05]
    marks.append(Points(ends, ends, "unchanged", plots.MUTED, line="--", more={"linewidth": 0.8}))
    marks.append(Across(math.e, "y", "e, the note's best degree", plots.INK, ":"))
    panel = Panel(marks, Span("mean degree before training"), Span("mean degree after it"))
    return Chart([panel], width=plots.COLUMN * 1.1, height=3.4)


def exp_bars(means: Sequence[Mean]) -> tuple[Floats, Floats]:
    """Means of logarithms as values, (n,), and as lengths of the bars below and above, (2, n); NaN with one seed."""
    value, low, high = np.exp([(mean.value, mean.low, mean.high) for mean in means]).T
    return value, np.array([value - low, high - value])


def _is_half_way(one: Tuned) -> bool:
    return one.initial_share == HALF


def _of_target(target: str, items: Sequence[tuple[Tuned, Item]]) -> list[tuple[Tuned, Item]]:
    """The networks on a target with the most inputs and, of these, the greatest width."""
    chosen = [(one, item) for one, item in items if one.task.target == target]
    largest = max(((one.task.inputs, one.task.width) for one, _ in chosen), default=None)
    return [(one, item) for one, item in chosen if (one.task.inputs, one.task.width) == largest]


def _chart(points: Means, separable: Span, digits: Span, below: Sequence[Mark] = ()) -> Chart:
    """Networks on separable targets and, right, on digits, with the y axis of either."""
    left, right = (_of_target(target, points) for target in ("separable", "digits"))
    nothing = Panel(nothing="No runs on separable targets.")
    panels = [
        _separable_panel(left, separable, below) if left else nothing,
        _digits_panel(right, digits, below) if right else None,
    ]
    return Chart(panels, columns=2, height=3.5, widths=[2, 1], legend=4)


def _lines(points: Means) -> dict[tuple[str, int], list[tuple[Tuned, Mean]]]:
    """Networks of one name and budget, by R."""
    lines: dict[tuple[str, int], list[tuple[Tuned, Mean]]] = {}
    for one, mean in sorted(points, key=lambda p: (p[0].mixture, p[0].mean_layer, p[0].task.target_rank)):
        lines.setdefault((one.name, one.task.matrices), []).append((one, mean))
    return lines


def _separable_panel(points: Means, y: Span, below: Sequence[Mark] = (), title: str = "") -> Panel:
    """A line per network against R, with its points beside those of the others."""
    budgets, lines = sorted({one.task.matrices for one, _ in points}), _lines(points)

    def marks() -> Iterator[Mark]:
        for place, ((name, budget), line) in enumerate(lines.items()):
            beside = plots.side_by_side(place, len(lines))
            value, err = exp_bars([mean for _, mean in line])
            said = name if len(budgets) == 1 else f"{name}, {budget} matrices"
            dashes = ("-", "--", ":", "-.")[budgets.index(budget) % 4]
            x = [one.task.target_rank * beside for one, _ in line]
            yield Points(x, value, said, *_look(line[0][0]), dashes, err)
        yield from below

    ranks = {one.task.target_rank for one, _ in points}
    return Panel(marks(), Span("separation rank R of the target", "values", ranks), y, title)


def _digits_panel(points: Means, y: Span, below: Sequence[Mark]) -> Panel:
    """Each network at its own place."""
    lines = _lines(points)
    marks = list(below)
    for place, line in enumerate(lines.values()):
        for one, mean in line:
            value, err = exp_bars([mean])
            marks.append(Points(place, value, "", *_look(one), err=err))
    names = {float(place): name for place, (name, _) in enumerate(lines)}
    return Panel(marks, Span(ticks=names, turned=40), y, "digits")


def _look(one: Tuned) -> tuple[str, str]:
    """The colour and the marker of a network's degree."""
    if one.mixture:
        return MIXED
    return LOOKS.get(one.layers[0], UNEVEN) if len(set(one.layers)) == 1 else UNEVEN
