"""The line against NIST's certified values, the paper's fit, closed forms; lines and levels through limits."""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from shapelaw.fits.line import FitStatus, LevelFit, Limit, fit_level, fit_line

# Table 4a of Levine et al. 2020
DEPTH = np.array([6.0, 12.0, 18.0, 24.0, 30.0])
WIDTH = np.array([214.0, 308.0, 436.0, 572.0, 824.0])
WIDTH_ERR = np.array([6.0, 12.0, 20.0, 12.0, 16.0])

# NIST StRD, Norris.dat: calibration of ozone monitors, (y, x)
NORRIS = np.array(
    [
        *[(0.1, 0.2), (338.8, 337.4), (118.1, 118.2), (888.0, 884.6), (9.2, 10.1), (228.1, 226.5)],
        *[(668.5, 666.3), (998.5, 996.3), (449.1, 448.6), (778.9, 777.0), (559.2, 558.2), (0.3, 0.4)],
        *[(0.1, 0.6), (778.1, 775.5), (668.8, 666.9), (339.3, 338.0), (448.9, 447.5), (10.8, 11.6)],
        *[(557.7, 556.0), (228.3, 228.1), (998.0, 995.8), (888.8, 887.6), (119.6, 120.2), (0.3, 0.3)],
        *[(0.6, 0.3), (557.6, 556.8), (339.3, 339.1), (888.0, 887.2), (998.5, 999.0), (778.9, 779.0)],
        *[(10.2, 11.1), (117.6, 118.3), (228.9, 229.2), (668.4, 669.1), (449.2, 448.9), (0.2, 0.5)],
    ]
)


def test_nist_norris():
    fit = fit_line(NORRIS[:, 1], NORRIS[:, 0], np.ones(len(NORRIS)), rescale_covariance=True)
    assert fit.a == pytest.approx(-0.262323073774029, rel=1e-7)
    assert fit.b == pytest.approx(1.00211681802045, rel=1e-11)
    assert fit.a_err == pytest.approx(0.232818234301152, rel=1e-7)
    assert fit.b_err == pytest.approx(0.429796848199937e-03, rel=1e-7)
    assert math.sqrt(fit.chi2_reduced) == pytest.approx(0.884796396144373, rel=1e-9)
    assert fit.r_squared == pytest.approx(0.999993745883712, rel=1e-12)
    assert (fit.dof, fit.n_points) == (34, 36)


def test_a_line_takes_a_covariance():
    """Neighbours with errors of opposite sign tell a slope otherwise than independent ones; a diagonal says nothing."""
    err, y = WIDTH_ERR / WIDTH, np.log(WIDTH)
    shared = np.diag([-0.3] * 4, 1)
    covariance = (np.eye(5) + shared + shared.T) * np.outer(err, err)
    design, inverse = np.stack([np.ones(5), DEPTH], axis=1), np.linalg.inv(covariance)
    spread = np.linalg.inv(design.T @ inverse @ design)
    fit = fit_line(DEPTH, y, covariance)
    assert (fit.a, fit.b) == pytest.approx(tuple(spread @ design.T @ inverse @ y), rel=1e-7)
    assert (fit.a_err, fit.b_err) == pytest.approx(tuple(np.sqrt(np.diag(spread))), rel=1e-6)
    residual = y - design @ [fit.a, fit.b]
    assert fit.chi2 == pytest.approx(residual @ inverse @ residual, rel=1e-7)
    plain, same = fit_line(DEPTH, y, err), fit_line(DEPTH, y, np.diag(err**2))
    assert (same.a, same.b, same.b_err, same.r_squared) == pytest.approx(
        (plain.a, plain.b, plain.b_err, plain.r_squared)
    )
    bound = [Limit(36.0, 7.5, 0.05, 1)]
    limited = (fit_line(DEPTH, y, sigma, bound).b for sigma in (err, np.diag(err**2)))
    assert next(limited) == pytest.approx(next(limited), rel=1e-7)


lines = st.tuples(
    st.lists(st.integers(1, 96), min_size=4, max_size=9, unique=True),
    st.floats(2.0, 8.0),
    st.floats(0.01, 0.3),
    st.integers(0, 10_000),
)


