"""The weighted line against NIST's certified values, the paper's fit, and closed forms."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shapelaw.fits.line import FitStatus, fit_line

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
    fit = fit_line(NORRIS[:, 1], NORRIS[:, 0], rescale_covariance=True)
    assert fit.a == pytest.approx(-0.262323073774029, rel=1e-7)
    assert fit.b == pytest.approx(1.00211681802045, rel=1e-11)
    assert fit.a_err == pytest.approx(0.232818234301152, rel=1e-7)
    assert fit.b_err == pytest.approx(0.429796848199937e-03, rel=1e-7)
    assert math.sqrt(fit.chi2_reduced) == pytest.approx(0.884796396144373, rel=1e-9)
    assert fit.r_squared == pytest.approx(0.999993745883712, rel=1e-12)
    assert (fit.dof, fit.n_points) == (34, 36)


def test_the_papers_fit():
    fit = fit_line(DEPTH, np.log(WIDTH), WIDTH_ERR / WIDTH)
    assert fit.status is FitStatus.CONVERGED
    assert fit.a == pytest.approx(5.0397, abs=5e-5)
    assert fit.b == pytest.approx(0.055501, abs=5e-7)
    assert fit.a_err == pytest.approx(0.0307, abs=5e-5)
    assert fit.b_err == pytest.approx(0.001317, abs=5e-7)
    assert fit.cov_ab == pytest.approx(-3.742e-5, abs=5e-9)
    assert fit.chi2_reduced == pytest.approx(0.8549, abs=5e-5)
    assert fit.r_squared == pytest.approx(0.9986, abs=5e-5)
    assert fit.dof == 3


def test_covariance_is_rescaled_only_on_demand():
    fixed = fit_line(DEPTH, np.log(WIDTH), WIDTH_ERR / WIDTH)
    scaled = fit_line(DEPTH, np.log(WIDTH), WIDTH_ERR / WIDTH, rescale_covariance=True)
    for name in ("cov_aa", "cov_ab", "cov_bb"):
        assert getattr(scaled, name) == pytest.approx(getattr(fixed, name) * fixed.chi2_reduced, rel=1e-9)


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


@given(lines, st.floats(0.1, 10.0))
@settings(max_examples=25, deadline=None)
def test_scaling_all_widths_moves_the_intercept_alone(case, factor):
    depth, a, b, seed = case
    x = np.array(depth, dtype=float)
    width = np.exp(a + b * x + 0.05 * np.random.default_rng(seed).standard_normal(len(x)))
    one, other = (fit_line(x, np.log(w), np.full(len(x), 0.05)) for w in (width, factor * width))
    assert other.a - one.a == pytest.approx(math.log(factor), abs=1e-7)
    assert other.b == pytest.approx(one.b, abs=1e-8)
    assert (other.a_err, other.b_err) == pytest.approx((one.a_err, one.b_err), rel=1e-6)
    assert other.chi2 == pytest.approx(one.chi2, rel=1e-6, abs=1e-6)


def test_errors_are_those_of_repeated_experiments():
    rng, sigma = np.random.default_rng(3), WIDTH_ERR / WIDTH
    fits = [fit_line(DEPTH, 5.0 + 0.05 * DEPTH + sigma * rng.standard_normal(5), sigma) for _ in range(300)]
    pulls = np.array([((f.a - 5.0) / f.a_err, (f.b - 0.05) / f.b_err) for f in fits])
    assert np.abs(pulls.mean(axis=0)).max() < 0.2
    assert pulls.std(axis=0) == pytest.approx([1.0, 1.0], abs=0.12)


@pytest.mark.parametrize("count", [0, 1, 2])
def test_too_few_points_give_no_fit(count):
    fit = fit_line(DEPTH[:count], np.log(WIDTH[:count]), WIDTH_ERR[:count] / WIDTH[:count])
    assert fit.status is FitStatus.TOO_FEW_POINTS
    assert not fit.usable
    assert math.isnan(fit.a)
    assert math.isnan(fit.cov_ab)
    assert f"{count} point" in fit.message


def test_one_depth_alone_gives_no_slope():
    fit = fit_line([6, 6, 6], [5.0, 5.1, 5.2])
    assert fit.status is FitStatus.NOT_IDENTIFIABLE
    assert fit.to_dict()["b"] is None


def test_points_that_scatter_more_than_their_errors_are_called_so():
    fit = fit_line(DEPTH, [5.0, 6.0, 5.0, 6.0, 5.0], np.full(5, 0.01))
    assert fit.usable
    assert fit.p_value < 1e-6
    assert "scatter more than their errors" in fit.message


@pytest.mark.parametrize(
    ("x", "y", "sigma"),
    [([1, 2, 3], [1, 2], None), ([1, 2, 3], [1, 2, math.nan], None), ([1, 2, 3], [1, 2, 3], [1, 0, 1])],
)
def test_wrong_arrays_are_refused(x, y, sigma):
    with pytest.raises(ValueError, match="must be"):
        fit_line(x, y, sigma)
