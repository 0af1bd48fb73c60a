"""Differences of two sets of curves at equal size."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from loss_surfaces import curve_of

from shapelaw.fits.equal_sizes import difference, holm, quantile, two_sided, weights_at
from shapelaw.fits.noise import Noise, WidthNoise

NOISE = Noise(0.01, 10.0)


@given(st.floats(-1, 1), st.floats(0.5, 2.0))
def test_parallel_lines_differ_by_what_lies_between_them(apart: float, shift: float) -> None:
    def line(widths: list[float], more: float):  # linear in log size, so interpolation is exact
        return curve_of(2, widths, [3 - 0.4 * math.log(width) + more for width in widths], err=0.01)

    one = line([16, 32, 64, 128], 0.0)
    other = line([16 * shift, 32 * shift, 64 * shift, 128 * shift], apart)
    found = difference({2: one}, {2: other}, (NOISE, NOISE))
    assert found.value == pytest.approx(np.full(len(found.size), apart), abs=1e-9)
    assert found.mean == pytest.approx(apart, abs=1e-9)
    assert found.dof == 10.0


def test_equal_sizes_count_once_and_the_mean_is_as_noisy_as_two_means() -> None:
    one, other = curve_of(1, [8, 16], [2, 1], err=0.01), curve_of(1, [8, 16], [2.5, 1.5], err=0.01)
    found = difference({1: one}, {1: other}, (NOISE, NOISE))
    assert found.size.tolist() == one.size.tolist()
    assert found.err == pytest.approx([0.01 * math.sqrt(2)] * 2)
    assert found.mean_err == pytest.approx(0.01)  # two networks a side


def test_the_error_of_the_mean_is_that_of_simulated_noise() -> None:
    rng, means = np.random.default_rng(0), []
    widths, others = [16, 24, 40, 64], [20, 30, 50]
    for _ in range(2000):
        one = curve_of(1, widths, rng.normal(0, 0.01, 4).tolist(), err=0.01)
        other = curve_of(1, others, rng.normal(0, 0.01, 3).tolist(), err=0.01)
        found = difference({1: one}, {1: other}, (NOISE, NOISE))
        means.append(found.mean)
    assert found.mean_err == pytest.approx(np.std(means), rel=0.05)


def test_depths_that_only_one_has_and_sizes_out_of_reach_are_left_out() -> None:
    low, high = curve_of(1, [8, 16], [2, 1]), curve_of(1, [100, 200], [1, 0.5])
    assert not len(difference({1: low}, {1: high}, (NOISE, NOISE)).size)
    none = difference({1: low}, {2: high}, (NOISE, NOISE))
    assert math.isnan(none.mean)
    assert math.isnan(none.mean_err)


def test_one_network_reaches_its_own_size_alone() -> None:
    weights, inside = weights_at(curve_of(1, [10], [2.0]), np.array([1200.0, 1250.0]))
    assert weights.tolist() == [[1.0], [1.0]]
    assert inside.tolist() == [True, False]


def test_degrees_of_freedom_of_two_estimates_lie_between_the_smaller_and_their_sum() -> None:
    pair = {1: curve_of(1, [8, 16], [2, 1])}, {1: curve_of(1, [8, 16], [2, 1])}
    assert difference(*pair, (Noise(0.01, 4.0), Noise(0.01, 6.0))).dof == pytest.approx(9.6)
    assert math.isnan(difference(*pair, (None, NOISE)).dof)


def test_noise_by_width_counts_where_it_is_known_least() -> None:
    tilted = WidthNoise(0.01, 20.0, -0.5, 0.2, 16.0, 0.01, 8.0, 32.0)
    pair = {1: curve_of(1, [8, 16], [2, 1])}, {1: curve_of(1, [8, 16], [2, 1])}
    assert difference(*pair, (tilted, tilted)).dof == pytest.approx(float(tilted.dof_at(8.0)))


def test_chances_and_quantiles() -> None:
    assert two_sided(1.959964, 1.0, math.inf) == pytest.approx(0.05, abs=1e-6)
    assert two_sided(2.228139, 1.0, 10.0) == pytest.approx(0.05, abs=1e-6)
    assert math.isnan(two_sided(1.0, math.nan, 10.0))
    assert quantile(10.0) == pytest.approx(2.228139, abs=1e-6)


def test_holms_correction() -> None:
    assert holm(np.array([0.04, 0.01, 0.03])) == pytest.approx([0.06, 0.03, 0.06])
    assert holm(np.array([0.6, 0.9])) == pytest.approx([1.0, 1.0])
    assert holm(np.array([math.nan, 0.01])) == pytest.approx([math.nan, 0.02], nan_ok=True)
