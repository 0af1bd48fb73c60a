"""Best depths, redundancies and spreads of attention ratios against known ones, and what is said of them."""

import numpy as np
import pytest
from bottleneck_runs import BEST, DEEPEST, WASTED_BY_RATIO, analysed_ratios, ratio_runs

from shapelaw.fits.redundancy import RedundancyStatus
from shapelaw.fits.significance import Monotony
from shapelaw.specs.sizes import SizeAxis
from shapelaw.studies.decoders.attention_ratio import (
    ATTENTION,
    WIDTH,
    analyse_runs,
    best_depth_table,
    check_ratio_runs,
    comparison_table,
    redundancy_figure,
    spread_table,
)


def analysis_of(runs, axis=SizeAxis.BLOCK):
    return analyse_runs(check_ratio_runs(runs, "runs.csv"), axis)


def of_ratio(runs, ratio):
    return runs["heads"] * runs["attention_dim"] == ratio * runs["width"]


def test_best_depths_and_redundancies_are_found() -> None:
    analysis = analysed_ratios(variant=True)
    for one in analysis.on_axis:
        assert one.at.depths == (12, 18, 24)
        assert one.at.best_depth == DEEPEST.get(int(one.ratio), BEST)
        assert one.at.also_best(analysis.noise) == ()
        if one.redundancy is not None:
            truth = WASTED_BY_RATIO[int(one.ratio)] / (1 if one.feed_forward == ATTENTION else 2)
            assert one.redundancy.status is RedundancyStatus.MEASURED
            assert one.redundancy.value == pytest.approx(truth, abs=0.04)
            assert one.redundancy.low - 0.03 < truth < one.redundancy.high + 0.03
    sizes = {one.at.size for one in analysis.on_axis if one.feed_forward == ATTENTION}
    assert sorted(sizes) == pytest.approx([48e6, 66e6], rel=0.03)
    assert {one.ratio for one in analysis.found if one.feed_forward == WIDTH} == {1, 4, 16}
    assert {one.axis for one in analysis.found} == set(SizeAxis)


@pytest.mark.slow
def test_intervals_cover_the_truth(monkeypatch: pytest.MonkeyPatch) -> None:
    """68% of them, with the choice of the depth in the draws."""
    monkeypatch.setattr("shapelaw.studies.decoders.attention_ratio.SizeAxis", (SizeAxis.BLOCK,))
    hits = []
    for seed in range(6):
        for one in analysis_of(ratio_runs(noise=0.004, seeds=2, seed=seed)).redundant:
            hits.append(one.redundancy.low <= WASTED_BY_RATIO[int(one.ratio)] <= one.redundancy.high)
    assert len(hits) == 48
    assert 0.5 <= np.mean(hits) <= 0.9


def test_a_ratio_that_is_better_is_a_fall_and_one_worse_than_all_is_a_bound() -> None:
    assert {test.verdict for test in analysed_ratios(depths=False).monotony.values()} == {Monotony.RISING}
    runs = ratio_runs()
    runs.loc[of_ratio(runs, 8), "test_loss"] -= 0.05
    runs.loc[of_ratio(runs, 16), "test_loss"] += 1.0
    analysis = analysis_of(runs)
    for test in analysis.monotony.values():
        assert test.verdict is Monotony.FALLING
        assert (test.fall_from, test.fall_to) == (4, 8)
        assert test.largest_fall == pytest.approx(0.04, abs=0.01)
    bounds = [one.redundancy for one in analysis.on_axis if one.ratio == 16]
    assert [(one.status, one.high) for one in bounds] == [(RedundancyStatus.AT_LEAST, 1.0)] * 2
    (legend,) = redundancy_figure(analysis).figure().legends
    named = {text.get_text().rpartition(", ")[2] for text in legend.get_texts()}
    assert named == {"nothing wasted", "30M to 70M", "68% interval", "at least", "at most"}


def test_spreads_over_depths_are_told_and_a_ratio_of_one_network_a_depth_is_not_lost() -> None:
    """It moves to the common size along the baseline's slope."""
    for row in analysed_ratios(depths=False).spreads:
        assert row["p_value"] < 0.001
        assert row["difference_low"] < row["difference"] < row["difference_high"]
    runs = ratio_runs()
    runs["test_loss"] += 0.1 * (runs["depth"] == 12)
    analysis = analysis_of(runs[~of_ratio(runs, 16) | (runs["block_params"] > 55e6)])
    for row in analysis.spreads:
        assert row["p_value"] > 0.999
        assert row["over_depths"] > row["over_ratios"]
    (found,) = (one for one in analysis.on_axis if one.ratio == 16)
    assert found.at.depths == (12, 18, 24)
    assert found.redundancy.value == pytest.approx(WASTED_BY_RATIO[16], abs=0.04)


def test_a_size_that_one_depth_alone_reaches_is_not_compared() -> None:
    """At equal FLOPs the deepest network is the largest, and its depth would be called the best."""
    runs = ratio_runs(seeds=1)
    alone = (runs["attention_dim"] == runs["width"]) & (runs["block_params"] > 60e6) & (runs["depth"] != 12)
    setting = comparison_table(analysis_of(runs[~alone])).set_index("quantity")["setting"]
    assert setting["redundancy of ratio 4 in parameters of the blocks"].startswith("L = 24, size 4")


def test_one_depth_is_never_certain_and_all_is_of_the_size_that_is_asked_for() -> None:
    runs = ratio_runs()
    analysis = analysis_of(runs[runs["depth"] == 18], SizeAxis.TOTAL)
    table = best_depth_table(analysis)
    assert set(table["certain"]) == {"no"}
    assert table["over_depths"].isna().all()
    assert spread_table(analysis).empty
    assert ATTENTION in set(table["feed_forward"])
