"""Best depths and redundancies against known ones."""

import numpy as np
import pytest
from ratio_runs import BEST, DEEPEST, TRUE, analysed, ratio_runs

from shapelaw.fits.curves import SizeAxis
from shapelaw.fits.redundancy import RedundancyStatus
from shapelaw.fits.significance import Monotony
from shapelaw.studies.attention_ratio.analysis import (
    ATTENTION,
    WIDTH,
    analyse_runs,
    check_ratio_runs,
)


def test_best_depths_and_redundancies_are_found() -> None:
    analysis = analysed(variant=True)
    for one in analysis.on_axis:
        assert one.at.depths == (12, 18, 24)
        assert one.at.best_depth == DEEPEST.get(int(one.ratio), BEST)
        assert one.at.also_best(analysis.noise) == ()
        if one.redundancy is not None:
            truth = TRUE[int(one.ratio)] / (1 if one.feed_forward == ATTENTION else 2)
            assert one.redundancy.status is RedundancyStatus.MEASURED
            assert one.redundancy.value == pytest.approx(truth, abs=0.04)
            assert one.redundancy.low - 0.03 < truth < one.redundancy.high + 0.03
    sizes = {one.at.size for one in analysis.on_axis if one.feed_forward == ATTENTION}
    assert sorted(sizes) == pytest.approx([48e6, 66e6], rel=0.03)
    assert {one.ratio for one in analysis.found if one.feed_forward == WIDTH} == {1, 4, 16}
    assert {one.axis for one in analysis.found} == set(SizeAxis)


@pytest.mark.slow
def test_intervals_cover_the_truth() -> None:
    """68% of them, with the choice of the depth in the draws."""
    hits = []
    for seed in range(6):
        for one in analysed(noise=0.004, seeds=2, seed=seed).on_axis:
            if one.redundancy is not None:
                hits.append(one.redundancy.low <= TRUE[int(one.ratio)] <= one.redundancy.high)
    assert len(hits) == 48
    assert 0.5 <= np.mean(hits) <= 0.9


def test_losses_rise_with_the_ratio_and_a_ratio_that_is_better_is_seen() -> None:
    assert {test.verdict for test in analysed().monotony.values()} == {Monotony.RISING}
    runs = ratio_runs()
    wide = runs["heads"] * runs["attention_dim"] == 8 * runs["width"]
    runs.loc[wide, "test_loss"] -= 0.05
    better = analyse_runs(check_ratio_runs(runs, "runs.csv"))
    for test in better.monotony.values():
        assert test.verdict is Monotony.FALLING
        assert (test.fall_from, test.fall_to) == (4, 8)
        assert test.largest_fall == pytest.approx(0.04, abs=0.01)


def test_the_spreads_over_ratios_and_depths_are_told_apart() -> None:
    ratios = analysed(depths=False)
    for one in ratios.spreads:
        assert one.p_value < 0.001
        assert one.difference[1] < one.difference[0] < one.difference[2]
    runs = ratio_runs()
    runs["test_loss"] += 0.1 * (runs["depth"] == 12)
    for one in analyse_runs(check_ratio_runs(runs, "runs.csv")).spreads:
        assert one.p_value > 0.999
        assert one.depths[0] > one.ratios[0]


def test_a_loss_beyond_the_baseline_is_a_bound() -> None:
    runs = ratio_runs()
    wide = runs["heads"] * runs["attention_dim"] == 16 * runs["width"]
    runs.loc[wide, "test_loss"] += 1.0
    found = [one for one in analyse_runs(check_ratio_runs(runs, "runs.csv")).on_axis if one.ratio == 16]
    for one in found:
        assert one.redundancy.status is RedundancyStatus.AT_LEAST
        assert one.redundancy.high == 1.0


def test_a_ratio_of_one_network_a_depth_is_not_lost() -> None:
    """It moves to the common size along the baseline's slope."""
    runs = ratio_runs()
    wide = runs["heads"] * runs["attention_dim"] == 16 * runs["width"]
    kept = runs[~wide | (runs["block_params"] > 55e6)]
    found = [one for one in analyse_runs(check_ratio_runs(kept, "runs.csv")).on_axis if one.ratio == 16]
    assert len(found) == 1
    assert found[0].at.depths == (12, 18, 24)
    assert found[0].redundancy.value == pytest.approx(TRUE[16], abs=0.04)


def test_without_repeated_seeds_nothing_has_an_interval() -> None:
    analysis = analysed(seeds=1)
    assert analysis.noise is None
    assert {test.verdict for test in analysis.monotony.values()} == {Monotony.NO_NOISE}
    assert {one.redundancy.status for one in analysis.on_axis if one.redundancy} == {
        RedundancyStatus.NO_NOISE
    }
    assert all(np.isnan(one.p_value) for one in analysis.spreads)
