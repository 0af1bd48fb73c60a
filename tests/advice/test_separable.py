"""Variable projection: known parameters come back, many data sets at once as one by one, bounds by the prior."""

import numpy as np
import pytest
from scipy.optimize import least_squares

from shapelaw.advice.evidence.separable import Separable, sensitivities, solve

X = np.linspace(0.0, 4.0, 15)
Z = np.zeros(15)


def decays(theta, x, z):
    fast = np.exp(-np.exp(theta[..., 0, None]) * x)
    return np.stack([np.ones_like(fast), fast], axis=-1)


MODEL = Separable(decays, np.array([0.0]), np.array([5.0]))


def test_parameters_of_exact_data_come_back():
    truth = np.array([[-1.0], [0.5], [1.0]])
    coefficients = np.array([[1.0, 2.0], [3.0, -1.0], [0.0, 4.0]])
    y = MODEL.values(truth, coefficients, X, Z)
    found = solve(MODEL, X, Z, y, np.full_like(y, 1e-3), np.zeros((3, 1)))
    np.testing.assert_allclose(found.theta, truth, atol=1e-4)
    np.testing.assert_allclose(found.coefficients, coefficients, atol=1e-3)


def test_it_agrees_with_a_search_over_all_parameters():
    rng = np.random.default_rng(0)
    y = 1.0 + 2.0 * np.exp(-0.7 * X) + 0.02 * rng.standard_normal(15)
    found = solve(MODEL, X, Z, y[None], np.full((1, 15), 0.02), np.zeros((1, 1)))

    def residuals(p):
        return np.append((y - p[0] - p[1] * np.exp(-np.exp(p[2]) * X)) / 0.02, p[2] / 5.0)

    whole = least_squares(residuals, [1.0, 1.0, 0.0], xtol=1e-12, ftol=1e-12)
    assert found.theta[0, 0] == pytest.approx(whole.x[2], abs=1e-3)
    assert found.cost[0] == pytest.approx(2 * whole.cost, abs=1e-3)


def test_sensitivities_are_derivatives():
    theta, coefficients = np.array([0.3]), np.array([1.0, 2.0])
    found = sensitivities(MODEL, X, Z, theta, coefficients)
    rate = np.exp(0.3)
    np.testing.assert_allclose(found[:, 2], -2.0 * rate * X * np.exp(-rate * X), atol=1e-4)
    np.testing.assert_allclose(found[:, :2], decays(theta, X, Z))


def test_what_the_data_say_nothing_of_stays_at_its_prior():
    y = np.ones((1, 15))
    found = solve(MODEL, X, Z, y, np.full_like(y, 0.1), np.array([[2.0]]))
    assert abs(found.theta[0, 0]) < 2.1
    assert found.coefficients[0, 1] == pytest.approx(0.0, abs=1e-6)


def test_a_column_that_is_zero_has_no_share():
    """As that of a half of the shapes may be whose points have no finite error."""
    model = Separable(lambda theta, x, z: decays(theta, x, z) * [1.0, 0.0], MODEL.mean, MODEL.std)
    found = solve(model, X, Z, np.full((1, 15), 2.0), np.where(X < 3.0, 0.1, np.inf)[None], np.zeros((1, 1)))
    np.testing.assert_allclose(found.coefficients, [[2.0, 0.0]])
    assert found.cost == pytest.approx([0.0], abs=1e-6)
