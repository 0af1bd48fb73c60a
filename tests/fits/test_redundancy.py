"""Redundancies and needed ranks whose truth is known; estimates from measured ones, and what studies write."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from bottleneck_runs import WASTED_BY_RANK, WASTED_BY_RATIO, rank_runs, ratio_runs, write_redundancies
from hypothesis import given
from hypothesis import strategies as st
from small import listed

from shapelaw.advice.models.bottlenecks import (
    AS_GPT,
    AS_T5,
    OTHER,
    PATCHES,
    RANK,
    RATIO,
    TOKENS,
    Basis,
    Estimate,
    Point,
    Series,
    attention_setting,
    estimate,
    fitted_series,
    published_redundancies,
)
from shapelaw.errors import UserError
from shapelaw.fits.noise import Noise
from shapelaw.fits.redundancy import Baseline, Needed, RedundancyStatus, needed_rank, redundancy
from shapelaw.specs.sizes import SizeAxis

SIZES = np.geomspace(40e6, 75e6, 7)
NOISE = Noise(0.002, math.inf)


def law(size: float | np.ndarray) -> np.ndarray:
    """A loss that falls with size as those of the paper's baselines do."""
    return np.asarray(2.5 + 8.0 * np.asarray(size) ** -0.12)


def baseline(noise: float = 0.0, seeds: int = 1, rng: np.random.Generator | None = None) -> Baseline:
    error = 0.0 if rng is None else noise * rng.standard_normal(len(SIZES)) / math.sqrt(seeds)
    return Baseline(SIZES, law(SIZES) + error, np.full(len(SIZES), float(seeds)))


@given(st.floats(0.03, 0.4))
def test_the_redundancy_of_a_network_with_the_loss_of_a_smaller_one_is_found(truth: float) -> None:
    found = redundancy(baseline(), 70e6, float(law(70e6 * (1 - truth))), 1.0, NOISE)
    assert found.status is RedundancyStatus.MEASURED
    assert found.value == pytest.approx(truth, abs=0.002)
    assert found.low <= found.value <= found.high


@pytest.mark.parametrize("seeds", [1, 3])
def test_intervals_cover_the_truth(seeds: int) -> None:
    rng, truth, hits = np.random.default_rng(0), 0.2, []
    for draw in range(200):
        loss = float(law(70e6 * (1 - truth))) + 0.002 * rng.standard_normal() / math.sqrt(seeds)
        found = redundancy(baseline(0.002, seeds, rng), 70e6, loss, float(seeds), NOISE, seed=draw)
        hits.append(found.low <= truth <= found.high)
    assert 0.58 <= np.mean(hits) <= 0.80


def test_a_loss_outside_the_baseline_is_a_bound() -> None:
    worse = redundancy(baseline(), 70e6, float(law(20e6)), 1.0, NOISE)
    assert worse.status is RedundancyStatus.AT_LEAST
    assert worse.value == pytest.approx(1 - 40 / 70)
    assert worse.significant
    assert worse.high == 1.0
    better = redundancy(baseline(), 70e6, float(law(200e6)), 1.0, NOISE)
    assert better.status is RedundancyStatus.AT_MOST
    assert better.value == pytest.approx(1 - 75 / 70)
    assert not better.significant


def test_without_noise_or_points_it_is_said_and_a_baseline_that_rises_by_chance_is_made_monotone() -> None:
    assert redundancy(baseline(), 70e6, float(law(60e6)), 1.0, None).status is RedundancyStatus.NO_NOISE
    one = Baseline(SIZES[:1], law(SIZES[:1]), np.ones(1))
    assert redundancy(one, 70e6, 3.0, 1.0, NOISE).status is RedundancyStatus.TOO_FEW_POINTS
    loss = law(SIZES)
    loss[3] += 0.05
    rising = redundancy(Baseline(SIZES, loss, np.ones(7)), 70e6, float(law(62e6)), 1.0, NOISE)
    assert 0.0 < rising.value < 0.3


