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
from shapelaw.report.plots import (
    COLUMN,
    INK,
    MUTED,
    PAGE,
    explain,
    new_figure,
    ordered_colors,
    ratio_axis,
    side_by_side,
    style,
    value_axis,
)
from shapelaw.specs.degrees import HALF
from shapelaw.studies.block_degree.analysis import Difference, Tuned

COLORS = {1: "#8a8f98", 2: "#2f6f9f", 3: "#c8442d", 4: "#e08a1e", 6: "#7a4fa3"}
MIXED = "#3c8d5a"
Item = TypeVar("Item")
Points = Sequence[tuple[Tuned, Mean]]  # means of logarithms


def losses_figure(tuned: Sequence[Tuned]) -> Figure:
    """Held-out loss against the target's separation rank R, one colour per degree; right, digits."""
    points = [(one, one.log_loss) for one in tuned if one.log_losses and _is_half_way(one)]
    with style():
        figure, separable, digits = _two_panels(points)
        if separable:
            separable.set(yscale="log", ylabel="held-out loss (share of the variance)")
        if digits:
            digits.set_ylabel("held-out loss (nats)")
        return figure


def differences_figure(differences: Sequence[Difference]) -> Figure:
    """`losses_figure` divided by the loss of degree 3, seed by seed; no point where a seed of either diverged."""
    points = [(one.tuned, one.log_ratio) for one in differences if not one.diverged]
    with style():
        figure, separable, digits = _two_panels([point for point in points if _is_half_way(point[0])])
        for axis in (separable, digits):
            if axis:
                ratio_axis(axis)
        if separable:
            separable.set_ylabel("held-out loss / that of degree 3")
        return figure


def speed_figure(tuned: Sequence[Tuned]) -> Figure:
    """Steps to a held-out loss against R, one panel per threshold of the separable targets."""
    panels: dict[float, list[tuple[Tuned, Mean]]] = {}
    for one, thresholds in _of_target(
        "separable", [(one, one.steps_to) for one in tuned if _is_half_way(one)]
    ):
        for threshold in thresholds:
            if steps := one.log_steps_to(threshold):
                panels.setdefault(threshold, []).append((one, mean_of(list(steps.values()))))
    with style():
        figure, axes = new_figure(1, max(len(panels), 1), width=PAGE, height=2.8, sharey=True)
        if not panels:
            explain(
                axes[0, 0], "No threshold is reached by every seed of a network after its first evaluation."
            )
            return figure
        for axis, threshold in zip(axes[0], sorted(panels, reverse=True), strict=True):
            _draw_separable(axis, panels[threshold])
            axis.set(yscale="log", title=f"to a loss of {threshold:g}")
        axes[0, 0].set_ylabel("training steps")
        _legend(figure, 6)
        return figure


def mixtures_figure(tuned: Sequence[Tuned]) -> Figure:
    """Mean degree of mixtures at the end against that at the beginning, one colour per R, and a line at e."""
    settled = [(one, mean_of(list(one.settled.values()))) for one in tuned if one.settled]
    shown = [*_of_target("digits", settled), *_of_target("separable", settled)]
    with style():
        figure, axes = new_figure(width=COLUMN, height=2.8)
        axis = axes[0, 0]
        if not shown:
            explain(axis, "No network learns a mixture of degrees.")
            return figure
        colors = ordered_colors([one.task.target_rank for one, _ in shown])
        lines: dict[tuple[int, float], list[tuple[Tuned, Mean]]] = {}
        for one, mean in sorted(shown, key=lambda point: point[0].begins_at):
            lines.setdefault((one.task.target_rank, one.mean_layer), []).append((one, mean))
        for place, (rank, degree) in enumerate(sorted(lines)):
            line = lines[rank, degree]
            axis.errorbar(
                [one.begins_at + 0.015 * (place - (len(lines) - 1) / 2) for one, _ in line],
                [mean.value for _, mean in line],
                [0 if mean.seeds < 2 else mean.high - mean.value for _, mean in line],
                marker="o", color=colors[rank], label=f"R = {rank}" if rank else "digits",
            )  # fmt: skip
        begins = [one.begins_at for one, _ in shown]
        ends = [min(begins) - 0.05, max(begins) + 0.05]
        axis.plot(ends, ends, color=MUTED, linestyle="--", linewidth=0.8)
        axis.axhline(math.e, color=MUTED, linestyle=":", linewidth=0.8)
        axis.set(xlabel="mean degree before training", ylabel="mean degree after it")
        _legend(figure, 3)
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
    figure, axes = new_figure(1, 2, width=PAGE, height=3.0, width_ratios=[2, 1])
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
        explain(axes[0, 0], "No runs on separable targets.")
    else:
        _legend(figure, 6)
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
        beside = side_by_side(place, len(lines))
        axis.errorbar(
            [one.task.target_rank * beside for one, _ in line], *exp_bars([mean for _, mean in line]), marker="o",
            color=_color(line[0][0]), linestyle=("-", "--", ":", "-.")[budgets.index(budget) % 4],
            label=name if len(budgets) == 1 else f"{name}, {budget} matrices",
        )  # fmt: skip
    value_axis(axis, {one.task.target_rank for one, _ in points})
    axis.set_xlabel("separation rank R of the target")


def _draw_digits(axis: Axes, points: Points) -> None:
    """Draw each network at its own place."""
    lines = _lines(points)
    for place, line in enumerate(lines.values()):
        for one, mean in line:
            axis.errorbar([place], *exp_bars([mean]), marker="o", color=_color(one))
    axis.set_xticks(range(len(lines)), [name for name, _ in lines], rotation=40, ha="right")
    axis.set_title("digits")


def _color(one: Tuned) -> str:
    return MIXED if one.mixture else COLORS.get(one.layers[0], INK) if len(set(one.layers)) == 1 else INK


def _legend(figure: Figure, columns: int) -> None:
    """A legend of all panels, with each name once."""
    by_label = {
        label: handle
        for axis in figure.axes
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
    }
    figure.legend(by_label.values(), by_label.keys(), loc="outside lower center", ncols=columns)
