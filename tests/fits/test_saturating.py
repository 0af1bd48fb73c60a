"""The smooth curves that a knee has to beat: each fits its own kind, none fits a knee, and by how much counts."""

import numpy as np
import pytest

from shapelaw.fits.plateau import Alternative, beaten_by, smooth_alternatives

X = np.array([10.0, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 64])
U = (X - X[0]) / (X[-1] - X[0])
ERR = np.full(12, 0.01)
OF_EACH_FORM = {
    "exponential": 0.7 - 0.4 * np.exp(-U / 0.3),
    "hyperbola": 0.8 - 0.1 / (U + 0.2),
    "logarithm": 0.6 + 0.1 * np.log(U + 0.1),
    "logistic": 0.7 / (1 + np.exp((0.2 - U) / 0.15)),
    "rounded knee": 0.7 - 0.01 * 4 * np.log1p(np.exp((35 - X) / 4)),
}


def gaps(y, knee_chi2, noise_dof=np.inf, x=X, err=ERR):
    return {one.form: one.gap for one in smooth_alternatives(x, y, err, knee_chi2, noise_dof)}


@pytest.mark.parametrize("form", OF_EACH_FORM)
@pytest.mark.parametrize("noise_dof", [np.inf, 24.0])
def test_each_form_fits_its_own_curve(form, noise_dof):
    """Where a knee leaves a chi2 of 200 over 9 degrees of freedom, the right form is better by far."""
    found = gaps(OF_EACH_FORM[form], 200.0, noise_dof)
    assert list(found) == list(OF_EACH_FORM)
    assert found[form] < -50
    assert found[form] < min(found.values()) + 5  # none is clearly better than the true one


def test_no_smooth_form_with_as_many_parameters_fits_a_knee():
    found = gaps(0.7 - 0.015 * np.maximum(35 - X, 0), knee_chi2=0.0)
    assert min(gap for form, gap in found.items() if form != "rounded knee") > 10
    assert 0 < found["rounded knee"] < 10  # a knee is one with a bend of no width, for one parameter more


def test_with_few_observations_the_fourth_parameter_is_left_out():
    y = OF_EACH_FORM["exponential"][:5]
    assert "rounded knee" not in gaps(y, 1.0, noise_dof=0.0, x=X[:5], err=ERR[:5])
    assert "rounded knee" in gaps(y, 1.0, noise_dof=10.0, x=X[:5], err=ERR[:5])


@pytest.mark.parametrize(
    ("found", "beaten"),
    [
        ({"exponential": 3.1, "logistic": 9.0}, None),
        ({"exponential": 2.9, "logistic": 9.0}, "exponential"),
        ({"exponential": 2.9, "logistic": -4.0}, "logistic"),
        ({"exponential": 9.0, "rounded knee": -1.9}, None),
        ({"exponential": 9.0, "rounded knee": -2.1}, "rounded knee"),
        ({}, None),
    ],
)
def test_a_knee_has_to_be_clearly_better_than_every_form(found, beaten):
    best = beaten_by([Alternative(form, gap) for form, gap in found.items()])
    assert (best.form if best else None) == beaten
