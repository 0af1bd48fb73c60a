"""Lines, and proportions up to a level, through points and limits."""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from shapelaw.fits.limits import LevelFit, Limit, fit_level, fit_line_with_limits
from shapelaw.fits.line import FitStatus, fit_line

X = np.array([1.0, 2.0, 4.0, 8.0])
SIGMA = np.full(4, 0.05)


def test_no_limits_is_the_plain_line():
    y = 5 + 0.05 * X
    assert fit_line_with_limits(X, y, SIGMA, []) == fit_line(X, y, SIGMA)


def test_it_is_the_maximum_of_the_likelihood_and_its_curvature():
    """Against a minimiser that knows no derivatives, and differences of the likelihood."""
    y = np.array([5.02, 5.15, 5.18, 5.48])
    limits = [Limit(16.0, 6.1, 0.1, 1), Limit(12.0, 5.6, 0.05, -1)]

    def loss(at):
        line = at[0] + at[1] * X
        z = [limit.side * (at[0] + at[1] * limit.x - limit.bound) / limit.sigma for limit in limits]
        return 0.5 * (((y - line) / SIGMA) ** 2).sum() - stats.norm.logcdf(z).sum()

    fit = fit_line_with_limits(X, y, SIGMA, limits)
    best = optimize.minimize(loss, [5, 0.05], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12})
    assert (fit.a, fit.b) == pytest.approx(tuple(best.x), abs=1e-6)
    step = np.diag([1e-3, 1e-4])
    curvature = np.array(
        [
            [
                loss(best.x + s + t) - loss(best.x + s - t) - loss(best.x - s + t) + loss(best.x - s - t)
                for t in step
            ]
            for s in step
        ]
    ) / (4 * np.outer(np.diag(step), np.diag(step)))
    covariance = np.linalg.inv(curvature)
    assert (fit.cov_aa, fit.cov_ab, fit.cov_bb) == pytest.approx(
        (covariance[0, 0], covariance[0, 1], covariance[1, 1]), rel=1e-3
    )
    assert "2 limits used" in fit.message
    assert fit.dof == 2


def test_a_limit_that_the_line_keeps_changes_hardly_anything_and_one_that_it_breaks_moves_it():
    y = 5 + 0.05 * X
    plain = fit_line(X, y, SIGMA)
    kept = fit_line_with_limits(X, y, SIGMA, [Limit(16.0, 4.0, 0.05, 1)])
    assert (kept.b, kept.b_err) == pytest.approx((plain.b, plain.b_err), rel=1e-6)
    broken = fit_line_with_limits(X, y, SIGMA, [Limit(16.0, 6.5, 0.05, 1)])
    assert broken.b > plain.b + 2 * plain.b_err
    below = fit_line_with_limits(X, y, SIGMA, [Limit(16.0, 5.2, 0.05, -1)])
    assert below.b < plain.b - plain.b_err


def test_limits_take_the_bias_out_of_what_a_grid_can_report():
    """Transitions at four depths, of which one above 5.5 is only known to be above it.

    Without the limits a slope comes from the draws that happen to be low: biased, and its interval misses the truth.
    """
    rng = np.random.default_rng(1)
    x, a, b, sigma, top = np.array([1.0, 2.0, 4.0, 8.0, 9.0]), 5.0, 0.055, 0.1, 5.5
    with_limits, without = [], []
    for _ in range(150):
        y = a + b * x + sigma * rng.standard_normal(5)
        seen = y < top
        if seen.sum() < 3:
            continue
        limits = [Limit(float(depth), top, sigma, 1) for depth in x[~seen]]
        points = (x[seen], y[seen], np.full(seen.sum(), sigma))
        with_limits.append(fit_line_with_limits(*points, limits))
        without.append(fit_line(*points))
    error = {
        name: np.array([f.b - b for f in fits])
        for name, fits in (("with", with_limits), ("without", without))
    }
    assert abs(error["with"].mean()) < abs(error["without"].mean()) / 2
    assert np.sqrt((error["with"] ** 2).mean()) < 0.75 * np.sqrt((error["without"] ** 2).mean())
    held = np.mean([abs(f.b - b) < f.b_err for f in with_limits])
    assert 0.60 <= held <= 0.78


def test_points_alone_that_give_no_line_give_none_with_limits():
    fit = fit_line_with_limits(X[:2], [5.0, 5.1], SIGMA[:2], [Limit(16.0, 6.5, 0.05, 1)])
    assert fit.status is FitStatus.TOO_FEW_POINTS


