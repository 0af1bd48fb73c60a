"""Means over seeds and differences of settings that share their seeds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from shapelaw.fits.paired import mean_of, paired_mean

numbers = st.floats(-1e3, 1e3)


@given(st.lists(numbers, min_size=2, max_size=20).filter(lambda values: np.std(values) > 1e-6))
def test_the_mean_is_that_of_scipy(values: list[float]) -> None:
    found, expected = mean_of(values), stats.ttest_1samp(values, 0)
    low, high = expected.confidence_interval(0.95)
    np.testing.assert_allclose((found.low, found.high), (low, high), rtol=1e-6, atol=1e-9)
    assert found.p_value == pytest.approx(expected.pvalue, abs=1e-9)


def test_one_seed_has_no_interval_and_none_is_an_error() -> None:
    found = mean_of([2.0])
    assert found.value == 2.0
    assert math.isnan(found.low)
    assert not found.significant
    with pytest.raises(ValueError, match="no numbers"):
        mean_of([])


def test_equal_numbers_are_certain() -> None:
    assert mean_of([1.0, 1.0]).significant
    assert not mean_of([0.0, 0.0]).significant


@given(st.dictionaries(st.integers(0, 5), numbers), st.dictionaries(st.integers(0, 5), numbers))
def test_a_difference_is_of_common_seeds(left: dict[int, float], right: dict[int, float]) -> None:
    found = paired_mean(left, right)
    both = left.keys() & right.keys()
    assert (found is None) == (not both)
    if found is not None:
        assert found.seeds == len(both)
        assert found.value == pytest.approx(np.mean([left[seed] - right[seed] for seed in both]))


def test_the_interval_holds_the_truth_in_95_of_100() -> None:
    random = np.random.default_rng(0)
    held = [mean_of(random.normal(1.0, 2.0, 4)) for _ in range(2000)]
    share = np.mean([one.low <= 1.0 <= one.high for one in held])
    assert 0.935 < share < 0.965
