"""The exponent of the share in H: recovered, with an interval that holds, and honest with one seed."""

import numpy as np
import pytest

from shapelaw.fits.growth import MISFIT, SEED_NOISE, fit_growth
from shapelaw.fits.line import FitStatus
from shapelaw.fits.memorized import MemorizationCurve

HEADS = np.array([5.0, 10, 20, 30, 40, 50])
ALL = np.ones(6, dtype=np.bool_)


def curve_of(shares):
    return MemorizationCurve(
        "classification", "shared", 64, "", "heads", None, 32, 64, 40000, HEADS, np.atleast_2d(shares.T).T
    )


def power_law(exponent, rng, noise, seeds):
    share = 0.8 * (HEADS / 50) ** exponent
    return share[:, None] + noise * (share * (1 - share))[:, None] * rng.standard_normal((6, seeds))


@pytest.mark.parametrize("exponent", [0.8, 1.0, 1.4])
def test_an_exact_exponent_is_found(exponent):
    found = fit_growth(curve_of(0.8 * (HEADS / 50) ** exponent), ALL)
    assert found.exponent == pytest.approx(exponent, abs=1e-6)
    assert found.err < 1e-6


@pytest.mark.parametrize("seeds", [2, 4])
def test_calibration(seeds):
    """200 experiments: the 68% interval holds the truth in 58 to 80%."""
    rng, inside = np.random.default_rng(seeds), []
    for _ in range(200):
        exponent = float(rng.uniform(1.1, 1.6))
        found = fit_growth(curve_of(power_law(exponent, rng, 0.15, seeds)), ALL)
        assert found.status is FitStatus.CONVERGED
        inside.append(found.low <= exponent <= found.high)
    assert 0.58 <= np.mean(inside) <= 0.80


def test_with_one_seed_the_error_is_the_misfit():
    rng = np.random.default_rng(0)
    one = fit_growth(curve_of(power_law(1.4, rng, 0.1, 1)), ALL)
    assert one.errors == MISFIT
    assert (
        one.message
        == "6 points; one seed: an interval from the misfit, which holds the truth less often than 68%"
    )
    assert 0 < one.err < 0.3
    several = fit_growth(curve_of(power_law(1.4, rng, 0.1, 3)), ALL)
    assert several.errors == SEED_NOISE


def test_two_points_have_no_exponent():
    found = fit_growth(curve_of(0.01 * HEADS), np.arange(6) < 2)
    assert found.status is FitStatus.TOO_FEW_POINTS
    assert "2 points" in found.message
    assert np.isnan(found.exponent)
