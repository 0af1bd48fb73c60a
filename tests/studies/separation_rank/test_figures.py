"""The figures of separation ranks."""

import math

import pandas as pd
from measured_grids import asked_one, ranks_of

from shapelaw.studies.separation_rank.results import degree_figure, depth_figure, residual_figure
from shapelaw.studies.separation_rank.tables import Measured, degree_table, fractional_table, ranks_table


def test_figures_of_nothing_say_so():
    assert fractional_table([]).empty
    assert degree_figure(degree_table([])) == "no budget was measured"
    ranks = ranks_table([(asked_one(1, 1, 2), Measured(2, True, 2, 10, 0.0, 0.0))])
    assert depth_figure(ranks) == "no width was measured at two depths"
    assert "no network was measured" in str(residual_figure(pd.DataFrame()))


def test_an_exact_rank_is_a_circle_and_a_lower_bound_a_triangle():
    exact = ranks_of((1, 2, 8), (2, 2, 8))
    lower = ranks_of((3, 2, 8)).assign(status="at least")
    figure = depth_figure(pd.concat([exact, lower], ignore_index=True)).figure()
    left, right = figure.axes
    assert "no width has two depths" in left.texts[0].get_text()
    drawn = {line.get_marker(): line for line in right.get_lines() if line.get_marker() in ("o", "^")}
    assert drawn["o"].get_xdata().tolist() == [1, 2]
    assert drawn["o"].get_ydata().tolist() == [math.log(rank, 3) for rank in (3, 18)]
    assert drawn["^"].get_xdata().tolist() == [3]
    assert drawn["o"].get_label() == "d = 2"
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()][:3] == ["exact", "at least", "closed form"]
    (legend,) = depth_figure(exact).figure().legends
    assert "at least" not in [text.get_text() for text in legend.get_texts()]