def test_the_rank_from_which_nothing_is_lost() -> None:
    """Positional rank 16 is as good as full (figure 7): losses fall and then stay."""
    ranks, full = (1, 2, 4, 8, 16, 32), (3.0, 3.0)
    losses = np.array([3.2, 3.1, 3.05, 3.02, 3.001, 2.999])
    assert needed_rank(ranks, losses, np.full(6, 3.0), full, Noise(0.003, 12.0)) == Needed(16, 8)
    assert needed_rank(ranks, losses, np.full(6, 3.0), full, Noise(1.0, 12.0)) == Needed(1, None)
    few = needed_rank(ranks, losses, np.full(6, 3.0), full, Noise(0.003, 12.0))
    assert few.unseen == pytest.approx(
        Noise(0.003, 12.0).threshold() * 0.003 * math.sqrt(1 / 3 + 1 / full[1])
    )
    assert needed_rank(ranks, losses + 1, np.full(6, 3.0), full, Noise(0.003, 12.0)) == Needed(None, 32)


PUBLISHED = published_redundancies()


def ours(
    kind: str, *points: tuple[float, float, float, float], sizes: tuple[float, float] | None = None
) -> Series:
    """A fit of our own: strengths, redundancies and their intervals."""
    setting = TOKENS if kind == RANK else AS_T5
    return Series(kind, setting, Basis.FIT, "ours", tuple(Point(s, s, *rest) for s, *rest in points), sizes)


OURS = ours(RANK, (2, 0.10, 0.08, 0.12), (8, 0.30, 0.26, 0.36))
FURTHER = ours(RANK, (2, 0.1, 0.08, 0.12), (99, 0.5, 0.4, 0.6))
OPEN_ABOVE = ours(RANK, (2, 0.1, 0.08, 0.12), (8, math.nan, 0.3, 1.0))  # at least so much
OPEN_BELOW = ours(RANK, (2, math.nan, -math.inf, 0.1), (8, 0.3, 0.2, 0.4))
SMALL_RATIO = ours(RATIO, (1, 0.0, 0, 0), (4, 0.5, 0.4, 0.6), sizes=(2e4, 5e4))
SMALL_RANK = ours(RANK, (2, 0.9, 0.8, 1.0), (99, 0.96, 0.95, 1), sizes=(2e4, 5e4))
NAN = math.nan


def found(kind: str, strength: float, setting: str, *fits: Series, params: float | None = None) -> Estimate:
    return estimate(kind, strength, setting, [*fits, *PUBLISHED], params)


