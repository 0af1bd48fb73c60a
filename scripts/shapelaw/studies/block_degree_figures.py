"""The figures of the degree study: held-out loss of each degree, against that of degree 3, and speed."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from shapelaw.degrees import HALF
from shapelaw.fits.paired import Mean, mean_of
from shapelaw.plots import (
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
from shapelaw.studies.block_degree_analysis import Difference, Task, Tuned
from shapelaw.studies.block_degree_tables import speed_table

COLORS = {1.0: "#8a8f98", 2.0: "#2f6f9f", 3.0: "#c8442d", 4.0: "#e08a1e", 6.0: "#7a4fa3"}
MIXED = "#3c8d5a"


def _color(one: Tuned) -> str:
    return MIXED if one.mixture else COLORS.get(one.mean_degree, INK)


def _widest(tasks: Sequence[Task]) -> tuple[int, int]:
    """The most inputs of a separable target and, of these, the greatest width; figures draw these, tables have all."""
    return max((task.inputs, task.width) for task in tasks if task.target == "separable")


def _drawn(tuned: Sequence[Tuned]) -> list[Tuned]:
    """The networks on separable targets that figures draw; of mixtures those that begin half-way."""
    chosen = [one for one in tuned if one.task.target == "separable" and one.initial_share == HALF]
    return [
        one for one in chosen if (one.task.inputs, one.task.width) == _widest([one.task for one in chosen])
    ]


def losses_figure(tuned: Sequence[Tuned]) -> Figure:
    """Held-out loss against the target's separation rank R, a colour per degree; right, digits."""
    points = [(one, one.log_loss) for one in tuned if one.log_losses]
    return _against_rank(points, "held-out loss (share of the variance)", "held-out loss (nats)")


def differences_figure(differences: Sequence[Difference]) -> Figure:
    """The same as `losses_figure` over the loss of degree 3, seed by seed; below 1 is better."""
    points = [
        (one.tuned, one.log_ratio)
        for one in differences
        if len(one.tuned.log_losses) == len(one.tuned.losses)
    ]
    figure = _against_rank(points, "held-out loss / that of degree 3", "")
    for axis in figure.axes:
        ratio_axis(axis)
    return figure


def exp_bars(means: Sequence[Mean]) -> tuple[list[float], list[list[float]]]:
    """Means of logarithms as what `errorbar` takes: values, and how far the interval goes below and above."""
    values = [math.exp(mean.value) for mean in means]
    low = [v - math.exp(m.low) if m.seeds > 1 else 0 for v, m in zip(values, means, strict=True)]
    high = [math.exp(m.high) - v if m.seeds > 1 else 0 for v, m in zip(values, means, strict=True)]
    return values, [low, high]


def _against_rank(points: Sequence[tuple[Tuned, Mean]], label: str, digits_label: str) -> Figure:
    """Means of logarithms: of networks on separable targets against R; right, of those on digits."""
    drawn = _drawn([one for one, _ in points])
    with style():
        figure, axes = new_figure(1, 2, width=PAGE, height=3.0, width_ratios=[2, 1])
        _draw_separable(axes[0, 0], [(one, mean) for one, mean in points if one in drawn])
        _draw_digits(axes[0, 1], [(one, mean) for one, mean in points if one.task.target == "digits"])
        axes[0, 0].set_ylabel(label)
        axes[0, 1].set_ylabel(digits_label)
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=6)
        return figure


def _lines(points: Sequence[tuple[Tuned, Mean]]) -> dict[tuple[str, int], list[tuple[Tuned, Mean]]]:
    """Networks of one name and budget, by R."""
    lines: dict[tuple[str, int], list[tuple[Tuned, Mean]]] = {}
    for one, mean in sorted(points, key=lambda p: (p[0].mixture, p[0].mean_degree, p[0].task.target_rank)):
        lines.setdefault((one.name, one.task.matrices), []).append((one, mean))
    return lines


