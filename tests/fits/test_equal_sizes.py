"""Differences of two sets of curves and the best depth, at equal size, against losses known everywhere."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from loss_surfaces import curve_of

from shapelaw.fits.curves import Curve
from shapelaw.fits.equal_sizes import (
    Difference,
    Networks,
    at_own_sizes,
    at_size,
    difference,
    holm,
    mean_slope,
    quantile,
    size_groups,
    two_sided,
    with_scatter,
)
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


def scattered(rng: np.random.Generator, scatter: float) -> Difference:
    """Two sets of three depths of five networks without a difference, with a noise of 0.01 between seeds."""
    sets = [
        {
            depth: curve_of(
                depth,
                [16, 24, 32, 48, 64],
                (3 + 0.01 * np.hypot(1, scatter) * rng.standard_normal(5)).tolist(),
                err=0.01,
            )
            for depth in (1, 2, 4)
        }
        for _ in range(2)
    ]
    return difference(sets[0], sets[1], (NOISE, NOISE))


@pytest.mark.parametrize("scatter", [0.0, 1.0, 2.0])
def test_what_networks_scatter_beside_their_seeds_is_in_the_errors(scatter: float) -> None:
    """300 pairs of sets: 95% intervals by the noise between seeds alone hold in fewer."""
    rng = np.random.default_rng(3)
    tables = [[scattered(rng, scatter) for _ in range(6)] for _ in range(50)]
    found = [one for table in tables for one in with_scatter(table)]
    held = np.mean([abs(one.mean) <= quantile(one.dof) * one.mean_err for one in found])
    assert 0.92 <= held <= 1.0
    alone = [one for table in tables for one in table]
    without = np.mean([abs(one.mean) <= quantile(one.dof) * one.mean_err for one in alone])
    assert (without < 0.93) == (scatter > 0)


def test_one_run_that_went_wrong_leaves_the_errors_of_other_differences() -> None:
    rng = np.random.default_rng(5)
    good = [scattered(rng, 0.0) for _ in range(7)]
    wrong = replace(scattered(rng, 0.0), chi2=5000.0)
    *others, off = with_scatter([*good, wrong])
    assert max(one.mean_err for one in others) < 1.6 * good[0].mean_err
    assert off.mean_err > 10 * wrong.mean_err


def test_scatter_never_makes_errors_smaller_and_leaves_those_without_noise() -> None:
    quiet = replace(scattered(np.random.default_rng(0), 0.0), chi2=0.1)
    assert with_scatter([quiet]) == [quiet]
    none = difference(
        {1: curve_of(1, [8, 16, 32], [3, 2, 1], err=math.nan)},
        {1: curve_of(1, [8, 16, 32], [3, 2, 1])},
        (None, NOISE),
    )
    assert math.isnan(with_scatter([none, scattered(np.random.default_rng(0), 3.0)])[0].mean_err)


def in_batches(depth: int, losses: list[float], second: list[float]) -> Curve:
    """A curve whose networks' runs are of a second batch with these shares."""
    batches = {("host", "a"): 1 - np.array(second), ("host", "b"): np.array(second)}
    return replace(curve_of(depth, [16, 24, 32, 48], losses, err=0.01), batches=batches)


def test_the_offset_of_a_batch_inside_of_both_sets_is_fitted() -> None:
    level = [3.0, 2.8, 2.7, 2.6]
    one = {depth: in_batches(depth, level, [0, 0, 0, 0]) for depth in (1, 2)}
    other = {
        1: in_batches(1, [3.1, 2.9, 2.8 + 0.5, 2.7], [0, 0, 1, 0]),
        2: in_batches(2, [3.1, 2.9 + 0.25, 2.8, 2.7], [0, 0.5, 0, 0]),
    }
    found = difference(one, other, (NOISE, NOISE))
    assert found.value == pytest.approx(np.full(8, 0.1))
    assert found.caution == ""
    plain = {depth: replace(curve, batches={}) for depth, curve in other.items()}
    raw = difference(one, plain, (NOISE, NOISE))
    assert raw.mean == pytest.approx(0.1 + 0.75 / 8)
    assert found.mean_err > raw.mean_err  # the offset is known no better than the networks it comes from
    both = difference(other, other, (NOISE, NOISE))  # alike on both sides it moves nothing
    assert both.mean_err == pytest.approx(raw.mean_err)


@pytest.mark.parametrize("second", [{1, 2}, {2}])
def test_a_batch_that_coincides_with_a_set_or_a_depth_of_one_is_a_caution(second: set[int]) -> None:
    level = [3.0, 2.8, 2.7, 2.6]
    one = {depth: in_batches(depth, level, [0, 0, 0, 0]) for depth in (1, 2)}
    other = {depth: in_batches(depth, level, [float(depth in second)] * 4) for depth in (1, 2)}
    found = difference(one, other, (NOISE, NOISE))
    assert found.caution == "host coincides with the difference"
    assert found.mean == pytest.approx(0.0)


def test_depths_that_only_one_has_and_sizes_out_of_reach_are_left_out() -> None:
    low, high = curve_of(1, [8, 16], [2, 1]), curve_of(1, [100, 200], [1, 0.5])
    assert not len(difference({1: low}, {1: high}, (NOISE, NOISE)).size)
    none = difference({1: low}, {2: high}, (NOISE, NOISE))
    assert math.isnan(none.mean)
    assert math.isnan(none.mean_err)


