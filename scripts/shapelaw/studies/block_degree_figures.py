"""The figures of the degree study: held-out loss and speed of each degree."""

from __future__ import annotations

import math

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from shapelaw.plots import INK, PAGE, explain, new_figure, style
from shapelaw.studies.block_degree_analysis import Tuned
from shapelaw.studies.block_degree_tables import speed_table

COLORS = {1.0: "#8a8f98", 2.0: "#2f6f9f", 3.0: "#c8442d", 4.0: "#e08a1e"}
MIXED = "#3c8d5a"


def _color(one: Tuned) -> str:
    return MIXED if one.mixture else COLORS.get(one.mean_degree, INK)


def _widest(tuned: list[Tuned]) -> list[Tuned]:
    """The networks on separable targets of the most inputs and, of these, the greatest width; the tables have all."""
    chosen = [one for one in tuned if one.task.target == "separable"]
    sizes = [(one.task.inputs, one.task.width) for one in chosen]
    return [one for one, size in zip(chosen, sizes, strict=True) if size == max(sizes)]


def losses_figure(tuned: list[Tuned]) -> Figure:
    """Held-out loss against the target's separation rank R, a colour per degree; right, digits."""
    with style():
        figure, axes = new_figure(1, 2, width=PAGE, height=3.0, width_ratios=[2, 1])
        _draw_separable(axes[0, 0], _widest(tuned))
        _draw_digits(axes[0, 1], [one for one in tuned if one.task.target == "digits"])
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=6)
        return figure


def _lines(tuned: list[Tuned]) -> dict[tuple[str, int, int], list[Tuned]]:
    """Networks of one name and budget, by R."""
    lines: dict[tuple[str, int, int], list[Tuned]] = {}
    for one in sorted(tuned, key=lambda one: (one.mixture, one.mean_degree, one.task.target_rank)):
        if one.log_losses:
            lines.setdefault((one.name, one.task.width, one.task.matrices), []).append(one)
    return lines


def _draw_separable(axis: Axes, tuned: list[Tuned]) -> None:
    if not tuned:
        explain(axis, "No runs on separable targets.")
        return
    budgets = sorted({one.task.matrices for one in tuned})
    for (name, _, budget), line in _lines(tuned).items():
        means = [one.log_loss for one in line]
        value = [math.exp(mean.value) for mean in means]
        low = [v - math.exp(m.low) if m.seeds > 1 else 0 for v, m in zip(value, means, strict=True)]
        high = [math.exp(m.high) - v if m.seeds > 1 else 0 for v, m in zip(value, means, strict=True)]
        label = name if len(budgets) == 1 else f"{name}, {budget} matrices"
        axis.errorbar(
            [one.task.target_rank for one in line], value, [low, high], marker="o", color=_color(line[0]),
            linestyle=("-", "--", ":", "-.")[budgets.index(budget) % 4], label=label,
        )  # fmt: skip
    axis.set(xscale="log", yscale="log", xlabel="separation rank R of the target")
    axis.set_ylabel("held-out loss (share of the variance)")


def _draw_digits(axis: Axes, tuned: list[Tuned]) -> None:
    if not tuned:
        axis.set_axis_off()
        return
    ordered = [line[0] for line in _lines(tuned).values()]
    for place, one in enumerate(ordered):
        mean = one.log_loss
        value = math.exp(mean.value)
        err = [[value - math.exp(mean.low)], [math.exp(mean.high) - value]] if mean.seeds > 1 else None
        axis.errorbar([place], [value], err, marker="o", color=_color(one))
    axis.set_xticks(range(len(ordered)), [one.name for one in ordered], rotation=40, ha="right")
    axis.set_ylabel("held-out loss (nats)")
    axis.set_title("digits")


def speed_figure(tuned: list[Tuned]) -> Figure:
    """Steps to a held-out loss against R, a panel per threshold of the separable targets."""
    chosen = _widest(tuned)
    table = speed_table(chosen).dropna(subset="steps_to_it")
    thresholds = sorted(table["threshold"].unique(), reverse=True) if len(table) else []
    with style():
        figure, axes = new_figure(1, max(len(thresholds), 1), width=PAGE, height=2.8, sharey=True)
        if not thresholds:
            explain(axes[0, 0], "No threshold is reached by half of the seeds.")
            return figure
        colors = {one.name: _color(one) for one in chosen}
        for place, threshold in enumerate(thresholds):
            axis = axes[0, place]
            here = table[table["threshold"] == threshold]
            for (name, _), line in here.groupby(["network", "matrices"], sort=True):
                axis.plot(line["target_rank"], line["steps_to_it"], "o-", color=colors[str(name)], label=name)
            axis.set(xscale="log", yscale="log", xlabel="separation rank R of the target")
            axis.set_title(f"to a loss of {threshold:g}")
        axes[0, 0].set_ylabel("training steps")
        by_label = {
            label: handle
            for axis in axes[0]
            for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
        }
        figure.legend(by_label.values(), by_label.keys(), loc="outside lower center", ncols=6)
        return figure