def _draw_separable(axis: Axes, points: Sequence[tuple[Tuned, Mean]]) -> None:
    if not points:
        explain(axis, "No runs on separable targets.")
        return
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
    axis.set(yscale="log", xlabel="separation rank R of the target")


def _draw_digits(axis: Axes, points: Sequence[tuple[Tuned, Mean]]) -> None:
    if not points:
        axis.set_axis_off()
        return
    ordered = [line[0] for line in _lines(points).values()]
    for place, (one, mean) in enumerate(ordered):
        axis.errorbar([place], *exp_bars([mean]), marker="o", color=_color(one))
    axis.set_xticks(range(len(ordered)), [one.name for one, _ in ordered], rotation=40, ha="right")
    axis.set_title("digits")


def speed_figure(tuned: Sequence[Tuned]) -> Figure:
    """Steps to a held-out loss against R, a panel per threshold of the separable targets."""
    chosen = _drawn(tuned)
    table = speed_table(chosen).dropna(subset="steps_to_it")
    thresholds = sorted(table["threshold"].unique(), reverse=True) if len(table) else []
    with style():
        figure, axes = new_figure(1, max(len(thresholds), 1), width=PAGE, height=2.8, sharey=True)
        if not thresholds:
            explain(axes[0, 0], "No threshold is reached by every seed of a network.")
            return figure
        colors = {one.name: _color(one) for one in chosen}
        for place, threshold in enumerate(thresholds):
            axis = axes[0, place]
            here = table[table["threshold"] == threshold]
            lines = list(here.groupby(["network", "matrices"], sort=True))
            for turn, ((name, _), line) in enumerate(lines):
                steps = line["steps_to_it"]
                bars = [steps - line["steps_to_it_low95"], line["steps_to_it_high95"] - steps]
                axis.errorbar(
                    line["target_rank"] * side_by_side(turn, len(lines)), steps, bars, marker="o",
                    color=colors[str(name)], label=name,
                )  # fmt: skip
            value_axis(axis, here["target_rank"].tolist())
            axis.set(yscale="log", xlabel="separation rank R of the target")
            axis.set_title(f"to a loss of {threshold:g}")
        axes[0, 0].set_ylabel("training steps")
        by_label = {
            label: handle
            for axis in axes[0]
            for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
        }
        figure.legend(by_label.values(), by_label.keys(), loc="outside lower center", ncols=6)
        return figure


def mixtures_figure(tuned: Sequence[Tuned]) -> Figure:
    """Mean degree of mixtures at the end against that at the beginning, a colour per R, and e."""
    with style():
        figure, axes = new_figure(width=COLUMN, height=2.8)
        axis = axes[0, 0]
        mixtures = [one for one in tuned if one.settled]
        if not mixtures:
            explain(axis, "No network learns a mixture of degrees.")
            return figure
        targets = sorted({one.task.target_rank for one in mixtures})
        colors = ordered_colors(targets)
        for rank in targets:
            line = sorted(
                (one for one in mixtures if one.task.target_rank == rank), key=lambda one: one.begins_at
            )
            means = [mean_of(list(one.settled.values())) for one in line]
            err = [0 if mean.seeds < 2 else mean.high - mean.value for mean in means]
            axis.errorbar(
                [one.begins_at for one in line], [mean.value for mean in means], err, marker="o", color=colors[rank],
                label=f"R = {rank}" if rank else "digits",
            )  # fmt: skip
        begins = [one.begins_at for one in mixtures]
        ends = [min(begins) - 0.05, max(begins) + 0.05]
        axis.plot(ends, ends, color=MUTED, linestyle="--", linewidth=0.8)
        axis.axhline(math.e, color=MUTED, linestyle=":", linewidth=0.8)
        axis.set(xlabel="mean degree before training", ylabel="mean degree after it")
        figure.legend(loc="outside lower center", ncols=3)
        return figure
