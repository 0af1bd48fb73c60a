"""Ranks beside their closed forms, every theorem that they were held against, and degrees at equal budget."""

import math

import pytest
from measured_grids import asked_one, degree_rows, ranks_of

from shapelaw.studies.separation_rank.tables import (
    Measured,
    bounds_table,
    degree_table,
    ranking_table,
    ranks_table,
    theorems_table,
)


def test_the_ranks_are_known_and_follow_their_closed_forms(frames):
    ranks = frames["ranks"]
    assert (ranks["status"] == "exact").all()
    plain = ranks[(ranks["heads"] == 1) & ~ranks["residual"] & (ranks["positional_rank"] == 0)]
    found = {(r.depth, r.width, r.tokens, r.embedding_rank): r.rank for r in plain.itertuples()}
    assert found[2, 2, 2, 2] == 15
    assert found[2, 4, 8, 4] == 110
    assert found[2, 3, 8, 2] == found[2, 2, 8, 2] == 18
    assert "no" not in set(ranks["follows"])
    assert (ranks["follows"] == "yes").sum() > 10
    assert set(ranks.loc[ranks["depth"] == 1, "threshold"]) == {"after", "before"}
    assert (ranks["rank"] <= ranks["upper_bound"]).all()


def test_every_theorem_holds(frames):
    theorems = frames["theorems"]
    assert (theorems["violated"] == 0).all()
    assert set(theorems["verdict"]) == {
        *("holds in reach", "not violated in reach; its proof has a gap", "none in reach")
    }
    corollaries = theorems["theorem"].str.contains("corollary")
    assert (theorems.loc[~corollaries, "open"] == 0).all()
    assert theorems.loc[~corollaries, "networks"].sum() == len(frames["bounds"])


def test_residual_connections_change_nothing(frames):
    residual = frames["residual"]
    assert len(residual) == 3
    assert set(residual["equal"]) == {"yes"}


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


def test_degrees_at_equal_budget(frames):
    degrees = frames["degree_budget"]
    at = degrees[(degrees["blocks"] == "product") & (degrees["budget"] == 6)].set_index("degree")
    assert at["rank"].to_dict() == {1: 2, 2: 9, 3: 10, 4: 5, 5: 6, 6: 7}
    assert at["largest"].to_dict() == {3: "yes", 1: "no", 2: "no", 4: "no", 5: "no", 6: "no"}
    assert at["parameters"].max() == 6 * 4
    ranking = frames["degree_ranking"].astype(str).set_index(["blocks", "budget"])
    wanted = ["largest_rank", "of_2_and_3", "agrees_with_note"]
    assert ranking.loc[("product", "6"), wanted].tolist() == ["3", "3", "yes"]
    assert ranking.loc[("product", "5"), wanted].tolist() == ["5", "2", "no"]


def test_mixed_degrees_keep_their_order(frames):
    mixed = frames["fractional_degree"].set_index("degrees")
    assert mixed["rank"].to_dict() == {"2 2": 8, "2 3": 25, "3 2": 18, "3 3": 18}
    assert mixed.loc["2 3", ["unused", "mixed", "largest"]].tolist() == [1, "yes", "yes"]


def test_where_bounds_overlap_the_winner_is_open():
    table = degree_table(degree_rows((2, 20, False, 90), (3, 50, True, 50), (6, 10, True, 10)))
    assert table["largest"].tolist() == ["open", "open", "no"]
    row = ranking_table(table).iloc[0]
    assert (row["largest_rank"], row["of_2_and_3"], row["agrees_with_note"]) == ("open", "open", "open")
    table = degree_table(degree_rows((2, 51, False, 90), (3, 50, True, 50), (6, 10, True, 10)))
    assert table["largest"].tolist() == ["yes", "no", "no"]
    assert ranking_table(table).iloc[0]["of_2_and_3"] == "2"