def test_degrees_of_freedom_of_two_estimates_lie_between_the_smaller_and_their_sum() -> None:
    pair = {1: curve_of(1, [8, 16], [2, 1])}, {1: curve_of(1, [8, 16], [2, 1])}
    assert difference(*pair, (Noise(0.01, 4.0), Noise(0.01, 6.0))).dof == pytest.approx(9.6)
    assert math.isnan(difference(*pair, (None, NOISE)).dof)
    tilted = WidthNoise(0.01, 20.0, -0.5, 0.2, 16.0, 0.01, 8.0, 32.0)  # counts where it is known least
    assert difference(*pair, (tilted, tilted)).dof == pytest.approx(float(tilted.dof_at(8.0)))


def test_chances_quantiles_and_holms_correction() -> None:
    assert two_sided(1.959964, 1.0, math.inf) == pytest.approx(0.05, abs=1e-6)
    assert two_sided(2.228139, 1.0, 10.0) == pytest.approx(0.05, abs=1e-6)
    assert math.isnan(two_sided(1.0, math.nan, 10.0))
    assert quantile(10.0) == pytest.approx(2.228139, abs=1e-6)
    assert holm(np.array([0.04, 0.01, 0.03])) == pytest.approx([0.06, 0.03, 0.06])
    assert holm(np.array([0.6, 0.9])) == pytest.approx([1.0, 1.0])
    assert holm(np.array([math.nan, 0.01])) == pytest.approx([math.nan, 0.02], nan_ok=True)


SIZES = {6: (1e6, 2e6, 4e6), 12: (1.5e6, 3e6, 6e6), 24: (5e6,)}


def line(depth: int, size: float) -> float:
    """Depth 6 is best up to 2M, depth 12 beyond; depth 24 has the slope of the two others between them."""
    slope = {6: -0.1, 12: -0.2, 24: -0.15}[depth]
    return 3.0 + 0.02 * (depth == 24) + slope * math.log(size / 2e6)


def networks() -> Networks:
    rows = [(depth, size, line(depth, size)) for depth, sizes in SIZES.items() for size in sizes]
    depth, size, loss = (np.array(values) for values in zip(*rows, strict=True))
    return Networks(depth, size, loss, np.full(len(rows), 2.0), np.sqrt(size / (12 * depth)))


@given(st.floats(1.5e6, 4e6))
def test_losses_on_a_line_are_interpolated_exactly(size: float) -> None:
    found = at_size(networks(), size)
    assert found.depths == (6, 12)
    assert found.losses == pytest.approx([line(6, size), line(12, size)])
    assert found.best_depth == (6 if size < 2e6 else 12)
    assert found.loss == pytest.approx(min(line(6, size), line(12, size)))


def test_a_depth_of_one_network_moves_along_the_others_mean_slope() -> None:
    at = at_size(networks(), 4.6e6)  # 14% beyond depth 6, 8% below depth 24's only one
    assert at.depths == (12, 24)
    assert at.losses[1] == pytest.approx(line(24, 5e6) - 0.2 * math.log(4.6 / 5))
    alone = Networks(np.array([24]), np.array([5e6]), np.array([3.0]), np.ones(1), np.ones(1))
    assert at_size(alone, 5.1e6) is None
    moved = at_size(alone, 5.1e6, slope=-0.3)
    assert moved.loss == pytest.approx(3.0 - 0.3 * math.log(5.1 / 5))
    assert moved.drawn_losses(np.array([[3.1]]))[0, 0] == pytest.approx(moved.loss + 0.1)
    exact = at_size(alone, 5e6)
    assert exact.loss == 3.0
    # a size that no depth reaches
    assert at_size(networks(), 0.89e6) is None
    assert at_size(networks(), 0.92e6) is not None  # 10% beyond the smallest
    assert at_size(networks(), 7e6) is None


def test_draws_have_the_noise_of_the_interpolated_loss() -> None:
    some, noise = networks(), Noise(0.01, math.inf)
    at = at_size(some, 3.5e6)
    drawn = at.drawn_losses(some.drawn(noise, 4000, 0))
    assert drawn.mean(axis=0) == pytest.approx(at.losses, abs=4 * 0.01 / math.sqrt(4000))
    assert drawn[:, 1].std() == pytest.approx(noise.std / math.sqrt(at.runs(noise)), rel=0.05)
    assert not np.allclose(some.drawn(noise, 9, 0), some.drawn(noise, 9, 1))
    wider = some.drawn(Noise(0.01, 3.0), 4000, 0) - some.loss
    assert wider.std() > 1.3 * (some.drawn(noise, 4000, 0) - some.loss).std()


def test_the_mean_slope_is_that_of_the_least_losses() -> None:
    deep = Networks(*(values[3:6] for values in vars(networks()).values()))
    assert mean_slope(at_own_sizes(deep)) == pytest.approx(-0.2)
    assert mean_slope(at_own_sizes(deep)[:1]) is None


@given(st.lists(st.floats(1e5, 1e8), min_size=1, max_size=20))
def test_groups_hold_sizes_within_a_tenth(sizes: list[float]) -> None:
    found = list(size_groups(sizes))
    assert found == sorted(found)
    assert all(min(abs(math.log(size / one)) for one in found) <= 0.1 + 1e-9 for size in sizes)
