"""The figures of the degree study: held-out losses, their ratio to degree 3, speed, and mixtures.

For separable targets they draw the networks with the most inputs and, of these, the greatest width; for digits those
with the greatest width. Of mixtures they draw those that begin half-way; the figure of mixtures has all. The tables
have everything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from shapelaw.fits.paired import Mean, mean_of
from shapelaw.report import plots
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
Points = Sequence[tuple[Tuned, Mean]]  # means of logarithms


def losses_figure(tuned: Sequence[Tuned]) -> Figure:
    """Held-out loss against the target's separation rank R, one colour per degree; right, digits."""
    points = [(one, one.log_loss) for one in tuned if one.log_losses and _is_half_way(one)]
    with plots.style():
        figure, separable, digits = _two_panels(points)
        if separable:
            plots.log_axis(separable, "y")
            separable.set_ylabel("held-out loss (share of the variance)")
        if digits:
            digits.set_ylabel("held-out loss (nats)")
        plots.legend_below(figure, 4)
        return figure


def differences_figure(differences: Sequence[Difference]) -> Figure:
    """`losses_figure` divided by the loss of degree 3, seed by seed; no point where a seed of either diverged."""
    points = [(one.tuned, one.log_ratio) for one in differences if not one.diverged]
    with plots.style():
        figure, separable, digits = _two_panels([point for point in points if _is_half_way(point[0])])
        for axis in (separable, digits):
            if axis:
                plots.ratio_axis(axis, "equal to degree 3")
        if separable:
            separable.set_ylabel("held-out loss / that of degree 3")
        plots.legend_below(figure, 4)
        return figure


def speed_figure(tuned: Sequence[Tuned]) -> Figure | str:
    """Steps to a held-out loss against R, one panel per threshold of the separable targets; or why there is none."""
    panels: dict[float, list[tuple[Tuned, Mean]]] = {}
    for one, thresholds in _of_target(
        "separable", [(one, one.steps_to) for one in tuned if _is_half_way(one)]
    ):
        for threshold in thresholds:
            if steps := one.log_steps_to(threshold):
                panels.setdefault(threshold, []).append((one, mean_of(list(steps.values()))))
    if not panels:
        return "no threshold is reached by every seed of a network after its first evaluation"
    with plots.style():
        figure, axes = plots.new_figure(1, len(panels), width=plots.PAGE, height=3.0, sharey=True)
        for axis, threshold in zip(axes[0], sorted(panels, reverse=True), strict=True):
            _draw_separable(axis, panels[threshold])
            plots.log_axis(axis, "y", whole=True)
            axis.set_title(f"to a loss of {threshold:g}")
        axes[0, 0].set_ylabel("training steps")
        plots.legend_below(figure, 4)
        return figure


def mixtures_figure(tuned: Sequence[Tuned]) -> Figure | str:
    """Mean degree of mixtures at the end against that at the beginning, a colour per R; or why not."""
    settled = [(one, one.settled_mean) for one in tuned if one.settled]
    shown = [*_of_target("digits", settled), *_of_target("separable", settled)]
    if not shown:
        return "no network learns a mixture of degrees"
    with plots.style():
        figure, axes = plots.new_figure(width=plots.COLUMN * 1.1, height=3.4)
        axis = axes[0, 0]
        looks = plots.ordered_looks([one.task.target_rank for one, _ in shown])
        lines: dict[tuple[int, float], list[tuple[Tuned, Mean]]] = {}
        for one, mean in sorted(shown, key=lambda point: point[0].begins_at):
            lines.setdefault((one.task.target_rank, one.mean_layer), []).append((one, mean))
        for place, (rank, degree) in enumerate(sorted(lines)):
            line = lines[rank, degree]
            axis.errorbar(
                [one.begins_at + 0.015 * (place - (len(lines) - 1) / 2) for one, _ in line],
                [mean.value for _, mean in line],
                [mean.reach for _, mean in line],
                marker=looks[rank].marker, color=looks[rank].color, label=f"R = {rank}" if rank else "digits",
            )  # fmt: skip
        begins = [one.begins_at for one, _ in shown]
        ends = [min(begins) - 0.05, max(begins) + 0.05]
        axis.plot(ends, ends, color=plots.MUTED, linestyle="--", linewidth=0.8, label="unchanged")
        axis.axhline(math.e, color=plots.INK, linestyle=":", linewidth=0.8, label="e, the note's best degree")
        axis.set(xlabel="mean degree before training", ylabel="mean degree after it")
        plots.legend_below(figure, 3)
        return figure


