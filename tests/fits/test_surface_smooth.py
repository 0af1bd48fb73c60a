"""The surface without a form: it follows what no polynomial has, and its draws are as wide as its errors."""

import numpy as np
import pytest

from shapelaw.fits.surface_forms import Frame
from shapelaw.fits.surface_smooth import draw_smooth, fit_smooth, mean_smooth


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
    smooth = fit_smooth(Frame.of(x, z), x, z, y, np.ones(60), 20.0)
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
    smooth = fit_smooth(frame, x, z, y, np.ones(25), np.inf)
    setting = smooth.settings[40]
    rest = np.arange(25) != 3
    short = fit_smooth(frame, x[rest], z[rest], y[rest], np.ones(24), np.inf).settings[40]
    design, waves = smooth.design, smooth.waves
    polynomial = short.solve @ y[rest]
    off = y[rest] - design[rest] @ polynomial
    predicted = design[3] @ polynomial
    predicted += waves[3] @ (setting.prior_std**2 * (waves[rest].T @ (short.inverse @ off)))
    assert y[3] - predicted == pytest.approx(setting.left_out_error[3], rel=1e-6)


def test_a_known_noise_has_no_spread_of_its_own():
    x, z, _, y = made(30, 0.0)
    smooth = fit_smooth(Frame.of(x, z), x, z, y, np.ones(30), np.inf)
    assert all(one.sigma2 == 1.0 for one in smooth.settings)
    assert np.isfinite(draw_smooth(smooth, 10, np.random.default_rng(0))).all()
