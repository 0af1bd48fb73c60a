"""Means and differences over seeds, rank correlations, and the test of monotony against its own promises."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from shapelaw.fits.noise import Noise
from shapelaw.fits.significance import Monotony, isotonic, mean_of, monotony, paired_mean, rank_correlation

numbers = st.floats(-1e3, 1e3)


@given(st.lists(numbers, min_size=2, max_size=20).filter(lambda values: np.std(values) > 1e-6))
def test_the_mean_is_that_of_scipy(values: list[float]) -> None:
    found, expected = mean_of(values), stats.ttest_1samp(values, 0)
    low, high = expected.confidence_interval(0.95)
    np.testing.assert_allclose((found.low, found.high), (low, high), rtol=1e-6, atol=1e-9)
    assert found.p_value == pytest.approx(expected.pvalue, abs=1e-9)


def test_one_seed_has_no_interval_none_is_an_error_and_equal_ones_are_certain() -> None:
    found = mean_of([2.0])
    assert found.value == 2.0
    assert math.isnan(found.low)
    assert not found.significant
    with pytest.raises(ValueError, match="no numbers"):
        mean_of([])
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


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.integers(4, 12), st.integers(1, 4))
def test_it_is_spearmans(seed: int, points: int, seeds: int) -> None:
    random = np.random.default_rng(seed)
    values, losses = random.integers(0, 6, points), random.standard_normal((points, seeds))
    if len(set(values)) == 1:
        return
    found = rank_correlation(values, losses, np.arange(points), draws=1)
    assert found.value == pytest.approx(stats.spearmanr(values, losses.mean(1))[0])


def test_the_chance_is_that_of_spearmans_exact_distribution() -> None:
    """With 5 networks in order: 2 of 120 permutations are as far from 0, with 4 networks 2 of 24."""
    for networks, chance in ((5, 2 / 120), (4, 2 / 24)):
        losses = np.arange(float(networks))[:, None]
        found = rank_correlation(np.arange(networks), losses, np.arange(networks))
        assert found.p_value == pytest.approx(chance)
        assert found.verdict == ("positive" if networks == 5 else "no significant correlation")


def test_points_of_one_network_are_no_further_evidence() -> None:
    """Each of 5 networks stands there 20 times: the interval is as wide as with one point each."""
    random = np.random.default_rng(0)
    x, losses = np.arange(5.0), random.standard_normal((5, 3))
    once = rank_correlation(x, losses, np.arange(5))
    often = rank_correlation(np.repeat(x, 20), np.repeat(losses, 20, axis=0), np.repeat(np.arange(5), 20))
    assert (often.low, often.high) == pytest.approx((once.low, once.high))
    assert once.verdict == "no significant correlation"


def test_few_networks_and_constants_have_none_and_a_seed_that_diverged_is_left_out() -> None:
    assert math.isnan(rank_correlation([1, 2, 3], np.ones((3, 2)), [0, 1, 2]).value)
    constant = rank_correlation([1, 1, 1, 1], np.arange(8.0).reshape(4, 2), [0, 1, 2, 3])
    assert math.isnan(constant.value)
    assert constant.verdict == "too few networks"
    losses = -np.arange(6.0)[:, None] + np.zeros((6, 3))
    losses[5, 0] = np.nan
    losses[2] = np.nan
    found = rank_correlation(np.arange(6), losses, np.arange(6))
    assert (found.value, found.low, found.high) == pytest.approx((-1, -1, -1))
    assert found.verdict == "negative"


X = np.array([1.0, 5, 10, 20, 30, 40, 50, 60])


def experiment(truth, rng, seeds=3, noise=0.02):
    """Means, their errors from an estimated noise, and that noise."""
    runs = truth[:, None] + noise * rng.standard_normal((len(truth), seeds))
    dof = len(truth) * (seeds - 1)
    std = float(np.sqrt(runs.var(axis=1, ddof=1).mean()))
    return runs.mean(axis=1), np.full(len(truth), std / np.sqrt(seeds)), Noise(std, float(dof))


@settings(max_examples=30)
@given(st.lists(st.tuples(st.floats(-3, 3), st.floats(0.1, 9)), min_size=1, max_size=12))
def test_rows_become_isotonic_as_scipys(points: list[tuple[float, float]]) -> None:
    y, weights = np.array(points).T
    rows = np.stack([y, -y, np.sort(y)])
    expected = [optimize.isotonic_regression(row, weights=weights).x for row in rows]
    assert isotonic(rows, weights) == pytest.approx(np.array(expected), abs=1e-9)
    assert (isotonic(rows, weights)[2] == rows[2]).all()


def test_a_plateau_is_called_falling_as_often_as_the_level_says():
    rng = np.random.default_rng(2)
    p_values = [monotony(X, *experiment(np.full(8, 0.5), rng), draws=500).falls_p for _ in range(300)]
    assert 0.02 < np.mean(np.array(p_values) < 0.05) < 0.08
    assert 0.42 < np.mean(np.array(p_values) < 0.5) < 0.58


def test_a_rising_curve_is_never_called_falling_and_a_falling_one_is_found():
    rng = np.random.default_rng(4)
    rising = 1 - np.exp(-X / 15)
    found = [monotony(X, *experiment(rising, rng), draws=500) for _ in range(100)]
    assert all(one.verdict is Monotony.RISING for one in found)
    dented = rising.copy()
    dented[5] -= 0.2
    dents = [monotony(X, *experiment(dented, rng), draws=500) for _ in range(50)]
    assert all(one.verdict is Monotony.FALLING for one in dents)
    assert {(one.fall_from, one.fall_to) for one in dents} == {(30.0, 40.0)}
    drop = dented[4] - dented[5]
    pulls = [(one.largest_fall - drop) / one.largest_fall_err for one in dents]
    assert abs(np.mean(pulls)) < 0.4


def test_flat_unknown_and_single_points_say_so():
    err = np.full(8, 0.01)
    flat = monotony(X, np.full(8, 0.5), err, Noise(0.01, np.inf))
    assert flat.verdict is Monotony.FLAT
    assert flat.largest_fall == 0.0
    assert monotony(X, X, np.full(8, np.nan), None).verdict is Monotony.NO_NOISE
    assert monotony(X[:1], X[:1], err[:1], Noise(0.01, 4.0)).verdict is Monotony.TOO_FEW_POINTS
    again = [monotony(X, -X, err, Noise(0.01, 4.0), seed=3) for _ in range(2)]
    assert again[0] == again[1]
    assert again[0].verdict is Monotony.FALLING
