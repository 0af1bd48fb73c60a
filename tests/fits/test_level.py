"""Values in proportion to x up to a level, against known ones."""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapelaw.fits.limits import LevelFit, Limit, fit_level
from shapelaw.fits.line import FitStatus

X = np.log([32.0, 64.0, 257.0, 500.0, 2000.0])
SIGMA = np.full(5, 0.05)
KNEE = np.minimum(X, math.log(300))


def drawn(true: npt.NDArray[np.float64], draws: int = 200) -> list[LevelFit]:
    rng = np.random.default_rng(0)
    return [fit_level(X, true + 0.05 * rng.standard_normal(len(X)), SIGMA) for _ in range(draws)]


@given(k=st.floats(-1, 1), level=st.floats(X[1] + 0.5, X[3] - 0.5), scale=st.floats(0.01, 1))
def test_exact_values_give_their_proportion_and_level(k: float, level: float, scale: float) -> None:
    fit = fit_level(X, np.minimum(k + X, k + level), SIGMA * scale)
    assert fit.status is FitStatus.CONVERGED
    assert (fit.k, fit.level) == pytest.approx((k, k + level), abs=1e-4)
    assert fit.chi2 == pytest.approx(0.0, abs=1e-3)


def test_it_is_the_maximum_of_the_likelihood() -> None:
    """Against all values of a fine grid."""
    rng = np.random.default_rng(1)
    for _ in range(10):
        y = KNEE + 0.1 * rng.standard_normal(5)
        fit = fit_level(X, y, SIGMA)
        k, level = np.meshgrid(np.linspace(-1, 1, 401), np.linspace(X[0], X[-1], 801))
        grid = sum(((value - np.minimum(k + x, level)) / 0.05) ** 2 for x, value in zip(X, y, strict=True))
        assert fit.status is FitStatus.CONVERGED
        assert fit.chi2 <= np.min(grid) + 1e-6


def test_its_errors_are_those_of_the_points_of_each_part_and_the_spread_of_its_fits() -> None:
    fit = fit_level(X, KNEE, SIGMA)
    assert (fit.k_err, fit.level_err) == pytest.approx((0.05 / math.sqrt(3), 0.05 / math.sqrt(2)))
    assert (fit.dof, fit.n_points) == (3, 5)
    fits = [one for one in drawn(KNEE) if one.usable]
    assert len(fits) > 190
    assert np.std([one.k for one in fits]) == pytest.approx(fit.k_err, rel=0.2)
    assert np.std([one.level for one in fits]) == pytest.approx(fit.level_err, rel=0.2)
    assert np.mean([one.p_value < 0.05 for one in fits]) == pytest.approx(0.05, abs=0.04)


@pytest.mark.parametrize("true", [X, np.full(5, math.log(300))], ids=["in proportion", "flat"])
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
    fit = fit_level(X[list(rows)], values, SIGMA[:4])
    assert fit.status is FitStatus.NOT_IDENTIFIABLE
    assert math.isnan(fit.level)


def test_a_limit_that_is_broken_moves_the_level_and_one_that_is_kept_does_not() -> None:
    plain = fit_level(X, KNEE, SIGMA)
    kept = fit_level(X, KNEE, SIGMA, [Limit(math.log(5000), math.log(100), 0.05, 1)])
    assert (kept.level, kept.level_err) == pytest.approx((plain.level, plain.level_err), rel=1e-4)
    broken = fit_level(X, KNEE, SIGMA, [Limit(math.log(5000), math.log(400), 0.05, 1)])
    assert broken.level > plain.level + plain.level_err
    assert broken.k == pytest.approx(plain.k, abs=0.01)


def test_three_points_are_too_few() -> None:
    fit = fit_level(X[:3], X[:3], SIGMA[:3])
    assert fit.status is FitStatus.TOO_FEW_POINTS
    assert fit.message == "3 points: a proportion and a level and a check of its fit need 4"
