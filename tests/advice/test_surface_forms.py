"""The shapes that a surface can be fitted to, and its forms: each best depth lies where the formula has it.

The surface without a form follows what no polynomial has, and its draws are as wide as its errors.
"""

import numpy as np
import pandas as pd
import pytest

from shapelaw.advice.surface.average import fit_surface
from shapelaw.advice.surface.forms import (
    Frame,
    Shapes,
    SurfaceStatus,
    draw_smooth,
    fit_smooth,
    mean_smooth,
    shapes_of,
    surface_forms,
)
from shapelaw.specs.sizes import SizeAxis


def test_shapes_are_the_means_of_their_runs():
    runs = pd.DataFrame(
        {
            "depth": [2, 2, 4],
            "width": [8, 8, 8],
            "seed": [0, 1, 0],
            "loss": [3.0, 3.5, 2.0],
            "total_params": [9.0, 9.0, 12.0],
        }
    )
    shapes = shapes_of(runs, SizeAxis.BLOCK)
    assert shapes.size.tolist() == [12 * 2 * 64, 12 * 4 * 64]
    assert shapes.loss.tolist() == [3.25, 2.0]
    assert shapes.seeds.tolist() == [2.0, 1.0]
    assert shapes_of(runs, SizeAxis.TOTAL).size.tolist() == [9.0, 12.0]


def some(depth, width):
    depth, width = np.array(depth, dtype=float), np.array(width, dtype=float)
    size = 12.0 * depth * width**2
    return Shapes(depth, width, size, 3.0 - 0.1 * np.log(size), np.ones(len(depth)))


@pytest.mark.parametrize(
    ("shapes", "status", "words"),
    [
        (some([2, 4, 8], [64, 64, 64]), SurfaceStatus.TOO_FEW, "3 shapes, and a surface needs 8"),
        (
            some([2] * 5 + [4] * 5, range(64, 224, 16)),
            SurfaceStatus.NOT_IDENTIFIABLE,
            "fewer than three depths",
        ),
        (
            some([2, 3, 4, 6, 8, 12, 16, 24, 32], [32, 48, 64, 96, 128, 192, 256, 384, 512]),
            SurfaceStatus.NOT_IDENTIFIABLE,
            "on one line of log depth against log size",
        ),
    ],
)
def test_shapes_that_no_surface_can_be_fitted_to(shapes, status, words):
    surface = fit_surface(shapes, None)
    assert surface.status is status
    assert words in surface.message
    assert surface.forms == ()


X = np.log(np.geomspace(5e7, 2e9, 30))
Z = np.log(np.geomspace(4, 64, 30))
FRAME = Frame.of(X, Z)
FORMS = {form.name: form for form in surface_forms(FRAME)}


def best(form, theta, x, coefficients=(3.0, -0.2)):
    z = np.linspace(0.0, 6.0, 6001)
    losses = form.model.values(np.array(theta), np.array(coefficients), np.full_like(z, x), z)
    return z[losses.argmin()]


@pytest.mark.parametrize(
    ("name", "skew"), [("symmetric", ()), ("skewed", (0.9,)), ("two-sided", (-0.8,)), ("pointed", (-1.5,))]
)
def test_best_depth_on_a_line(name, skew):
    for x in (FRAME.x - 1.0, FRAME.x + 1.0):
        expected = 2.7 + 0.4 * (x - FRAME.x)
        assert best(FORMS[name], (0.2, -1.0, 2.7, 0.4, *skew), x) == pytest.approx(expected, abs=2e-3)


def test_best_depth_of_the_law():
    """N = 12 L exp(2 a + 2 b L), solved forwards: a depth's size has that best depth."""
    a, b, middle = 4.6, 0.05, 16.0
    x = np.log(12 * np.array([8.0, middle, 30.0])) + 2 * a + 2 * b * np.array([8.0, middle, 30.0])
    moved = x - x[1] + FRAME.x
    for log_size, depth in zip(moved, (8.0, middle, 30.0), strict=True):
        found = best(FORMS["law"], (0.2, -1.0, np.log(middle), np.log(b * middle)), log_size)
        assert found == pytest.approx(np.log(depth), abs=2e-3)


