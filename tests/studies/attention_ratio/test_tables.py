"""The tables of the study of the attention ratio."""

from ratio_runs import TRUE, analysed, ratio_runs

from shapelaw.fits.redundancy import Redundancy, RedundancyStatus
from shapelaw.studies.attention_ratio.analysis import ATTENTION, analyse_runs, check_ratio_runs
from shapelaw.studies.attention_ratio.tables import (
    ROUNDING,
    best_depth_table,
    comparison_table,
    losses_table,
    monotony_table,
    redundancy_table,
    spread_table,
)


def test_each_ratio_has_a_row_at_every_size() -> None:
    analysis = analysed(variant=True)
    assert len(losses_table(analysis)) == 3 * (8 + 2 * (len(TRUE) - 1 + 2))
    depths = best_depth_table(analysis)
    assert len(depths) == 2 * len(TRUE) + 2 * 3
    assert set(depths["certain"]) == {"yes"}
    assert (depths["loss_low"] < depths["test_loss"]).all()
    wasted = redundancy_table(analysis)
    assert (wasted["size_axis"] == "block").sum() == 2 * (len(TRUE) - 1 + 2)
    assert (wasted["low"] <= wasted["high"]).all()
    assert set(monotony_table(analysis)["ratios"]) == {"1, 2, 4, 8, 16", "1, 4, 16"}
    assert len(spread_table(analysis)) == 4


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


def test_a_bound_agrees_only_on_its_side() -> None:
    def found(status: RedundancyStatus, value: float) -> Redundancy:
        return Redundancy(value, value, value, 0.0, status)

    assert found(RedundancyStatus.AT_LEAST, 0.2).agrees_with(0.25, ROUNDING) is True
    assert found(RedundancyStatus.AT_LEAST, 0.3).agrees_with(0.25, ROUNDING) is False
    assert found(RedundancyStatus.AT_MOST, 0.2).agrees_with(0.25, ROUNDING) is False
    assert found(RedundancyStatus.AT_MOST, 0.3).agrees_with(0.25, ROUNDING) is None
    assert found(RedundancyStatus.MEASURED, 0.27).agrees_with(0.25, ROUNDING) is True  # "about 75%"
    assert found(RedundancyStatus.MEASURED, 0.28).agrees_with(0.25, ROUNDING) is False


def test_one_depth_is_never_certain() -> None:
    runs = ratio_runs()
    analysis = analyse_runs(check_ratio_runs(runs[runs["depth"] == 18], "runs.csv"))
    table = best_depth_table(analysis)
    assert set(table["certain"]) == {"no"}
    assert table["over_depths"].isna().all()
    assert spread_table(analysis).empty
    assert ATTENTION in set(table["feed_forward"])
