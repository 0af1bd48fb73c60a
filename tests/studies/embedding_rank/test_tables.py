"""The tables of the study of the embedding's rank."""

from rank_runs import TRUE, rank_runs

from shapelaw.studies.embedding_rank.analysis import analyse_runs, check_rank_runs
from shapelaw.studies.embedding_rank.tables import comparison_table, needed_table, redundancy_table


def test_each_rank_has_a_row_on_every_size_axis() -> None:
    analysis = analyse_runs(check_rank_runs(rank_runs(), "runs.csv"))
    table = redundancy_table(analysis)
    assert len(table) == 3 * len(TRUE)
    blocks = table[table["size_axis"] == "block"].set_index("embedding_rank")
    assert blocks.loc[4, "significant"] == "yes"
    assert blocks.loc[64, "significant"] == "no"
    assert (table["low"] <= table["high"]).all()
    assert needed_table(analysis)["positions"].tolist() == ["of that rank too"]
    assert set(comparison_table(analysis)["agrees"]) <= {"yes", "no", "open"}
