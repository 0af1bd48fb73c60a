"""Theorems that ranks are held against, degrees at equal budget, and what is drawn and said of them."""

import math

import pandas as pd
import pytest
from measured_grids import asked_one, degree_rows, ranks_of

from shapelaw.studies.separation_rank.results import degree_figure, depth_figure, residual_figure
from shapelaw.studies.separation_rank.tables import (
    Measured,
    bounds_table,
    degree_table,
    fractional_table,
    ranking_table,
    ranks_table,
    theorems_table,
)


def test_a_violated_theorem_is_said():
    """A rank that no such network has."""
    found = [(asked_one(2, 4, 8), Measured(10**9, True, 10**9, 10**9, 0.0, 1.0))]
    table = bounds_table(found)
    assert set(table.loc[table["theorem"] == "depth-width, theorem 3", "holds"]) == {"no"}
    assert ranks_table(found)["follows"].tolist() == ["no"]


def test_corollaries_on_pairs_of_networks():
    """Two layers of width 10 against one: 2,155 wide, where theorem 1's numbers ask for 3.5."""
    ranks = ranks_of((2, 10, 20), (1, 9, 20), (3, 2, 12), (2, 6, 12))
    first, second = theorems_table(bounds_table([]), ranks).to_dict("records")
    assert (first["networks"], first["holds"], first["violated"]) == (1, 1, 0)
    assert first["least_distance"] == pytest.approx(math.log(2156 / 4.5, 3))
    # of three layers of width 2, two of width 6 have more; of two of width 6, no shallower one was measured
    assert (second["networks"], second["holds"], second["open"]) == (2, 1, 1)
    assert second["least_distance"] == pytest.approx(2 - math.log(2, 3))


def test_where_bounds_overlap_the_winner_is_open():
    table = degree_table(degree_rows((2, 20, False, 90), (3, 50, True, 50), (6, 10, True, 10)))
    assert table["largest"].tolist() == ["open", "open", "no"]
    row = ranking_table(table).iloc[0]
    assert (row["largest_rank"], row["of_2_and_3"], row["agrees_with_note"]) == ("open", "open", "open")
    table = degree_table(degree_rows((2, 51, False, 90), (3, 50, True, 50), (6, 10, True, 10)))
    assert table["largest"].tolist() == ["yes", "no", "no"]
    assert ranking_table(table).iloc[0]["of_2_and_3"] == "2"


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