SIZES = np.log([32.0, 64.0, 257.0, 500.0, 2000.0])
ERR = np.full(5, 0.05)
KNEE = np.minimum(SIZES, math.log(300))


def drawn(true: npt.NDArray[np.float64], draws: int = 200) -> list[LevelFit]:
    rng = np.random.default_rng(0)
    return [fit_level(SIZES, true + 0.05 * rng.standard_normal(len(SIZES)), ERR) for _ in range(draws)]


@given(k=st.floats(-1, 1), level=st.floats(SIZES[1] + 0.5, SIZES[3] - 0.5), scale=st.floats(0.01, 1))
def test_exact_values_give_their_proportion_and_level(k: float, level: float, scale: float) -> None:
    fit = fit_level(SIZES, np.minimum(k + SIZES, k + level), ERR * scale)
    assert fit.status is FitStatus.CONVERGED
    assert (fit.k, fit.level) == pytest.approx((k, k + level), abs=1e-4)
    assert fit.chi2 == pytest.approx(0.0, abs=1e-3)


def test_it_is_the_maximum_of_the_likelihood() -> None:
    """Against all values of a fine grid."""
    rng = np.random.default_rng(1)
    for _ in range(10):
        y = KNEE + 0.1 * rng.standard_normal(5)
        fit = fit_level(SIZES, y, ERR)
        k, level = np.meshgrid(np.linspace(-1, 1, 401), np.linspace(SIZES[0], SIZES[-1], 801))
        grid = sum(
            ((value - np.minimum(k + x, level)) / 0.05) ** 2 for x, value in zip(SIZES, y, strict=True)
        )
        assert fit.status is FitStatus.CONVERGED
        assert fit.chi2 <= np.min(grid) + 1e-6


def test_its_errors_are_those_of_the_points_of_each_part_and_the_spread_of_its_fits() -> None:
    fit = fit_level(SIZES, KNEE, ERR)
    assert (fit.k_err, fit.level_err) == pytest.approx((0.05 / math.sqrt(3), 0.05 / math.sqrt(2)))
    assert (fit.dof, fit.n_points) == (3, 5)
    fits = [one for one in drawn(KNEE) if one.usable]
    assert len(fits) > 190
    assert np.std([one.k for one in fits]) == pytest.approx(fit.k_err, rel=0.2)
    assert np.std([one.level for one in fits]) == pytest.approx(fit.level_err, rel=0.2)
    assert np.mean([one.p_value < 0.05 for one in fits]) == pytest.approx(0.05, abs=0.04)


@pytest.mark.parametrize("true", [SIZES, np.full(5, math.log(300))], ids=["in proportion", "flat"])
def test_a_single_part_is_hardly_ever_taken_for_two(true: npt.NDArray[np.float64]) -> None:
    fits = drawn(true)
    assert sum(one.usable for one in fits) < 0.05 * len(fits)
    assert {one.status for one in fits} <= {FitStatus.NOT_IDENTIFIABLE, FitStatus.CONVERGED}


@pytest.mark.parametrize(
    ("rows", "values"),
    [
        ((0, 2, 3, 4), np.log([32.0, 150.0, 150.0, 150.0])),  # one point below the level
        ((0, 1, 2, 4), np.log([32.0, 64.0, 257.0, 300.0])),  # one on it
        ((2, 2, 2, 2), np.log([257.0, 257.0, 300.0, 300.0])),  # all at one x
    ],
)
def test_a_part_of_one_point_is_no_part(rows: Sequence[int], values: npt.NDArray[np.float64]) -> None:
    fit = fit_level(SIZES[list(rows)], values, ERR[:4])
    assert fit.status is FitStatus.NOT_IDENTIFIABLE
    assert math.isnan(fit.level)


def test_a_limit_that_is_broken_moves_the_level_and_one_that_is_kept_does_not() -> None:
    plain = fit_level(SIZES, KNEE, ERR)
    kept = fit_level(SIZES, KNEE, ERR, [Limit(math.log(5000), math.log(100), 0.05, 1)])
    assert (kept.level, kept.level_err) == pytest.approx((plain.level, plain.level_err), rel=1e-4)
    broken = fit_level(SIZES, KNEE, ERR, [Limit(math.log(5000), math.log(400), 0.05, 1)])
    assert broken.level > plain.level + plain.level_err
    assert broken.k == pytest.approx(plain.k, abs=0.01)


def test_three_points_are_too_few() -> None:
    fit = fit_level(SIZES[:3], SIZES[:3], ERR[:3])
    assert fit.status is FitStatus.TOO_FEW_POINTS
    assert fit.message == "3 points: a proportion and a level and a check of its fit need 4"
