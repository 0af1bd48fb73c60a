"""Blocks of each degree at equal budget."""

from measured_grids import degree_rows, read

from shapelaw.studies.separation_rank.tables import degree_table, ranking_table


def test_degrees_at_equal_budget(results):
    degrees = read(results, "degree_budget")
    at = degrees[(degrees["blocks"] == "product") & (degrees["budget"] == 6)].set_index("degree")
    assert at["rank"].to_dict() == {1: 2, 2: 9, 3: 10, 4: 5, 5: 6, 6: 7}
    assert at["largest"].to_dict() == {3: "yes", 1: "no", 2: "no", 4: "no", 5: "no", 6: "no"}
    assert at["depth"].to_dict() == {1: 6, 2: 3, 3: 2, 4: 1, 5: 1, 6: 1}
    assert at["parameters"].max() == 6 * 4
    ranking = read(results, "degree_ranking").astype(str).set_index(["blocks", "budget"])
    wanted = ["largest_rank", "of_2_and_3", "agrees_with_note"]
    assert ranking.loc[("product", "6"), wanted].tolist() == ["3", "3", "yes"]
    assert ranking.loc[("product", "5"), wanted].tolist() == ["5", "2", "no"]
    assert ranking.loc[("product", "6"), "fill_the_budget"] == "2, 3"


def test_mixed_degrees_keep_their_order(results):
    mixed = read(results, "fractional_degree").set_index("degrees")
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
