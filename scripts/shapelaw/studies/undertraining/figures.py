"""The figures of the study of undertraining."""

from __future__ import annotations

import math

from matplotlib.figure import Figure

from shapelaw.report.plots import (
    COLUMN,
    legend_below,
    log_axis,
    new_figure,
    ordered_looks,
    side_by_side,
    style,
    value_axis,
)
from shapelaw.studies.transitions.drawing import NO_TRANSITION, draw_panels, draw_transition
from shapelaw.studies.undertraining.analysis import UndertrainingAnalysis


def losses_figure(analysis: UndertrainingAnalysis) -> Figure:
    """Test loss of each depth against size: a row for each number of steps, a column for each rate and the best."""
    panels = {(f"{cell.steps:,} steps", cell.rate_name): cell.transitions for cell in analysis.cells}
    rates = sorted({(cell.learning_rate or math.inf, cell.rate_name) for cell in analysis.cells})
    return draw_panels(panels, [name for _, name in rates])


def transition_rate_figure(analysis: UndertrainingAnalysis) -> Figure | str:
    """Transition width of the shallowest pair against the learning rate, for each number of steps.

    The best rates stand at the right end, under their name; triangles are bounds. Without any, the reason.
    """
    steps = sorted({cell.steps for cell in analysis.cells})
    rates = sorted({cell.learning_rate for cell in analysis.cells if cell.learning_rate is not None})
    best = rates[-1] * 2
    with style():
        figure, axes = new_figure(width=COLUMN, height=3.0)
        axis, looks, drawn = axes[0, 0], ordered_looks(steps), set[int]()
        for cell in analysis.cells:
            for row in cell.transitions.bootstrap_rows[:1]:
                rate = best if cell.learning_rate is None else cell.learning_rate
                at = rate * side_by_side(steps.index(cell.steps), len(steps))
                label = None if cell.steps in drawn else f"{cell.steps:,} steps"
                color, marker = looks[cell.steps].color, looks[cell.steps].marker
                if draw_transition(axis, at, row, color, color, label, marker):
                    drawn.add(cell.steps)
        value_axis(axis, [*rates, best])
        axis.set_xticks([*rates, best], [*(f"{rate:g}" for rate in rates), "best"])
        axis.set(xlabel="peak learning rate", ylabel="width at which the deeper network wins")
        log_axis(axis, "y", whole=True)
        if not drawn:
            return NO_TRANSITION
        axis.set_title("bars: 68% intervals; triangles: bounds")
        legend_below(figure, 3)
        return figure
