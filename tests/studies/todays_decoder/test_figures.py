"""The figures of the study of today's decoder."""

import matplotlib.pyplot as plt
import numpy as np
from todays_runs import CELLS, DEPTHS, todays_runs

from shapelaw.studies.todays_decoder.analysis import analyse_cells, name_of
from shapelaw.studies.todays_decoder.figures import crossings_figure, losses_figure
from shapelaw.studies.transitions.analysis import Options
from shapelaw.studies.transitions.drawing import NO_TRANSITION


def test_every_cell_is_drawn() -> None:
    analysis = analyse_cells(todays_runs(), "runs.csv", Options(draws=100))
    titles = [
        axis.get_title(loc="left").replace("\n", " ") for axis in losses_figure(analysis).axes if axis.axison
    ]
    assert titles == [name_of(cell) for cell in analysis.cells]
    assert len({axis.get_xlim() for axis in losses_figure(analysis).axes}) == 1
    first, second = crossings_figure(analysis).axes
    assert first.get_ylim() == second.get_ylim()
    assert [axis.get_title(loc="left") for axis in (first, second)] == ["1,000 steps", "4,000 steps"]
    assert first.get_legend_handles_labels()[1] == ["gpt2", "llama"]
    assert [label.get_text() for label in first.get_xticklabels()] == ["0.001", "0.002", "best"]
    plt.close("all")


def test_without_a_transition_the_figure_says_so() -> None:
    once = todays_runs(dict(list(CELLS.items())[:1])).query(
        "seed == 0"
    )  # without noise nothing is significant
    assert crossings_figure(analyse_cells(once, "runs.csv", Options(draws=100))) == NO_TRANSITION


def test_a_budget_without_a_transition_has_no_panel_and_is_named() -> None:
    runs = todays_runs()
    later = runs["steps"] == runs["steps"].max()
    deep = later & (runs["depth"] == DEPTHS[1])
    turn = runs.loc[deep, "width"].rank(method="dense") % 2
    runs.loc[deep, "test_loss"] += np.where(
        turn, 0.3, -0.3
    )  # better and worse in turn: no transition, no bound
    analysis = analyse_cells(runs, "runs.csv", Options(draws=100))
    (axis,) = (figure := crossings_figure(analysis)).axes
    assert axis.get_title(loc="left") == "1,000 steps"
    assert figure.get_suptitle() == f"4,000 steps: {NO_TRANSITION}"
    plt.close("all")


def test_blocks_are_told_apart_without_colour() -> None:
    axis = crossings_figure(analyse_cells(todays_runs(), "runs.csv", Options(draws=100))).axes[0]
    drawn = {label: handle for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    markers = {name: bars.lines[0].get_marker() for name, bars in drawn.items()}
    assert len(set(markers.values())) == len(markers) == 2
    plt.close("all")