@given(lines)
@settings(max_examples=40, deadline=None)
def test_values_and_covariance_are_those_of_the_normal_equations(case):
    depth, a, b, seed = case
    rng = np.random.default_rng(seed)
    x, sigma = np.array(depth, dtype=float), rng.uniform(0.01, 0.1, len(depth))
    y = a + b * x + sigma * rng.standard_normal(len(x))
    fit = fit_line(x, y, sigma)
    design = np.stack([np.ones_like(x), x], axis=1) / sigma[:, None]
    covariance = np.linalg.inv(design.T @ design)
    solution = covariance @ design.T @ (y / sigma)
    assert (fit.a, fit.b) == pytest.approx(tuple(solution), rel=1e-6, abs=1e-8)
    got = (fit.cov_aa, fit.cov_ab, fit.cov_bb)
    assert got == pytest.approx((covariance[0, 0], covariance[0, 1], covariance[1, 1]), rel=1e-5)


@pytest.mark.parametrize("count", [0, 1, 2])
def test_too_few_points_give_no_fit(count):
    fit = fit_line(DEPTH[:count], np.log(WIDTH[:count]), WIDTH_ERR[:count] / WIDTH[:count])
    assert fit.status is FitStatus.TOO_FEW_POINTS
    assert not fit.usable
    assert math.isnan(fit.a)
    assert math.isnan(fit.cov_ab)
    assert f"{count} point" in fit.message


def test_one_depth_alone_gives_no_slope_and_points_that_scatter_more_than_their_errors_are_called_so():
    alone = fit_line([6, 6, 6], [5.0, 5.1, 5.2], [1, 1, 1])
    assert alone.status is FitStatus.NOT_IDENTIFIABLE
    assert alone.to_dict()["b"] is None
    fit = fit_line(DEPTH, [5.0, 6.0, 5.0, 6.0, 5.0], np.full(5, 0.01))
    assert fit.usable
    assert fit.p_value < 1e-6
    assert "scatter more than their errors" in fit.message


@pytest.mark.parametrize(
    ("x", "y", "sigma"),
    [
        ([1, 2, 3], [1, 2], [1, 1, 1]),
        ([1, 2, 3], [1, 2, math.nan], [1, 1, 1]),
        ([1, 2, 3], [1, 2, 3], [1, 0, 1]),
    ],
)
def test_wrong_arrays_are_refused(x, y, sigma):
    with pytest.raises(ValueError, match="must be"):
        fit_line(x, y, sigma)


X = np.array([1.0, 2.0, 4.0, 8.0])
SIGMA = np.full(4, 0.05)


def test_it_is_the_maximum_of_the_likelihood_and_its_curvature():
    """Against a minimiser that knows no derivatives, and differences of the likelihood."""
    y = np.array([5.02, 5.15, 5.18, 5.48])
    limits = [Limit(16.0, 6.1, 0.1, 1), Limit(12.0, 5.6, 0.05, -1)]

    def loss(at):
        line = at[0] + at[1] * X
        z = [limit.side * (at[0] + at[1] * limit.x - limit.bound) / limit.sigma for limit in limits]
        return 0.5 * (((y - line) / SIGMA) ** 2).sum() - stats.norm.logcdf(z).sum()

    fit = fit_line(X, y, SIGMA, limits)
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


def test_limits_take_the_bias_out_of_what_a_grid_can_report():
    """Transitions at four depths, of which one above 5.5 is only known to be above it.

    Without the limits a slope comes from the draws that happen to be low: biased, and its interval misses the truth.
    """
    rng = np.random.default_rng(1)
    x, a, b, sigma, top = np.array([1.0, 2.0, 4.0, 8.0, 9.0]), 5.0, 0.055, 0.1, 5.5
    with_limits, without = [], []
    for _ in range(100):
        y = a + b * x + sigma * rng.standard_normal(5)
        seen = y < top
        if seen.sum() < 3:
            continue
        limits = [Limit(float(depth), top, sigma, 1) for depth in x[~seen]]
        points = (x[seen], y[seen], np.full(seen.sum(), sigma))
        with_limits.append(fit_line(*points, limits))
        without.append(fit_line(*points))
    error = {
        name: np.array([f.b - b for f in fits])
        for name, fits in (("with", with_limits), ("without", without))
    }
    assert abs(error["with"].mean()) < abs(error["without"].mean()) / 2
    assert np.sqrt((error["with"] ** 2).mean()) < 0.75 * np.sqrt((error["without"] ** 2).mean())
    held = np.mean([abs(f.b - b) < f.b_err for f in with_limits])
    assert 0.60 <= held <= 0.78