def exp_bars(means: Sequence[Mean]) -> tuple[list[float], list[list[float]]]:
    """Means of logarithms in the form for `errorbar`: values, and the lengths of the bars below and above."""
    values = [math.exp(mean.value) for mean in means]
    low = [v - math.exp(m.low) if m.seeds > 1 else 0 for v, m in zip(values, means, strict=True)]
    high = [math.exp(m.high) - v if m.seeds > 1 else 0 for v, m in zip(values, means, strict=True)]
    return values, [low, high]


def _is_half_way(one: Tuned) -> bool:
    return one.initial_share == HALF


def _of_target(target: str, items: Sequence[tuple[Tuned, Item]]) -> list[tuple[Tuned, Item]]:
    """The networks on a target with the most inputs and, of these, the greatest width."""
    chosen = [(one, item) for one, item in items if one.task.target == target]
    largest = max(((one.task.inputs, one.task.width) for one, _ in chosen), default=None)
    return [(one, item) for one, item in chosen if (one.task.inputs, one.task.width) == largest]


def _two_panels(points: Points) -> tuple[Figure, Axes | None, Axes | None]:
    """Axes for networks on separable targets and, right, on digits; None for a panel without networks."""
    figure, axes = plots.new_figure(1, 2, width=plots.PAGE, height=3.5, width_ratios=[2, 1])
    drawn: list[Axes | None] = []
    draw: Callable[[Axes, Points], None]
    for axis, target, draw in zip(
        axes[0], ("separable", "digits"), (_draw_separable, _draw_digits), strict=True
    ):
        chosen = _of_target(target, points)
        if chosen:
            draw(axis, chosen)
        else:
            axis.set_axis_off()
        drawn.append(axis if chosen else None)
    if drawn[0] is None:
        plots.explain(axes[0, 0], "No runs on separable targets.")
    return figure, drawn[0], drawn[1]


def _lines(points: Points) -> dict[tuple[str, int], list[tuple[Tuned, Mean]]]:
    """Networks of one name and budget, by R."""
    lines: dict[tuple[str, int], list[tuple[Tuned, Mean]]] = {}
    for one, mean in sorted(points, key=lambda p: (p[0].mixture, p[0].mean_layer, p[0].task.target_rank)):
        lines.setdefault((one.name, one.task.matrices), []).append((one, mean))
    return lines


def _draw_separable(axis: Axes, points: Points) -> None:
    """Draw a line per network against R, with its points beside those of the others."""
    budgets = sorted({one.task.matrices for one, _ in points})
    lines = _lines(points)
    for place, ((name, budget), line) in enumerate(lines.items()):
        beside = plots.side_by_side(place, len(lines))
        color, shape = _look(line[0][0])
        axis.errorbar(
            [one.task.target_rank * beside for one, _ in line], *exp_bars([mean for _, mean in line]), marker=shape,
            color=color, linestyle=("-", "--", ":", "-.")[budgets.index(budget) % 4],
            label=name if len(budgets) == 1 else f"{name}, {budget} matrices",
        )  # fmt: skip
    plots.value_axis(axis, {one.task.target_rank for one, _ in points})
    axis.set_xlabel("separation rank R of the target")


def _draw_digits(axis: Axes, points: Points) -> None:
    """Draw each network at its own place."""
    lines = _lines(points)
    for place, line in enumerate(lines.values()):
        for one, mean in line:
            color, shape = _look(one)
            axis.errorbar([place], *exp_bars([mean]), marker=shape, color=color)
    axis.set_xticks(range(len(lines)), [name for name, _ in lines], rotation=40, ha="right")
    axis.set_title("digits")


def _look(one: Tuned) -> tuple[str, str]:
    """The colour and the marker of a network's degree."""
    if one.mixture:
        return MIXED
    return LOOKS.get(one.layers[0], UNEVEN) if len(set(one.layers)) == 1 else UNEVEN
