"""The figures of the study of today's decoder."""

from __future__ import annotations

from matplotlib.figure import Figure

from shapelaw.report.plots import PAGE, log_axis, new_figure, style
from shapelaw.studies.grid.analysis import CellAnalysis
from shapelaw.studies.grid.figures import draw_widths, rates_figure
from shapelaw.studies.grid.rates import RATE, RatesAnalysis
from shapelaw.studies.todays_decoder.analysis import scaling_of, series_of
from shapelaw.studies.transitions.drawing import NO_TRANSITION, is_told


def losses_figure(analysis: RatesAnalysis) -> Figure:
    """Test loss of each depth against size: a row for each block and budget, a column for each rate and the best."""
    return rates_figure(analysis.cells, series_of)


def crossings_figure(analysis: RatesAnalysis) -> Figure | str:
    """Transition width of the shallowest pair for each budget, block and rate, with 68% intervals.

    A panel for each budget with a transition, the learning rate along it with the best rates at the right end;
    triangles are bounds. Other budgets are named above; without any transition, the reason.
    """
    told = [one for one in analysis.cells if any(map(is_told, one.transitions.bootstrap_rows[:1]))]
    if not told:
        return NO_TRANSITION
    budgets = list(dict.fromkeys(map(_budget, told)))
    kinds = list(dict.fromkeys(map(_kind, analysis.cells)))
    rates = sorted({one.cell.number(RATE) for one in analysis.trained})
    with style():
        figure, axes = new_figure(1, len(budgets), width=PAGE, height=3.0, sharey=True)
        for axis, budget in zip(axes[0], budgets, strict=True):
            draw_widths(axis, [one for one in told if _budget(one) == budget], kinds, _kind, rates)
            axis.set_title(budget)
            axis.legend()
        log_axis(axes[0, 0], "y")
        axes[0, 0].set_ylabel("width at which the deeper network wins")
        if silent := list(dict.fromkeys(b for b in map(_budget, analysis.cells) if b not in budgets)):
            figure.suptitle(f"{'; '.join(silent)}: {NO_TRANSITION}", x=0.01, ha="left", fontsize=7)
        return figure


def _budget(one: CellAnalysis) -> str:
    return str(one.cell.value("budget"))


def _kind(one: CellAnalysis) -> str:
    block = str(one.cell.value("block"))
    return block if one.cell.value("base_width") is None else f"{block}, {scaling_of(one)}"
