"""N_transition(L), its error, the shape projected for a size, sizes of shapes, and forms beside the line."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shapelaw.fits.line import LineFit, fit_line
from shapelaw.fits.projection import (
    draw_sizes,
    fit_forms,
    project,
    spread,
    standard_params,
    transition_size,
    transition_width,
    why_no_projection,
    widened,
)

# table 4a of Levine et al. 2020
DEPTH = np.array([6.0, 12.0, 18.0, 24.0, 30.0])
WIDTH = np.array([214.0, 308.0, 436.0, 572.0, 824.0])
WIDTH_ERR = np.array([6.0, 12.0, 20.0, 12.0, 16.0])


@pytest.fixture(scope="module")
def fit() -> LineFit:
    return fit_line(DEPTH, np.log(WIDTH), WIDTH_ERR / WIDTH)


def test_forms_take_a_covariance_and_leave_a_point_out_with_what_it_shares():
    """A left-out point is normal about the others' prediction, conditional on their residuals."""
    rng = np.random.default_rng(3)
    err = WIDTH_ERR / WIDTH
    shared = np.diag([-0.3] * 4, 1)
    covariance = (np.eye(5) + shared + shared.T) * np.outer(err, err)
    y = np.log(WIDTH) + 0.05 * rng.standard_normal(5)
    (line,) = [one for one in fit_forms(DEPTH, y, covariance) if one.name == "line"]
    design = np.stack([np.ones(5), DEPTH], axis=1)

    def fitted(of):
        inverse = np.linalg.inv(covariance[np.ix_(of, of)])
        spread = np.linalg.inv(design[of].T @ inverse @ design[of])
        return spread @ design[of].T @ inverse @ y[of], spread

    assert line.coefficients == pytest.approx(fitted(np.arange(5))[0], rel=1e-9)
    density = 0.0
    for point in range(5):
        others = np.delete(np.arange(5), point)
        inverse = np.linalg.inv(covariance[np.ix_(others, others)])
        at, spread = fitted(others)
        pull = covariance[point, others] @ inverse
        mean = design[point] @ at + pull @ (y[others] - design[others] @ at)
        moved = design[point] - pull @ design[others]
        variance = covariance[point, point] - pull @ covariance[others, point] + moved @ spread @ moved
        density += -0.5 * ((y[point] - mean) ** 2 / variance + math.log(2 * math.pi * variance))
    assert line.log_density == pytest.approx(density, rel=1e-9)
    plain, same = (fit_forms(DEPTH, np.log(WIDTH), sigma) for sigma in (err, np.diag(err**2)))
    assert [one.log_density for one in plain] == pytest.approx([one.log_density for one in same], rel=1e-9)


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
@settings(max_examples=60)
def test_projection_inverts_the_transition_size(a, b, log10_params):
    fit = replace(fit_line(DEPTH, np.log(WIDTH), WIDTH_ERR / WIDTH), a=a, b=b, b_err=b / 10)
    params = 10.0**log10_params
    shape = project(fit, params)
    assert transition_size(fit, shape.depth)[0] == pytest.approx(params, rel=1e-8)
    assert standard_params(shape.depth, shape.width) == pytest.approx(params, rel=1e-12)
    assert shape.width == pytest.approx(float(transition_width(fit, shape.depth)[0]), rel=1e-8)


def test_unusable_fits_and_flat_lines_have_no_projection(fit):
    nothing = fit_line([6, 12], [5.0, 5.5], [1, 1])
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


SIGMA = WIDTH_ERR / WIDTH


@pytest.fixture(scope="module")
def forms():
    return fit_forms(DEPTH, np.log(WIDTH), SIGMA)


def test_a_projection_over_forms_is_wider_than_the_lines(forms):
    line = next(form for form in forms if form.name == "line")
    alone = np.quantile(draw_sizes((line,), [96])[:, 0], (0.025, 0.975))
    together = np.quantile(draw_sizes(forms, [96])[:, 0], (0.025, 0.975))
    assert np.ptp(together) > np.ptp(alone)
    fit = fit_line(DEPTH, np.log(WIDTH), SIGMA)
    shape, over = project(fit, 1e10), spread(forms, 1e10)
    assert over.depth_low < shape.depth < over.depth_high
    assert over.width_low < shape.width < over.width_high
    assert over.depth_high - over.depth_low > 1.9 * shape.depth_err


def test_curves_that_bend_over_never_reach_a_size():
    depth = np.arange(2.0, 20.0, 2)
    bent = fit_forms(depth, 4 + 0.2 * depth - 0.008 * depth**2, np.full(9, 0.005))
    assert bent[0].name == "quadratic"
    over = spread(bent, 1e12)
    assert over.unreached > 0.9
    assert over.depth_high == np.inf
    assert over.width_low == 0.0


def test_points_that_scatter_widen_what_is_projected():
    y = [5.0, 6.0, 5.5, 7.0, 6.5]
    scattered = fit_line(DEPTH, y, np.full(5, 0.05))
    assert scattered.p_value < 0.01
    honest = fit_line(DEPTH, y, np.full(5, 0.05), rescale_covariance=True)
    assert widened(scattered).b_err == pytest.approx(honest.b_err, rel=1e-6)
    sizes = transition_size(widened(scattered), 48.0), transition_size(honest, 48.0)
    assert sizes[0] == pytest.approx(sizes[1], rel=1e-6)
    good = fit_line(DEPTH, np.log(WIDTH), SIGMA)
    assert widened(good) is good