SIZES = np.log([32.0, 64.0, 257.0, 500.0, 2000.0])
ERR = np.array([0.03, 0.06, 0.04, 0.08, 0.05])
KNEE = np.minimum(SIZES, math.log(300))


def drawn(true: npt.NDArray[np.float64], draws: int = 80) -> list[LevelFit]:
    rng = np.random.default_rng(0)
    return [fit_level(SIZES, true + ERR * rng.standard_normal(len(SIZES)), ERR) for _ in range(draws)]


@settings(max_examples=15, deadline=None)
@given(k=st.floats(-1, 1), level=st.floats(SIZES[1] + 0.5, SIZES[3] - 0.5), scale=st.floats(0.01, 1))
def test_exact_values_give_their_proportion_and_level(k: float, level: float, scale: float) -> None:
    fit = fit_level(SIZES, np.minimum(k + SIZES, k + level), ERR * scale)
    assert fit.status is FitStatus.CONVERGED
    assert (fit.k, fit.level) == pytest.approx((k, k + level), abs=1e-4)
    assert fit.chi2 == pytest.approx(0.0, abs=1e-3)


@pytest.mark.parametrize("seed", [0, 6, 21])  # of 6 and 21 the last start and the first one end elsewhere
def test_it_is_the_maximum_of_the_likelihood(seed: int) -> None:
    """Against all values of a fine grid, at scatter of ten errors."""
    y = KNEE + 10 * ERR * np.random.default_rng(seed).standard_normal(5)
    fit = fit_level(SIZES, y, ERR)
    k, level = np.meshgrid(np.linspace(-2, 2, 401), np.linspace(SIZES[0], SIZES[-1], 801))
    grid = sum(
        ((value - np.minimum(k + x, level)) / error) ** 2
        for x, value, error in zip(SIZES, y, ERR, strict=True)
    )
    assert fit.status is FitStatus.CONVERGED
    assert fit.chi2 <= np.min(grid) + 1e-6


def test_its_errors_are_those_of_the_points_of_each_part_and_the_spread_of_its_fits() -> None:
    fit = fit_level(SIZES, KNEE, ERR)
    k_err, level_err = (1 / math.sqrt(np.sum(ERR[part] ** -2)) for part in (slice(3), slice(3, 5)))
    assert (fit.k_err, fit.level_err) == pytest.approx((k_err, level_err))
    assert (fit.dof, fit.n_points) == (3, 5)
    fits = [one for one in drawn(KNEE) if one.usable]
    assert len(fits) > 75
    assert np.std([one.k for one in fits]) == pytest.approx(fit.k_err, rel=0.2)
    assert np.std([one.level for one in fits]) == pytest.approx(fit.level_err, rel=0.2)
    assert np.mean([one.p_value < 0.05 for one in fits]) < 0.12


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
    few = fit_level(SIZES[:3], SIZES[:3], ERR[:3])
    assert few.message == "3 points: a proportion and a level and a check of its fit need 4"


def test_a_limit_that_is_broken_moves_the_level_and_one_that_is_kept_does_not() -> None:
    plain = fit_level(SIZES, KNEE, ERR)
    kept = fit_level(SIZES, KNEE, ERR, [Limit(math.log(5000), math.log(100), 0.05, 1)])
    assert (kept.level, kept.level_err) == pytest.approx((plain.level, plain.level_err), rel=1e-4)
    broken = fit_level(SIZES, KNEE, ERR, [Limit(math.log(5000), math.log(400), 0.05, 1)])
    assert broken.level > plain.level + plain.level_err
    assert broken.k == pytest.approx(plain.k, abs=0.01)