@pytest.mark.parametrize(
    ("one", "numbers", "basis"),
    [
        # section 5.1: "comparable to a non-bottlenecked network that is 25% smaller", and ALBERT-xxlarge is close to it
        (found(RANK, 680 / 16, TOKENS), (0.25, NAN, NAN), Basis.PUBLISHED),
        (found(RANK, 4096 / 128, TOKENS), (0.25, NAN, NAN), Basis.PUBLISHED),
        (found(RANK, 1280 / 33, TOKENS), (0.25, NAN, NAN), Basis.PUBLISHED),  # ESM-1b, the same
        # section 5.3: T5-3B, a baseline with 75% of the parameters, and T5-11B, 55%
        (found(RATIO, 4, AS_T5), (0.25, NAN, NAN), Basis.PUBLISHED),
        (found(RATIO, 16, AS_T5), (0.45, NAN, NAN), Basis.PUBLISHED),
        # between published strengths only the bounds are known
        (found(RATIO, 8, AS_T5), (NAN, 0.25, 0.45), Basis.BETWEEN),
        (found(RANK, 2, TOKENS), (NAN, 0, 0.25), Basis.BETWEEN),
        # where nothing was measured it is extrapolated: other strengths, patches, a d_ff that is not T5's
        (found(RANK, 100, TOKENS), (NAN, 0.25, 1), Basis.EXTRAPOLATED),
        (found(RATIO, 32, AS_T5), (NAN, 0.45, 1), Basis.EXTRAPOLATED),
        (found(RANK, 2, PATCHES), (NAN, 0, 0.25), Basis.EXTRAPOLATED),
        (found(RANK, 100, PATCHES), (NAN, 0.25, 1), Basis.EXTRAPOLATED),
        (found(RATIO, 2, AS_GPT), (NAN, 0, 0.25), Basis.EXTRAPOLATED),
        (found(RATIO, 2, OTHER), (NAN, 0, 0.25), Basis.EXTRAPOLATED),
        # the paper's count neither for networks ten times smaller nor behind a fit of far smaller ones
        (found(RATIO, 4, AS_T5, params=3.1e6), (0.25, NAN, NAN), Basis.PUBLISHED),
        (found(RATIO, 4, AS_T5, params=1e12), (0.25, NAN, NAN), Basis.PUBLISHED),
        (found(RATIO, 4, AS_T5, params=2.9e6), (0.25, NAN, NAN), Basis.EXTRAPOLATED),
        (found(RATIO, 4, AS_T5, SMALL_RATIO, params=1e5), (0.5, 0.4, 0.6), Basis.FIT),
        (found(RATIO, 4, AS_T5, SMALL_RATIO), (0.25, NAN, NAN), Basis.PUBLISHED),
        (found(RATIO, 4, AS_T5, SMALL_RATIO, params=2.8e9), (0.25, NAN, NAN), Basis.PUBLISHED),
        (estimate(RATIO, 4, AS_T5, [SMALL_RATIO], 2.8e9), (0.5, 0.4, 0.6), Basis.EXTRAPOLATED),
        (found(RANK, 1000, TOKENS, SMALL_RANK, params=1e5), (NAN, 0.95, 1), Basis.EXTRAPOLATED),
        (found(RANK, 1000, TOKENS, SMALL_RANK), (NAN, 0.25, 1), Basis.EXTRAPOLATED),
        (estimate(RANK, 1000, TOKENS, [SMALL_RANK], 1.5e10), (NAN, 0.95, 1), Basis.EXTRAPOLATED),
        # a fit comes first where it covers and not beyond; in log strength 4 is half way from 2 to 8
        (found(RANK, 2, TOKENS, OURS), (0.10, 0.08, 0.12), Basis.FIT),
        (found(RANK, 4, TOKENS, OURS), (0.20, 0.17, 0.24), Basis.FIT),
        (found(RANK, 1.5, TOKENS, OURS), (NAN, 0, 0.25), Basis.BETWEEN),
        (found(RANK, 9, TOKENS, OURS), (NAN, 0, 0.25), Basis.BETWEEN),
        (found(RANK, 4, PATCHES, OURS), (0.20, 0.17, 0.24), Basis.EXTRAPOLATED),
        # beyond all the one measured furthest out is the bound, and a bound of a fit stays one
        (found(RANK, 200, TOKENS, FURTHER), (NAN, 0.4, 1), Basis.EXTRAPOLATED),
        (found(RANK, 4, TOKENS, OPEN_ABOVE), (NAN, 0.19, 0.56), Basis.FIT),
        (found(RANK, 4, TOKENS, OPEN_BELOW), (NAN, -math.inf, 0.25), Basis.FIT),
    ],
)
def test_an_estimate_rests_on_the_nearest_measurement(
    one: Estimate, numbers: tuple[float, float, float], basis: Basis
) -> None:
    assert (one.value, one.low, one.high) == pytest.approx(numbers, nan_ok=True)
    assert one.basis is basis
    assert one.source.startswith("Wies et al. 2021, figure") or one.source == "ours"


@given(st.floats(1, 300), st.floats(1, 300), st.sampled_from([RANK, RATIO]))
def test_a_stronger_bottleneck_never_costs_less(one: float, other: float, kind: str) -> None:
    setting = TOKENS if kind == RANK else AS_T5
    weak, strong = (found(kind, strength, setting) for strength in sorted((one, other)))

    def ends(e: Estimate) -> tuple[float, float]:
        return (e.low, e.high) if math.isnan(e.value) else (e.value, e.value)

    assert all(a <= b for a, b in zip(ends(weak), ends(strong), strict=True))


