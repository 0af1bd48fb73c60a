"""A surface by the average of forms: variable projection, each form, and what their average says of known surfaces."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scattered_shapes import (
    UNLIKE,
    Design,
    best_depths,
    by_aspect,
    draw_shapes,
    one_wall,
    permuted,
    power_law,
    standard_shapes,
    symmetric,
    three_powers,
    true_depth,
)
from scipy.optimize import least_squares

from shapelaw.advice.evidence.separable import Separable, solve
from shapelaw.advice.surface import forms
from shapelaw.advice.surface.answers import best_depth
from shapelaw.advice.surface.average import TOLD, chance_without_depth, fit_surface, halves_of
from shapelaw.fits.noise import Noise
from shapelaw.specs.sizes import SizeAxis

T = np.linspace(0.0, 4.0, 15)
NONE = np.zeros(15)


def decays(theta, x, z):
    fast = np.exp(-np.exp(theta[..., 0, None]) * x)
    return np.stack([np.ones_like(fast), fast], axis=-1)


MODEL = Separable(decays, np.array([0.0]), np.array([5.0]))


def test_parameters_of_exact_data_come_back():
    truth = np.array([[-1.0], [0.5], [1.0]])
    coefficients = np.array([[1.0, 2.0], [3.0, -1.0], [0.0, 4.0]])
    y = MODEL.values(truth, coefficients, T, NONE)
    found = solve(MODEL, T, NONE, y, np.full_like(y, 1e-3), np.zeros((3, 1)))
    np.testing.assert_allclose(found.theta, truth, atol=1e-4)
    np.testing.assert_allclose(found.coefficients, coefficients, atol=1e-3)


def test_it_agrees_with_a_search_over_all_parameters():
    rng = np.random.default_rng(0)
    y = 1.0 + 2.0 * np.exp(-0.7 * T) + 0.02 * rng.standard_normal(15)
    found = solve(MODEL, T, NONE, y[None], np.full((1, 15), 0.02), np.zeros((1, 1)))

    def residuals(p):
        return np.append((y - p[0] - p[1] * np.exp(-np.exp(p[2]) * T)) / 0.02, p[2] / 5.0)

    whole = least_squares(residuals, [1.0, 1.0, 0.0], xtol=1e-12, ftol=1e-12)
    assert found.theta[0, 0] == pytest.approx(whole.x[2], abs=1e-3)
    assert found.cost[0] == pytest.approx(2 * whole.cost, abs=1e-3)


def test_a_column_that_is_zero_has_no_share():
    """As that of a half of the shapes may be whose points have no finite error."""
    model = Separable(lambda theta, x, z: decays(theta, x, z) * [1.0, 0.0], MODEL.mean, MODEL.std)
    found = solve(
        model, T, NONE, np.full((1, 15), 2.0), np.where(T < 3.0, 0.1, np.inf)[None], np.zeros((1, 1))
    )
    np.testing.assert_allclose(found.coefficients, [[2.0, 0.0]])
    assert found.cost == pytest.approx([0.0], abs=1e-6)


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
    shapes = forms.shapes_of(runs, SizeAxis.BLOCK)
    assert shapes.size.tolist() == [12 * 2 * 64, 12 * 4 * 64]
    assert shapes.loss.tolist() == [3.25, 2.0]
    assert shapes.seeds.tolist() == [2.0, 1.0]
    assert forms.shapes_of(runs, SizeAxis.TOTAL).size.tolist() == [9.0, 12.0]


def some(depth, width):
    shapes = standard_shapes(np.array(depth, dtype=float), np.array(width, dtype=float))
    return replace(shapes, loss=3.0 - 0.1 * shapes.x)


@pytest.mark.parametrize(
    ("shapes", "status", "words"),
    [
        (some([2, 4, 8], [64, 64, 64]), forms.SurfaceStatus.TOO_FEW, "3 shapes, and a surface needs 8"),
        (
            some([2] * 5 + [4] * 5, range(64, 224, 16)),
            forms.SurfaceStatus.NOT_IDENTIFIABLE,
            "fewer than three depths",
        ),
        (
            some([2, 3, 4, 6, 8, 12, 16, 24, 32], [32, 48, 64, 96, 128, 192, 256, 384, 512]),
            forms.SurfaceStatus.NOT_IDENTIFIABLE,
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
FRAME = forms.Frame.of(X, Z)
FORMS = {form.name: form for form in forms.surface_forms(FRAME)}


def best(form, theta, x):
    z = np.linspace(0.0, 6.0, 6001)
    losses = form.model.values(np.array(theta), np.array([3.0, -0.2]), np.full_like(z, x), z)
    return z[losses.argmin()]


@pytest.mark.parametrize(
    ("name", "skew"), [("symmetric", ()), ("skewed", (0.9,)), ("two-sided", (-0.8,)), ("pointed", (-1.5,))]
)
def test_best_depth_on_a_line(name, skew):
    for x in (FRAME.x - 1.0, FRAME.x + 1.0):
        expected = 2.7 + 0.4 * (x - FRAME.x)
        assert best(FORMS[name], (0.2, -1.0, 2.7, 0.4, *skew), x) == pytest.approx(expected, abs=2e-3)


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
    smooth = forms.fit_smooth(forms.Frame.of(x, z), x, z, y, np.ones(60), 20.0, np.zeros((60, 0)))
    inside = (np.abs(z - 2.7) < 1.0) & (np.abs(x - 19.5) < 1.2)
    mean = values(smooth, forms.mean_smooth(smooth), x, z)
    assert np.sqrt(np.mean((mean - truth)[inside] ** 2)) < 0.8
    drawn = values(smooth, forms.draw_smooth(smooth, 400, np.random.default_rng(1)), x, z)
    low, high = np.quantile(drawn, (0.025, 0.975), axis=0)
    assert np.mean((low <= truth) & (truth <= high)) > 0.85
    np.testing.assert_allclose(drawn.mean(axis=0)[inside], mean[inside], atol=0.4)


def test_errors_of_left_out_losses_are_those_of_leaving_out():
    """The closed form of each setting against a fit without the loss."""
    x, z, _, y = made(25, 6.0)
    frame = forms.Frame.of(x, z)
    smooth = forms.fit_smooth(frame, x, z, y, np.ones(25), np.inf, np.zeros((25, 0)))
    assert all(one.sigma2 == 1.0 for one in smooth.settings)  # a known noise has no spread of its own
    assert np.isfinite(forms.draw_smooth(smooth, 10, np.random.default_rng(0))).all()
    setting = smooth.settings[40]
    rest = np.arange(25) != 3
    short = forms.fit_smooth(
        frame, x[rest], z[rest], y[rest], np.ones(24), np.inf, np.zeros((24, 0))
    ).settings[40]
    design, waves = smooth.design, smooth.waves
    polynomial = short.solve @ y[rest]
    off = y[rest] - design[rest] @ polynomial
    predicted = design[3] @ polynomial
    predicted += waves[3] @ (setting.prior_std**2 * (waves[rest].T @ (short.inverse @ off)))
    assert y[3] - predicted == pytest.approx(setting.left_out_error[3], rel=1e-6)


def test_a_surface_of_a_fitted_form_comes_back():
    shapes, _ = draw_shapes(symmetric, Design(30, noise=1e-4), 0)
    surface, again = (fit_surface(shapes, None, draws=200, seed=3) for _ in range(2))
    assert surface.usable
    assert best_depth(surface, 3e8) == best_depth(again, 3e8)
    assert sum(one.weight for one in surface.forms) == pytest.approx(1.0)
    assert surface.draws == 200
    assert surface.left_out < 3e-4
    for x in np.quantile(shapes.x, [0.3, 0.5, 0.7]):
        found = best_depth(surface, float(np.exp(x)))
        assert found.status is forms.SurfaceStatus.CONVERGED
        assert found.depth == pytest.approx(true_depth(symmetric, x), rel=0.02)


@pytest.mark.slow
def test_intervals_hold_the_truth_of_surfaces_unlike_the_forms():
    """68% wanted; the benchmark has the table by surface and design."""
    held = []
    for count, surface in product((12, 22, 40), UNLIKE.values()):
        for found, truth in best_depths(surface, Design(count), 150):
            if found.status is forms.SurfaceStatus.CONVERGED:
                held.append(found.low <= truth <= found.high)
    assert len(held) > 50
    assert 0.58 <= np.mean(held) <= 0.78


@pytest.mark.slow
def test_what_all_forms_do_wrong_is_in_the_intervals():
    """With many shapes and little noise the draws' own intervals contained the truth in 11 of 72 of these."""
    held = []
    for surface, seed in product((by_aspect, one_wall), range(6)):
        for found, truth in best_depths(surface, Design(40, noise=0.001), 100, seed):
            held.append(found.low <= truth <= found.high)
    assert 0.5 <= np.mean(held) <= 0.9


