"""Values in proportion to x up to a level, against known ones."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapelaw.fits.level import fit_level
from shapelaw.fits.limits import Limit
from shapelaw.fits.line import FitStatus

X = np.log([32.0, 64.0, 257.0, 500.0, 2000.0])
SIGMA = np.full(5, 0.05)


@given(k=st.floats(-1, 1), level=st.floats(X[0] - 2, X[-1] + 2), scale=st.floats(0.01, 0.2))
def test_exact_values_give_their_proportion_and_level(k: float, level: float, scale: float) -> None:
    fit = fit_level(X, np.minimum(k + X, level), SIGMA * scale)
    assert fit.status is FitStatus.CONVERGED
    assert fit.chi2 == pytest.approx(0.0, abs=1e-3)
    if (k + X < level - 1e-6).any():
        assert fit.k == pytest.approx(k, abs=1e-3)
    if (k + X > level + 1e-6).sum() > 1:  # one value above could be on the rising part too
        assert fit.level == pytest.approx(level, abs=1e-3)


def test_errors_are_those_of_the_points_of_each_part() -> None:
    fit = fit_level(X, np.minimum(X, math.log(300)), SIGMA)
    assert fit.k_err == pytest.approx(0.05 / math.sqrt(3))
    assert fit.level_err == pytest.approx(0.05 / math.sqrt(2))
    assert (fit.dof, fit.n_points) == (3, 5)
    rises = fit_level(X, X, SIGMA)
    assert math.isnan(rises.level)
    assert math.isnan(rises.level_err)
    assert rises.dof == 4


def test_its_errors_are_the_spread_of_its_fits() -> None:
    rng, fits = np.random.default_rng(0), []
    for _ in range(200):
        fits.append(fit_level(X, np.minimum(X, math.log(300)) + 0.05 * rng.standard_normal(5), SIGMA))
    assert np.std([fit.k for fit in fits]) == pytest.approx(fits[0].k_err, rel=0.2)
    assert np.std([fit.level for fit in fits]) == pytest.approx(fits[0].level_err, rel=0.2)
    assert np.mean([fit.p_value < 0.05 for fit in fits]) == pytest.approx(0.05, abs=0.04)


def test_a_limit_that_is_broken_moves_the_level_and_one_that_is_kept_does_not() -> None:
    y = np.minimum(X, math.log(300))
    plain = fit_level(X, y, SIGMA)
    kept = fit_level(X, y, SIGMA, [Limit(math.log(5000), math.log(100), 0.05, 1)])
    assert (kept.level, kept.level_err) == pytest.approx((plain.level, plain.level_err), rel=1e-4)
    broken = fit_level(X, y, SIGMA, [Limit(math.log(5000), math.log(400), 0.05, 1)])
    assert broken.level > plain.level + plain.level_err
    assert broken.k == pytest.approx(plain.k, abs=0.01)


def test_two_points_are_too_few() -> None:
    fit = fit_level(X[:2], X[:2], SIGMA[:2])
    assert fit.status is FitStatus.TOO_FEW_POINTS
    assert fit.message == "2 points: a proportion and a level and a check of its fit need 3"
