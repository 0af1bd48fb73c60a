"""A smoothed loss curve: closer to the truth, with an error it knows, and silent where nothing was measured."""

import numpy as np
import pytest
from loss_surfaces import NOISE, curve_of, grid_of, simulate

from shapelaw.fits.curves import loss_curves
from shapelaw.fits.noise import Noise
from shapelaw.fits.smooth import reaches, smooth_loss, unit


def test_smoothed_losses_are_closer_to_the_truth_and_know_their_error():
    widths = grid_of((6,), 1.5e6, 8e7, 12)
    truth = simulate(widths, {}, noise=0.0, seeds=1)["test_loss"].to_numpy()
    pulls, raw = [], []
    for number in range(100):
        runs = simulate(widths, {}, seed=number, seeds=1).rename(columns={"test_loss": "loss"})
        curve = loss_curves(runs, Noise(NOISE, np.inf))[6]
        loss, err = smooth_loss(curve, curve.size, Noise(NOISE, np.inf))
        pulls.append((loss - truth) / err)
        raw.append(np.std(loss - truth) / NOISE)
    assert np.mean(raw) < 0.7
    assert np.std(pulls) == pytest.approx(1.0, abs=0.15)
    without = loss_curves(runs, None)[6]
    assert smooth_loss(without, without.size, None)[0] == pytest.approx(without.loss, abs=1e-12)


def sizes(*widths):
    """Log sizes of networks of depth 6."""
    return np.log(12 * 6 * np.array(widths, dtype=float) ** 2)


def test_a_curve_reaches_its_range_and_a_tenth_beyond_but_not_into_a_gap():
    # between 150 and 500 sizes grow by a factor of 11
    curve = curve_of(6, [100, 120, 150, 500, 600], [5, 4, 3, 2, 1])
    (first,), (last,) = sizes(100), sizes(600)
    at = np.array([first - 0.11, first - 0.09, *sizes(110, 155, 200, 490, 550), last + 0.09, last + 0.11])
    assert reaches(curve, at).tolist() == [False, True, True, True, False, True, True, True, False]
    loss, err = smooth_loss(curve, np.exp(at), Noise(0.001, np.inf))
    assert (np.isfinite(loss) == reaches(curve, at)).all()
    assert (np.isfinite(err) == reaches(curve, at)).all()


def test_three_sizes_reach_nothing():
    curve = curve_of(6, [100, 120, 150], [3, 2, 1])
    assert not reaches(curve, curve.log_size).any()
    assert np.isnan(smooth_loss(curve, curve.size, Noise(0.001, np.inf))).all()


def test_a_polynomial_loses_nothing_by_smoothing():
    u = unit(sizes(100, 130, 170, 220, 290, 380), sizes(100, 380))
    curve = curve_of(6, [100, 130, 170, 220, 290, 380], 3 - u + 0.3 * u**2 - 0.1 * u**3)
    loss, err = smooth_loss(curve, np.exp(sizes(200)), Noise(1e-6, np.inf))
    at = unit(sizes(200), curve.log_size)
    assert loss == pytest.approx(3 - at + 0.3 * at**2 - 0.1 * at**3, abs=1e-6)
    assert 0 < err[0] < 2e-6


def test_the_unit_scale_ends_at_the_outer_knots():
    assert unit([2.0, 3.0, 6.0, 8.0], np.array([6.0, 2.0])).tolist() == [-1.0, -0.5, 1.0, 2.0]
