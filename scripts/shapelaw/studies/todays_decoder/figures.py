"""The figures of the study of today's decoder."""

from __future__ import annotations

import math

from matplotlib.figure import Figure

from shapelaw.report.plots import PAGE, explain, new_figure, ordered_colors, side_by_side, style, value_axis
from shapelaw.studies.todays_decoder.analysis import TodaysAnalysis
from shapelaw.studies.transitions.drawing import draw_panels, draw_transition


def losses_figure(analysis: TodaysAnalysis) -> Figure:
    """Test loss of each depth against size: a row for each block and budget, a column for each rate and the best."""
    panels = {(cell.series, cell.rate_name): cell.transitions for cell in analysis.cells}
    rates = sorted({(cell.learning_rate or math.inf, cell.rate_name) for cell in analysis.cells})
    return draw_panels(panels, [name for _, name in rates])


def crossings_figure(analysis: TodaysAnalysis) -> Figure:
    """Transition width of the shallowest pair for each budget, block and rate, with 68% intervals.

    A panel for each budget, the learning rate along it with the best rates at the right end; triangles are bounds.
    """
    budgets = list(dict.fromkeys(cell.budget for cell in analysis.cells))
    kinds = list(dict.fromkeys((cell.block, cell.scaling) for cell in analysis.cells))
    rates = sorted({cell.learning_rate for cell in analysis.cells if cell.learning_rate is not None})
    best = rates[-1] * 2
    with style():
        figure, axes = new_figure(1, len(budgets), width=PAGE, height=3.0)
        colors = ordered_colors(range(len(kinds)))
        for axis, budget in zip(axes[0], budgets, strict=True):
            drawn = set[int]()
            for cell in analysis.cells:
                if cell.budget != budget:
                    continue
                kind = kinds.index((cell.block, cell.scaling))
                label = cell.block if cell.base_width is None else f"{cell.block}, {cell.scaling}"
                for row in cell.transitions.bootstrap_rows[:1]:
                    rate = best if cell.learning_rate is None else cell.learning_rate
                    at = rate * side_by_side(kind, len(kinds))
                    once = None if kind in drawn else label
                    if draw_transition(axis, at, row, colors[kind], colors[kind], once):
                        drawn.add(kind)
            value_axis(axis, [*rates, best])
            axis.set_xticks([*rates, best], [*(f"{rate:g}" for rate in rates), "best"])
            axis.set_title(budget)
            axis.set_xlabel("peak learning rate")
            if drawn:
                axis.legend()
            else:
                explain(axis, "No transition within the widths that were trained.")
        axes[0, 0].set_ylabel("width at which the deeper network wins")
        return figure
