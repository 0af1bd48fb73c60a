"""The figures of the study of today's decoder."""

import matplotlib.pyplot as plt
from todays_runs import CELLS, todays_runs

from shapelaw.studies.todays_decoder.analysis import analyse_cells
from shapelaw.studies.todays_decoder.figures import crossings_figure, losses_figure
from shapelaw.studies.transitions.analysis import Options


def test_every_cell_is_drawn() -> None:
    analysis = analyse_cells(todays_runs(), "runs.csv", Options(draws=100))
    titles = [
        axis.get_title(loc="left").replace("\n", " ") for axis in losses_figure(analysis).axes if axis.axison
    ]
    assert titles == [cell.name for cell in analysis.cells]
    first, second = crossings_figure(analysis).axes
    assert [axis.get_title(loc="left") for axis in (first, second)] == ["1,000 steps", "4,000 steps"]
    assert first.get_legend_handles_labels()[1] == ["gpt2", "llama"]
    assert [label.get_text() for label in first.get_xticklabels()] == ["0.001", "0.002", "best"]
    plt.close("all")


def test_without_a_transition_the_figure_says_so() -> None:
    once = todays_runs(dict(list(CELLS.items())[:1])).query(
        "seed == 0"
    )  # without noise nothing is significant
    (axis,) = crossings_figure(analyse_cells(once, "runs.csv", Options(draws=100))).axes
    assert [text.get_text() for text in axis.texts] == ["No transition within the widths that were trained."]
    assert axis.get_legend() is None
    plt.close("all")
