"""The figures of the memorization studies."""

import pytest
from memorization_analyses import HEAD_COUNTS, labelled, our_runs, study_of
from memorizing_networks import simulate

from shapelaw.studies.memorization import figures, tables
from shapelaw.studies.memorization.analysis import ALONG_HEADS


def test_a_regression_alone_has_no_capacity_and_says_so():
    analysis = study_of(simulate(HEAD_COUNTS, task="regression"), ALONG_HEADS)
    assert analysis.capacities == ()
    assert figures.capacity_figure(analysis) == "there are no runs of a classification task"
    assert tables.capacity_table(analysis).empty


def test_figures_draw_the_points_the_line_and_the_theory(heads, head_dims):
    drawn = figures.share_figure(heads)
    assert [axes.get_ylabel() for axes in drawn.axes] == ["accuracy", "mean squared error"]
    assert labelled(drawn.axes[0], "T = 20,000").get_xdata().tolist() == [1, 5, 10, 20, 30]
    fitted = [line for line in drawn.axes[0].get_lines() if len(line.get_xdata()) == 60]
    assert len(fitted) == 3
    dotted = [line for line in drawn.axes[0].get_lines() if line.get_linestyle() == ":"]
    assert dotted[0].get_ydata()[-1] == pytest.approx(1861 / 10000)
    knees = figures.share_figure(head_dims).axes[0]
    assert any(set(line.get_xdata()) == {32.0} for line in knees.get_lines())
    assert [axes.get_yscale() for axes in drawn.axes] == ["linear", "log"]


def test_saturated_heads_are_drawn_or_said_to_be_unknown():
    left, right = figures.saturated_figure(study_of(our_runs(), ALONG_HEADS)).axes
    drawn = [line for line in left.get_lines() if len(line.get_xdata()) == 8]
    assert len(drawn) == 4
    assert len(right.get_lines()) == 4
    silent = study_of(simulate(HEAD_COUNTS), ALONG_HEADS)
    assert figures.saturated_figure(silent) == "no run says how many of its heads are saturated"


def test_the_legend_names_the_bounds_that_are_drawn_and_no_others():
    (legend,) = figures.capacity_figure(study_of(our_runs(), ALONG_HEADS)).legends
    named = [text.get_text() for text in legend.get_texts()]
    assert "no T tried is memorized" in named
    assert "every T tried is memorized" not in named
