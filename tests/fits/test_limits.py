"""Lines through points and limits."""

import numpy as np
import pytest
from scipy import optimize, stats

from shapelaw.fits.limits import Limit, fit_line_with_limits
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
