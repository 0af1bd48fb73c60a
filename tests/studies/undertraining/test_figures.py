"""The figures of the study of undertraining."""

import matplotlib.pyplot as plt
from undertraining_runs import undertraining_runs

from shapelaw.studies.transitions.analysis import Options
from shapelaw.studies.undertraining.analysis import analyse_cells
from shapelaw.studies.undertraining.figures import losses_figure, transition_rate_figure


def test_every_cell_is_drawn() -> None:
    runs = undertraining_runs()
    without = runs[(runs["steps"] == 1000) | (runs["learning_rate"] == 0.001)]
    analysis = analyse_cells(without, "runs.csv", Options(draws=100))
    panels = losses_figure(analysis).axes
    titles = [axis.get_title(loc="left").replace("\n", " ") for axis in panels if axis.axison]
    assert titles == [cell.cell.name for cell in analysis.cells]
    (axis,) = transition_rate_figure(analysis).axes
    assert axis.get_legend_handles_labels()[1] == ["1,000 steps", "4,000 steps"]
    assert [label.get_text() for label in axis.get_xticklabels()] == ["0.001", "0.002", "best"]
    plt.close("all")


def test_without_a_transition_the_figure_says_so() -> None:
    once = undertraining_runs().query("seed == 0")  # without noise nothing is significant
    why = transition_rate_figure(analyse_cells(once, "runs.csv", Options(draws=100)))
    assert why == "there is no transition within the widths that were trained"
    plt.close("all")