def test_the_feed_forward_width_decides_the_setting() -> None:
    assert attention_setting(65536, 1024, 16384) == AS_T5  # T5-11B
    assert attention_setting(None, 1024, 16384) == AS_T5
    assert attention_setting(8192, 2048, 3072) == AS_GPT  # GPT-3 XL as printed
    assert attention_setting(24576, 3072, 4096) == OTHER  # Gemma 7B
    assert estimate(RANK, 2, TOKENS, []) is None


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of width 128 whose true redundancies are `WASTED_BY_RANK`, analysed and written."""
    folder = tmp_path_factory.mktemp("results") / "embedding_rank"
    return write_redundancies("embedding_rank", rank_runs(noise=0.0005), folder)


def test_the_true_redundancies_are_found_at_the_measured_ranks(results: Path) -> None:
    (series,) = fitted_series(results, SizeAxis.BLOCK)
    assert (series.kind, series.setting, series.basis) == (RANK, TOKENS, Basis.FIT)
    for rank, truth in WASTED_BY_RANK.items():
        point = series.at(128 / rank)
        assert point.value == pytest.approx(truth, abs=0.02)
        assert point.low <= point.value <= point.high
    assert "parameters of the blocks, measured at 4.6e+05 to 1.3e+06" in series.source


def test_ranks_above_the_width_and_positions_of_full_rank_are_left_out(results: Path, tmp_path: Path) -> None:
    table = pd.read_csv(results / "redundancy.csv")
    more = table.iloc[[0, 0]].assign(
        rank_over_width=[1.5, 0.25], positions=["of that rank too", "of full rank"]
    )
    pd.concat([table, more]).to_csv(tmp_path / "redundancy.csv", index=False)
    (with_more,), (without,) = fitted_series(tmp_path, SizeAxis.BLOCK), fitted_series(results, SizeAxis.BLOCK)
    assert with_more.points == without.points


def test_results_that_cannot_be_used_get_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"has no redundancy\.csv; --fit needs the results of"):
        fitted_series(tmp_path, SizeAxis.TOTAL)
    write_redundancies("embedding_rank", rank_runs(seeds=1), tmp_path / "out")
    with pytest.raises(UserError, match="with an interval; the study needs seeds that repeat"):
        fitted_series(tmp_path / "out", SizeAxis.TOTAL)


@pytest.mark.parametrize(("changes", "sentence"), listed("fits/mistakes.yaml", "redundancies"))
def test_wrong_numbers_in_results_get_one_sentence(
    results: Path, tmp_path: Path, changes: dict[str, dict[str, object]], sentence: str
) -> None:
    for name in ("redundancy", "losses"):
        rows = pd.read_csv(results / f"{name}.csv")
        rows.assign(**changes.get(name, {})).to_csv(tmp_path / f"{name}.csv", index=False)
    with pytest.raises(UserError, match=sentence):
        fitted_series(tmp_path, SizeAxis.BLOCK)


def test_of_attention_ratios_the_largest_size_counts_that_all_depths_reach(tmp_path: Path) -> None:
    """Ratios 2 to 16 with d_ff = 4 H d_a, and 4 and 16 also with 4 d, where they waste half as much."""
    runs = ratio_runs(noise=0.0003, variant=True)
    found = fitted_series(write_redundancies("attention_ratio", runs, tmp_path / "out"), SizeAxis.BLOCK)
    by_setting = {series.setting: series for series in found}
    assert by_setting.keys() == {AS_T5, AS_GPT}
    assert {series.kind for series in found} == {RATIO}
    table = pd.read_csv(tmp_path / "out" / "redundancy.csv").query("size_axis == 'block'")
    for setting, feed_forward, ratios, share in (
        (AS_T5, "4 H d_a", [2, 4, 8, 16], 1),
        (AS_GPT, "4 d", [4, 16], 0.5),
    ):
        series = by_setting[setting]
        assert [point.weakest for point in series.points] == [1, *ratios]
        for point in series.points[1:]:
            same = table[(table["feed_forward"] == feed_forward) & (table["ratio"] == point.weakest)]
            largest = same.loc[same["size"].idxmax()]
            assert (point.value, point.low, point.high) == tuple(largest[["redundancy", "low", "high"]])
            assert point.value == pytest.approx(share * WASTED_BY_RATIO[int(point.weakest)], abs=0.04)


def test_a_bound_stays_one(tmp_path: Path) -> None:
    (tmp_path / "redundancy.csv").write_text(
        "feed_forward,ratio,size_axis,size,redundancy,low,high,status,compared\n"
        "4 d,4,block,2e6,0.12,0.02,1.0,at least,yes\n"
    )
    (series,) = fitted_series(tmp_path, SizeAxis.BLOCK)
    _, bound = series.points
    assert math.isnan(bound.value)
    assert (bound.low, bound.high) == (0.02, 1.0)
