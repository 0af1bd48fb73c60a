"""The figures of the study of undertraining."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from shapelaw.report.plots import (
    COLUMN,
    PAGE,
    explain,
    new_figure,
    ordered_colors,
    side_by_side,
    style,
    value_axis,
)
from shapelaw.studies.transitions.drawing import draw_curves, draw_transition
from shapelaw.studies.undertraining.analysis import UndertrainingAnalysis


def losses_figure(analysis: UndertrainingAnalysis) -> Figure:
    """Test loss of each depth against size: a row for each number of steps, a column for each rate and the best."""
    steps = sorted({cell.steps for cell in analysis.cells})
    rates = sorted({cell.learning_rate for cell in analysis.cells if cell.learning_rate is not None})
    with style():
        figure, axes = new_figure(len(steps), len(rates) + 1, width=PAGE, height=2.1 * len(steps))
        colors = ordered_colors(
            sorted({int(d) for cell in analysis.cells for d in cell.runs["depth"].unique()})
        )
        unused = {(row, column) for row in range(len(steps)) for column in range(len(rates) + 1)}
        for cell in analysis.cells:
            column = len(rates) if cell.learning_rate is None else rates.index(cell.learning_rate)
            place = steps.index(cell.steps), column
            unused.discard(place)
            axis: Axes = axes[place]
            assert cell.transitions.runs is not None
            draw_curves(axis, cell.transitions.runs, cell.transitions.bootstrap_rows, colors)
            axis.set_title(f"{cell.steps:,} steps,\n{cell.rate_name}")
        for place in unused:
            axes[place].set_axis_off()
        for axis in axes[:, 0]:
            axis.set_ylabel("test loss")
        return figure


def transition_rate_figure(analysis: UndertrainingAnalysis) -> Figure:
    """Transition width of the shallowest pair against the learning rate, for each number of steps.

    The best rates stand at the right end, under their name; triangles are bounds.
    """
    steps = sorted({cell.steps for cell in analysis.cells})
    rates = sorted({cell.learning_rate for cell in analysis.cells if cell.learning_rate is not None})
    best = rates[-1] * 2
    with style():
        figure, axes = new_figure(width=COLUMN, height=3.0)
        axis, colors, drawn = axes[0, 0], ordered_colors(steps), set[int]()
        for cell in analysis.cells:
            for row in cell.transitions.bootstrap_rows[:1]:
                rate = best if cell.learning_rate is None else cell.learning_rate
                at = rate * side_by_side(steps.index(cell.steps), len(steps))
                label = None if cell.steps in drawn else f"{cell.steps:,} steps"
                color = colors[cell.steps]
                if draw_transition(axis, at, row, color, color, label):
                    drawn.add(cell.steps)
        value_axis(axis, [*rates, best])
        axis.set_xticks([*rates, best], [*(f"{rate:g}" for rate in rates), "best"])
        axis.set(xlabel="peak learning rate", ylabel="width at which the deeper network wins")
        if drawn:
            axis.legend()
        else:
            explain(axis, "No transition within the widths that were trained.")
        return figure
