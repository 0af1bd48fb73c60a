"""Forms of the transition width beside the line, their weights, and what they make of a projection."""

import numpy as np
import pytest

from shapelaw.fits.forms import FORMS, draw_sizes, fit_forms, log_width_of, spread
from shapelaw.fits.line import fit_line
from shapelaw.fits.projection import project, transition_size, widened

# table 4a of Levine et al. 2020
DEPTH = np.array([6.0, 12.0, 18.0, 24.0, 30.0])
WIDTH = np.array([214.0, 308.0, 436.0, 572.0, 824.0])
SIGMA = np.array([6.0, 12.0, 20.0, 12.0, 16.0]) / WIDTH


@pytest.fixture(scope="module")
def forms():
    return fit_forms(DEPTH, np.log(WIDTH), SIGMA)


def test_the_line_is_the_published_one_and_a_quadratic_fits_as_well_and_knows_nothing(forms):
    by_name = {form.name: form for form in forms}
    line, quadratic = by_name["line"], by_name["quadratic"]
    fit = fit_line(DEPTH, np.log(WIDTH), SIGMA)
    assert line.coefficients == pytest.approx([fit.a, fit.b], rel=1e-6)
    assert 2 * log_width_of(line, [80])[1][0] == pytest.approx(0.1556, abs=1e-3)
    assert (line.chi2, quadratic.chi2) == pytest.approx((2.565, 2.511), abs=2e-3)
    assert 2 * log_width_of(quadratic, [80, 96])[1] == pytest.approx([1.54, 2.46], abs=0.01)


def test_weights_are_by_what_is_predicted(forms):
    """The predictive density of left-out points, here by fitting without each one of them."""
    assert sum(form.weight for form in forms) == pytest.approx(1.0)
    assert [form.name for form in forms][:2] == ["line", "quadratic"]
    for form in forms:
        total = 0.0
        for left in range(5):
            there = np.arange(5) != left
            design = np.stack(FORMS[form.name][1](DEPTH), axis=1)
            white = design[there] / SIGMA[there, None]
            covariance = np.linalg.inv(white.T @ white)
            off = np.log(WIDTH[left]) - design[left] @ covariance @ white.T @ (
                np.log(WIDTH[there]) / SIGMA[there]
            )
            variance = SIGMA[left] ** 2 + design[left] @ covariance @ design[left]
            total += -0.5 * (off**2 / variance + np.log(2 * np.pi * variance))
        assert form.log_density == pytest.approx(total, rel=1e-6)


def test_the_true_form_gets_the_weight():
    rng, depth = np.random.default_rng(0), np.arange(2.0, 20.0, 2)
    for name, truth in (("line", 4 + 0.05 * depth), ("power law", 4 + 0.8 * np.log(depth))):
        sigma = np.full(len(depth), 0.02)
        weights = [
            {
                form.name: form.weight
                for form in fit_forms(depth, truth + sigma * rng.standard_normal(9), sigma)
            }
            for _ in range(20)
        ]
        assert np.mean([weight[name] for weight in weights]) > 0.6


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


def test_too_few_points_have_no_forms():
    assert fit_forms(DEPTH[:2], np.log(WIDTH[:2]), SIGMA[:2]) == ()
    assert {form.name for form in fit_forms(DEPTH[:3], np.log(WIDTH[:3]), SIGMA[:3])} == {
        "line",
        "root",
        "power law",
    }
