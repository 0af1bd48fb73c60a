"""N_transition(L), its error, and the shape that it projects for a size."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shapelaw.fits.line import LineFit, fit_line
from shapelaw.fits.projection import (
    project,
    standard_params,
    transition_size,
    transition_width,
    why_no_projection,
)

DEPTH = np.array([6.0, 12.0, 18.0, 24.0, 30.0])
WIDTH = np.array([214.0, 308.0, 436.0, 572.0, 824.0])
WIDTH_ERR = np.array([6.0, 12.0, 20.0, 12.0, 16.0])


@pytest.fixture(scope="module")
def fit() -> LineFit:
    return fit_line(DEPTH, np.log(WIDTH), WIDTH_ERR / WIDTH)


def test_sizes_of_the_refitted_transitions(fit):
    size, err = transition_size(fit, [80, 96])
    assert size == pytest.approx([1.645e11, 1.166e12], rel=1e-3)
    assert err == pytest.approx([2.561e10, 2.302e11], rel=1e-3)
    n100, n100_err = transition_size(fit, 100.0)
    assert n100_err / n100 == pytest.approx(0.208, abs=5e-4)


def test_equation_10_with_the_printed_covariance_gives_the_printed_errors(fit):
    """Eq. 11 rounds the covariance to two digits, and that is where the paper's 0.25e11 comes from."""
    printed = replace(fit, a=5.0397, b=0.055501, cov_aa=9.4e-4, cov_ab=-3.74e-5, cov_bb=1.7e-6)
    size, err = transition_size(printed, 80.0)
    assert size == pytest.approx(1.645e11, rel=1e-3)
    assert err == pytest.approx(0.251e11, rel=3e-3)


def test_errors_are_those_of_drawn_parameters(fit):
    covariance = [[fit.cov_aa, fit.cov_ab], [fit.cov_ab, fit.cov_bb]]
    drawn = np.random.default_rng(0).multivariate_normal([fit.a, fit.b], covariance, size=4000)
    log_size = np.log(12 * 48) + 2 * (drawn[:, 0] + 48 * drawn[:, 1])
    size, err = transition_size(fit, 48.0)
    assert err / size == pytest.approx(log_size.std(), rel=0.05)
    width, width_err = transition_width(fit, 48.0)
    assert width_err / width == pytest.approx(log_size.std() / 2, rel=0.05)

    shapes = [project(replace(fit, a=a, b=b), 1e10) for a, b in drawn[:800]]
    ours = project(fit, 1e10)
    assert ours.depth_err == pytest.approx(np.std([s.depth for s in shapes]), rel=0.08)
    assert ours.width_err == pytest.approx(np.std([s.width for s in shapes]), rel=0.08)


@given(st.floats(2.0, 7.0), st.floats(0.005, 0.5), st.floats(4.0, 13.0))
@settings(max_examples=60, deadline=None)
def test_projection_inverts_the_transition_size(a, b, log10_params):
    fit = replace(fit_line(DEPTH, np.log(WIDTH), WIDTH_ERR / WIDTH), a=a, b=b, b_err=b / 10)
    params = 10.0**log10_params
    shape = project(fit, params)
    assert transition_size(fit, shape.depth)[0] == pytest.approx(params, rel=1e-8)
    assert standard_params(shape.depth, shape.width) == pytest.approx(params, rel=1e-12)
    assert shape.width == pytest.approx(float(transition_width(fit, shape.depth)[0]), rel=1e-8)


def test_unusable_fits_and_flat_lines_have_no_projection(fit):
    nothing = fit_line([6, 12], [5.0, 5.5])
    assert "too few points" in str(why_no_projection(nothing))
    flat = replace(fit, b=0.001, b_err=0.001)
    assert "not significantly above zero" in str(why_no_projection(flat))
    assert why_no_projection(fit) is None
    for bad in (nothing, flat):
        with pytest.raises(ValueError, match="no "):
            project(bad, 1e9)
    with pytest.raises(ValueError, match="not usable"):
        transition_size(nothing, 12)
    with pytest.raises(ValueError, match="positive"):
        project(fit, math.nan)
