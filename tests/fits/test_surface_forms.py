"""Each form's best depth lies where its formula has it."""

import numpy as np
import pytest

from shapelaw.fits.surface_forms import Frame, surface_forms

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


def test_sizes_that_are_one_need_no_power_of_size():
    narrow = Frame(FRAME.x, FRAME.z, 0.1, FRAME.z_span)
    assert surface_forms(narrow)[-1].linear == 3
    assert FORMS["quadratic"].linear == 6


def test_a_pointed_valley_is_a_parabola_near_its_best_depth_and_straight_far_off():
    theta = np.array([1e-9, 0.0, FRAME.z, 0.0, -1.5])  # q = 1; the effective size is -p(t)

    def penalty(t):
        return -FORMS["pointed"].model.columns(theta, np.full_like(t, FRAME.x), FRAME.z + t)[:, 1]

    near, far = np.array([0.005, 0.01]), np.array([1.0, 1.5, 2.0])
    np.testing.assert_allclose(penalty(near), near**2, rtol=0.01)
    steps = np.diff(penalty(far))
    np.testing.assert_allclose(steps, steps[0], rtol=1e-3)
    assert np.isfinite(penalty(np.array([-9.0, 9.0]))).all()