def test_halves_of_exact_shapes_agree():
    shapes, _ = draw_shapes(symmetric, Design(30, noise=1e-6), 0)
    surface = fit_surface(shapes, None, draws=20)
    z = np.linspace(np.log(4.0), np.log(60.0), 200)
    assert surface.moves(np.full_like(z, np.log(3e8)), z) == pytest.approx([0.0, 0.0], abs=0.01)
    few = halves_of(replace(shapes, depth=np.where(shapes.z > shapes.z.mean(), 8.0, 4.0)))
    assert few is None  # two depths in each half tell no best one


def test_seed_noise_is_used_and_exceeded_by_residuals():
    shapes, _ = draw_shapes(symmetric, Design(30), 2)
    for noise in (Noise(0.004, math.inf), Noise(0.0004, 20.0)):
        assert fit_surface(shapes, noise, draws=10).scatter == pytest.approx(0.004, rel=0.5)


def test_shapes_of_one_size_are_enough_for_that_size():
    depth = np.array([3, 4, 6, 8, 12, 16, 24, 32, 48, 64], dtype=float)
    shapes = standard_shapes(depth, np.sqrt(3e8 / 12 / depth))
    shapes = replace(shapes, loss=symmetric(shapes.x, shapes.z) + 1e-4 * np.sin(np.arange(10.0)))
    found = best_depth(fit_surface(shapes, None, draws=200), 3e8)
    assert found.status is forms.SurfaceStatus.CONVERGED
    assert found.depth == pytest.approx(16.0, rel=0.05)


