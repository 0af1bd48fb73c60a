"""The figures of the study of undertraining."""

from __future__ import annotations

from matplotlib.figure import Figure

from shapelaw.report.plots import COLUMN, legend_below, log_axis, new_figure, style
from shapelaw.studies.grid.figures import draw_widths, rates_figure
from shapelaw.studies.grid.rates import RATE, RatesAnalysis
from shapelaw.studies.transitions.drawing import NO_TRANSITION
from shapelaw.studies.undertraining.analysis import steps_of


def losses_figure(analysis: RatesAnalysis) -> Figure:
    """Test loss of each depth against size: a row for each number of steps, a column for each rate and the best."""
    return rates_figure(analysis.cells, steps_of)


def transition_rate_figure(analysis: RatesAnalysis) -> Figure | str:
    """Transition width of the shallowest pair against the learning rate, for each number of steps.

    The best rates stand at the right end, under their name; triangles are bounds. Without any, the reason.
    """
    kinds = list(dict.fromkeys(map(steps_of, analysis.cells)))
    rates = sorted({one.cell.number(RATE) for one in analysis.trained})
    with style():
        figure, axes = new_figure(width=COLUMN, height=3.0)
        axis = axes[0, 0]
        if not draw_widths(axis, analysis.cells, kinds, steps_of, rates):
            return NO_TRANSITION
        axis.set_ylabel("width at which the deeper network wins")
        log_axis(axis, "y", whole=True)
        axis.set_title("bars: 68% intervals; triangles: bounds")
        legend_below(figure, 3)
        return figure
