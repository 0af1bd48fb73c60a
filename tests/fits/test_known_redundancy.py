"""Estimates from measured redundancies: what covers a strength, and what is only extrapolated."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapelaw.fits.known_redundancy import (
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
    published_series,
)
from shapelaw.studies.reference import published_json

PUBLISHED = published_series(published_json("vocabulary_findings"))
OURS = Series(RANK, TOKENS, Basis.FIT, "ours", (Point(2, 2, 0.10, 0.08, 0.12), Point(8, 8, 0.30, 0.26, 0.36)))


def found(kind: str, strength: float, setting: str, *fits: Series) -> Estimate:
    result = estimate(kind, strength, setting, [*fits, *PUBLISHED])
    assert result is not None
    return result


@pytest.mark.parametrize(
    ("kind", "strength", "setting", "value"),
    [
        (
            RANK,
            680 / 16,
            TOKENS,
            0.25,
        ),  # section 5.1: "comparable to a non-bottlenecked network that is 25% smaller"
        (RANK, 4096 / 128, TOKENS, 0.25),  # ALBERT-xxlarge, "close to" it
        (RANK, 1280 / 33, TOKENS, 0.25),  # ESM-1b, the same
        (RATIO, 4, AS_T5, 0.25),  # section 5.3: T5-3B, a baseline with 75% of the parameters
        (RATIO, 16, AS_T5, 0.45),  # T5-11B, 55%
    ],
)
def test_what_the_paper_says_itself(kind: str, strength: float, setting: str, value: float) -> None:
    one = found(kind, strength, setting)
    assert one.value == value
    assert one.basis is Basis.PUBLISHED
    assert "Wies et al. 2021, figure" in one.source


def test_a_fit_of_far_smaller_networks_does_not_stand_before_the_paper_s() -> None:
    ours = Series(
        RATIO, AS_T5, Basis.FIT, "ours", (Point(1, 1, 0.0, 0, 0), Point(4, 4, 0.5, 0.4, 0.6)), (2e4, 5e4)
    )
    for params, basis, value in (
        (1e5, Basis.FIT, 0.5),
        (None, Basis.PUBLISHED, 0.25),
        (2.8e9, Basis.PUBLISHED, 0.25),
    ):
        one = estimate(RATIO, 4, AS_T5, [ours, *PUBLISHED], params)
        assert one is not None
        assert (one.basis, one.value) == (basis, value)
    alone = estimate(RATIO, 4, AS_T5, [ours], 2.8e9)
    assert alone is not None
    assert (alone.basis, alone.value) == (Basis.EXTRAPOLATED, 0.5)


def test_the_paper_s_do_not_count_for_networks_ten_times_smaller() -> None:
    for params, basis in ((3.1e6, Basis.PUBLISHED), (1e12, Basis.PUBLISHED), (2.9e6, Basis.EXTRAPOLATED)):
        one = estimate(RATIO, 4, AS_T5, PUBLISHED, params)
        assert one is not None
        assert (one.value, one.basis) == (0.25, basis)


def test_beyond_all_strengths_the_paper_stands_before_a_fit_of_far_smaller_networks() -> None:
    ours = Series(
        RANK,
        TOKENS,
        Basis.FIT,
        "ours",
        (Point(2, 2, 0.9, 0.8, 1.0), Point(99, 99, 0.96, 0.95, 1)),
        (2e4, 5e4),
    )
    for params, low in ((1e5, 0.95), (None, 0.25), (1.5e10, 0.25)):
        one = estimate(RANK, 1000, TOKENS, [ours, *PUBLISHED], params)
        assert one is not None
        assert (one.low, one.basis) == (low, Basis.EXTRAPOLATED)
    alone = estimate(RANK, 1000, TOKENS, [ours], 1.5e10)
    assert alone is not None
    assert alone.low == 0.95  # nothing else is known


def test_between_published_strengths_only_the_bounds_are_known() -> None:
    eight = found(RATIO, 8, AS_T5)
    assert math.isnan(eight.value)
    assert (eight.low, eight.high, eight.basis) == (0.25, 0.45, Basis.BETWEEN)
    half = found(RANK, 2, TOKENS)
    assert (half.low, half.high, half.basis) == (0, 0.25, Basis.BETWEEN)


@pytest.mark.parametrize(
    ("kind", "strength", "setting", "low", "high"),
    [
        (RANK, 100, TOKENS, 0.25, 1),  # below r/d = 16/680
        (RATIO, 32, AS_T5, 0.45, 1),  # above 16
        (RANK, 2, PATCHES, 0, 0.25),  # patches were never measured
        (RANK, 100, PATCHES, 0.25, 1),
        (RATIO, 2, AS_GPT, 0, 0.25),  # d_ff is not T5's
        (RATIO, 2, OTHER, 0, 0.25),
    ],
)
def test_where_nothing_was_measured_it_is_extrapolated(
    kind: str, strength: float, setting: str, low: float, high: float
) -> None:
    one = found(kind, strength, setting)
    assert math.isnan(one.value)
    assert (one.low, one.high, one.basis) == (low, high, Basis.EXTRAPOLATED)


def test_a_fit_comes_first_where_it_covers_and_not_beyond() -> None:
    assert found(RANK, 2, TOKENS, OURS) == Estimate(0.10, 0.08, 0.12, Basis.FIT, "ours")
    middle = found(RANK, 4, TOKENS, OURS)  # in log strength 4 is half way from 2 to 8
    assert (middle.value, middle.low, middle.high) == pytest.approx((0.20, 0.17, 0.24))
    assert found(RANK, 1.5, TOKENS, OURS).basis is Basis.BETWEEN
    assert found(RANK, 9, TOKENS, OURS).basis is Basis.BETWEEN
    assert found(RANK, 4, PATCHES, OURS).basis is Basis.EXTRAPOLATED


def test_beyond_all_the_one_measured_furthest_out_is_the_bound() -> None:
    further = Series(
        RANK, TOKENS, Basis.FIT, "ours", (Point(2, 2, 0.1, 0.08, 0.12), Point(99, 99, 0.5, 0.4, 0.6))
    )
    one = found(RANK, 200, TOKENS, further)
    assert (one.low, one.high, one.basis, one.source) == (0.4, 1, Basis.EXTRAPOLATED, "ours")


def test_a_bound_of_a_fit_stays_one() -> None:
    """The smallest network of full rank is better: the redundancy is at least so much."""
    open_above = Series(
        RANK, TOKENS, Basis.FIT, "ours", (Point(2, 2, 0.1, 0.08, 0.12), Point(8, 8, math.nan, 0.3, 1.0))
    )
    middle = found(RANK, 4, TOKENS, open_above)
    assert math.isnan(middle.value)
    assert (middle.low, middle.high) == pytest.approx((0.19, 0.56))
    open_below = Series(
        RANK, TOKENS, Basis.FIT, "ours", (Point(2, 2, math.nan, -math.inf, 0.1), Point(8, 8, 0.3, 0.2, 0.4))
    )
    assert found(RANK, 4, TOKENS, open_below).low == -math.inf


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


def test_of_a_kind_that_nobody_measured_there_is_no_estimate() -> None:
    assert estimate(RANK, 2, TOKENS, []) is None
