"""The figures of the study of today's decoder."""

from __future__ import annotations

import math

from matplotlib.figure import Figure

from shapelaw.report.plots import PAGE, log_axis, new_figure, ordered_looks, side_by_side, style, value_axis
from shapelaw.studies.todays_decoder.analysis import TodaysAnalysis
from shapelaw.studies.transitions.drawing import NO_TRANSITION, draw_panels, draw_transition, is_told


def losses_figure(analysis: TodaysAnalysis) -> Figure:
    """Test loss of each depth against size: a row for each block and budget, a column for each rate and the best."""
    panels = {(cell.series, cell.rate_name): cell.transitions for cell in analysis.cells}
    rates = sorted({(cell.learning_rate or math.inf, cell.rate_name) for cell in analysis.cells})
    return draw_panels(panels, [name for _, name in rates])


def crossings_figure(analysis: TodaysAnalysis) -> Figure | str:
    """Transition width of the shallowest pair for each budget, block and rate, with 68% intervals.

    A panel for each budget with a transition, the learning rate along it with the best rates at the right end;
    triangles are bounds. Other budgets are named above; without any transition, the reason.
    """
    told = [cell for cell in analysis.cells if any(map(is_told, cell.transitions.bootstrap_rows[:1]))]
    if not told:
        return NO_TRANSITION
    budgets = list(dict.fromkeys(cell.budget for cell in told))
    kinds = list(dict.fromkeys((cell.block, cell.scaling) for cell in analysis.cells))
    rates = sorted({cell.learning_rate for cell in analysis.cells if cell.learning_rate is not None})
    best = rates[-1] * 2
    with style():
        figure, axes = new_figure(1, len(budgets), width=PAGE, height=3.0, sharey=True)
        looks = ordered_looks(range(len(kinds)))
        for axis, budget in zip(axes[0], budgets, strict=True):
            named = set[int]()
            for cell in (one for one in told if one.budget == budget):
                kind = kinds.index((cell.block, cell.scaling))
                label = cell.block if cell.base_width is None else f"{cell.block}, {cell.scaling}"
                at = (best if cell.learning_rate is None else cell.learning_rate) * side_by_side(
                    kind, len(kinds)
                )
                (row,), look = cell.transitions.bootstrap_rows[:1], looks[kind]
                once = None if kind in named else label
                draw_transition(axis, at, row, look.color, look.color, once, look.marker)
                named.add(kind)
            value_axis(axis, [*rates, best])
            axis.set_xticks([*rates, best], [*(f"{rate:g}" for rate in rates), "best"])
            axis.set_title(budget)
            axis.set_xlabel("peak learning rate")
            axis.legend()
        log_axis(axes[0, 0], "y")
        axes[0, 0].set_ylabel("width at which the deeper network wins")
        if silent := list(dict.fromkeys(one.budget for one in analysis.cells if one.budget not in budgets)):
            figure.suptitle(f"{'; '.join(silent)}: {NO_TRANSITION}", x=0.01, ha="left", fontsize=7)
        return figure
