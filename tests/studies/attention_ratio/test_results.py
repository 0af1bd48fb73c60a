"""What the study of the attention ratio writes, beside the paper's statements."""

from pathlib import Path

import pandas as pd
from ratio_runs import analysed, ratio_runs

from shapelaw.fits.curves import SizeAxis
from shapelaw.report.write import Table, write_results
from shapelaw.studies.attention_ratio.analysis import ATTENTION, analyse_runs, check_ratio_runs
from shapelaw.studies.attention_ratio.results import (
    answer,
    best_depth_table,
    comparison_table,
    depths_figure,
    losses_figure,
    present,
    spread_table,
)


def test_the_paper_s_statements_stand_beside_ours() -> None:
    analysis = analysed(depths=False)
    table = comparison_table(analysis).set_index("quantity")
    blocks = table.loc["redundancy of ratio 16 in parameters of the blocks"]
    assert (blocks["published"], blocks["agrees"]) == ("0.45", "yes")
    assert table.loc["redundancy of ratio 4 in parameters of the blocks", "published"] == "0.25"
    assert table.loc["spread of the loss over ratios, less that over depths", "agrees"] == "yes"
    assert table.loc["largest fall of the loss from a ratio to a larger one", "agrees"] == "yes"
    silent = comparison_table(analysed(seeds=1))
    assert set(silent["agrees"]) == {"open"}


def test_a_size_that_one_depth_alone_reaches_is_not_compared() -> None:
    """At equal FLOPs the deepest network is the largest, and its depth would be called the best."""
    runs = ratio_runs()
    alone = (runs["attention_dim"] == runs["width"]) & (runs["block_params"] > 60e6) & (runs["depth"] != 12)
    table = comparison_table(analyse_runs(check_ratio_runs(runs[~alone], "runs.csv"))).set_index("quantity")
    assert table.loc["redundancy of ratio 4 in parameters of the blocks", "setting"].startswith(
        "L = 24, size 4"
    )


def test_one_depth_is_never_certain() -> None:
    runs = ratio_runs()
    analysis = analyse_runs(check_ratio_runs(runs[runs["depth"] == 18], "runs.csv"))
    table = best_depth_table(analysis)
    assert set(table["certain"]) == {"no"}
    assert table["over_depths"].isna().all()
    assert spread_table(analysis).empty
    assert ATTENTION in set(table["feed_forward"])


def test_each_feed_forward_width_has_a_panel_and_each_ratio_a_line() -> None:
    ratios = [f"$H d_a / d$ = {ratio}" for ratio in (1, 2, 4, 8, 16)]
    (alone,) = losses_figure(analysed()).figure().axes
    assert alone.get_legend_handles_labels()[1] == ratios
    left, right = depths_figure(analysed(variant=True)).figure().axes
    assert set(right.get_legend_handles_labels()[1]) & set(ratios) == {ratios[0], ratios[2], ratios[4]}
    assert {"L = 12", "L = 18", "L = 24"} <= set(left.get_legend_handles_labels()[1])
    assert left.get_xlabel() == "parameters of the blocks"


COLUMNS = ["ratio", "size", "size_axis", "redundancy", "low", "high", "status", "significant"]


def told(*rows):
    printed = pd.DataFrame(
        {"quantity": ["redundancy of ratio 4", "largest fall"], "published": ["0.25", "none"]}
    )
    return answer(
        {"redundancy": Table(pd.DataFrame(rows, columns=COLUMNS), ""), "comparison": Table(printed, "")}
    )


def test_the_widest_attention_at_the_largest_size():
    found = told(
        (4.0, 1000.0, "block", 0.2, 0.1, 0.3, "measured", "yes"),
        (16.0, 2000.0, "block", 0.45, 0.4, 0.5, "measured", "yes"),
        (16.0, 1000.0, "block", 0.1, 0.0, 0.2, "measured", "no"),
    )
    assert found.decided
    assert found.sentence.startswith(
        "At H d_a / d = 16 and 2K parameters in the blocks, 45% (40% to 50%) of them"
    )
    assert found.published == "25% (redundancy of ratio 4)."


def test_nothing_to_compare_is_undecided():
    assert not told((4.0, 1000.0, "total", 0.2, 0.1, 0.3, "measured", "yes")).decided


def test_all_is_of_the_size_that_is_asked_for(tmp_path: Path) -> None:
    runs = check_ratio_runs(ratio_runs(variant=True), "runs.csv")
    found = present(analyse_runs(runs, SizeAxis.TOTAL))
    write_results(found, tmp_path, "attention_ratio")
    assert "redundancy in all parameters 4" in found.summary