def test_levels_of_budgets_change_no_cost():
    """Losses of four numbers of tokens, each with a constant of its own: costs are the same whatever these are."""
    depth = np.tile([3.0, 5.0, 8.0, 13.0, 21.0, 34.0], 4)
    nominal, tokens = np.repeat([2e7, 6e7, 2e8, 6e8], 6), np.repeat([1e9, 2e9, 4e9, 8e9], 6)
    size = nominal * np.tile([0.96, 1.03, 0.99, 1.04, 0.97, 1.01], 4)
    shapes = forms.Shapes(depth, np.sqrt(size / (12.0 * depth)), size, np.zeros(24), np.ones(24), tokens)
    off = 0.001 * np.random.default_rng(0).standard_normal(24)
    losses = symmetric(shapes.x, shapes.z) + off
    surfaces = [
        fit_surface(replace(shapes, loss=losses + step * np.log2(tokens / 1e9)), None, draws=200)
        for step in (0.0, 0.3)
    ]
    first, second = (surface.at_one_level for surface in surfaces)
    assert np.ptp(first - second) < 0.002
    assert (
        np.ptp(first - losses) < 0.06
    )  # of 0.9 between the levels; sizes of one number of tokens hardly differ
    best = [best_depth(surface, 6e7).depth for surface in surfaces]
    assert best[0] == pytest.approx(best[1], rel=0.02)
    assert best[0] == pytest.approx(true_depth(symmetric, np.log(6e7)), rel=0.2)


def test_two_widths_of_many_depths_have_every_form():
    """Log size, log depth and their squares depend on each other there, so that one coefficient is free."""
    depth, width = np.repeat([1.0, 6.0, 8.0, 12.0, 24.0], 2), np.tile([32.0, 432.0], 5)
    shapes = standard_shapes(depth, width)
    loss = 3 + shapes.size**-0.2 + 0.01 * np.random.default_rng(0).standard_normal(10)
    surface = fit_surface(replace(shapes, loss=loss), None, draws=200)
    assert surface.usable
    assert {"quadratic", "smooth"} < {one.form.name for one in surface.forms}
    assert all(np.isfinite([one.weight, one.left_out, one.scatter]).all() for one in surface.forms)


def wide_shapes(loss, seed):
    """Four depths at each of six widths, over 290 times of size."""
    depth, width = (
        grid.ravel() for grid in np.meshgrid([2.0, 4.0, 8.0, 16.0], [128.0, 192, 256, 384, 512, 768])
    )
    shapes = standard_shapes(depth, width)
    off = 0.005 * np.random.default_rng(seed).standard_normal(len(depth))
    return replace(shapes, loss=loss(shapes.x, shapes.z) + off)


def test_the_chance_that_depth_does_nothing():
    """Uniform where it does nothing, over any range of sizes; small where it does something, by a known noise too."""
    two_powers = [lambda x, z: power_law(x) + np.exp(-0.6 * (x - np.log(1e6))), lambda x, z: power_law(x)]
    for design in (lambda law, seed: draw_shapes(law, Design(20), seed)[0], wide_shapes):
        for law in two_powers:
            chances = np.array([chance_without_depth(design(law, seed), None) for seed in range(40)])
            assert 0.3 < np.mean(chances) < 0.7
            assert np.mean(chances < TOLD) <= 0.125
    assert chance_without_depth(draw_shapes(symmetric, Design(20), 0)[0], None) == 0.001
    # a polynomial of the second degree misfits by ten times the noise
    for noise in (None, Noise(0.005, math.inf)):
        assert chance_without_depth(wide_shapes(symmetric, 0), noise) == 0.001
    flat = wide_shapes(lambda x, z: power_law(x), 0)
    assert chance_without_depth(flat, Noise(0.005, math.inf)) > TOLD


def test_depths_that_are_permuted_matter_in_one_table_of_twenty():
    """By an F-test, whose errors are normal, they did in 9%: permuted penalties are skewed."""
    chances = [
        chance_without_depth(permuted(draw_shapes(truth, Design(count), seed)[0], seed), None)
        for truth in (three_powers, symmetric)
        for count in (12, 22)
        for seed in range(75)
    ]
    assert 0.02 < np.mean(np.array(chances) < TOLD) < 0.075