def test_the_loss_at_the_best_depth_is_a_power_law_of_size():
    form, theta, coefficients = FORMS["symmetric"], np.array([0.3, -1.0, 2.7, 0.4]), np.array([3.0, -0.2])
    x = FRAME.x + np.array([-1.0, 0.0, 1.0, 2.0])
    losses = form.model.values(theta, coefficients, x, 2.7 + 0.4 * (x - FRAME.x))
    steps = np.diff(losses)
    np.testing.assert_allclose(steps[1:] / steps[:-1], np.exp(-0.3))


def test_skew_zero_is_symmetric_and_alpha_zero_is_defined():
    skewed, symmetric = FORMS["skewed"], FORMS["symmetric"]
    for alpha in (0.2, 0.0):
        theta = np.array([alpha, -1.0, 2.7, 0.4])
        a = skewed.model.columns(np.append(theta, 0.0), X, Z)
        np.testing.assert_allclose(a, symmetric.model.columns(theta, X, Z), atol=1e-3)
    narrow = Frame(FRAME.x, FRAME.z, 0.1, FRAME.z_span)  # sizes that are one need no power of size
    assert (surface_forms(narrow)[-1].linear, FORMS["quadratic"].linear) == (3, 6)


def test_a_pointed_valley_is_a_parabola_near_its_best_depth_and_straight_far_off():
    theta = np.array([1e-9, 0.0, FRAME.z, 0.0, -1.5])  # q = 1; the effective size is -p(t)

    def penalty(t):
        return -FORMS["pointed"].model.columns(theta, np.full_like(t, FRAME.x), FRAME.z + t)[:, 1]

    near, far = np.array([0.005, 0.01]), np.array([1.0, 1.5, 2.0])
    np.testing.assert_allclose(penalty(near), near**2, rtol=0.01)
    steps = np.diff(penalty(far))
    np.testing.assert_allclose(steps, steps[0], rtol=1e-3)
    assert np.isfinite(penalty(np.array([-9.0, 9.0]))).all()


def made(count, bump, seed=0):
    rng = np.random.default_rng(seed)
    x, z = rng.uniform(18, 21, count), rng.uniform(1.5, 4.0, count)
    truth = 100.0 - 20.0 * (x - 19.5) + 5.0 * (z - 2.7) ** 2 + bump * np.sin(2.5 * z)
    return x, z, truth, truth + rng.standard_normal(count)


def values(smooth, coefficients, x, z):
    return smooth.form.model.values(np.zeros((*coefficients.shape[:-1], 0)), coefficients, x, z)


@pytest.mark.parametrize("bump", [0.0, 6.0])
def test_draws_hold_the_truth(bump):
    x, z, truth, y = made(60, bump)
    smooth = fit_smooth(Frame.of(x, z), x, z, y, np.ones(60), 20.0, np.zeros((60, 0)))
    inside = (np.abs(z - 2.7) < 1.0) & (np.abs(x - 19.5) < 1.2)
    mean = values(smooth, mean_smooth(smooth), x, z)
    assert np.sqrt(np.mean((mean - truth)[inside] ** 2)) < 0.8
    drawn = values(smooth, draw_smooth(smooth, 400, np.random.default_rng(1)), x, z)
    low, high = np.quantile(drawn, (0.025, 0.975), axis=0)
    assert np.mean((low <= truth) & (truth <= high)) > 0.85
    np.testing.assert_allclose(drawn.mean(axis=0)[inside], mean[inside], atol=0.4)


def test_errors_of_left_out_losses_are_those_of_leaving_out():
    """The closed form of each setting against a fit without the loss."""
    x, z, _, y = made(25, 6.0)
    frame = Frame.of(x, z)
    smooth = fit_smooth(frame, x, z, y, np.ones(25), np.inf, np.zeros((25, 0)))
    assert all(one.sigma2 == 1.0 for one in smooth.settings)  # a known noise has no spread of its own
    assert np.isfinite(draw_smooth(smooth, 10, np.random.default_rng(0))).all()
    setting = smooth.settings[40]
    rest = np.arange(25) != 3
    short = fit_smooth(frame, x[rest], z[rest], y[rest], np.ones(24), np.inf, np.zeros((24, 0))).settings[40]
    design, waves = smooth.design, smooth.waves
    polynomial = short.solve @ y[rest]
    off = y[rest] - design[rest] @ polynomial
    predicted = design[3] @ polynomial
    predicted += waves[3] @ (setting.prior_std**2 * (waves[rest].T @ (short.inverse @ off)))
    assert y[3] - predicted == pytest.approx(setting.left_out_error[3], rel=1e-6)
