"""The difference of two loss curves and the crossings of its draws, on curves whose crossing is known."""

import numpy as np
import pytest
from loss_surfaces import grid_of, simulate

from shapelaw.fits.crossing_draws import GRID, draw_crossings
from shapelaw.fits.curves import loss_curves, shared_range
from shapelaw.fits.noise import Noise

WIDTHS = grid_of((6, 12), 1.5e6, 8e7, 10)
TRUE = np.log(12 * 6 * 360.0**2)


def drawn(runs, noise, draws=300):
    shallow, deep = loss_curves(runs.rename(columns={"test_loss": "loss"}), noise).values()
    span = shared_range(shallow, deep)
    return draw_crossings(shallow, deep, noise, span, 8, draws, np.random.default_rng(0))


def shifted(by):
    """Runs of which the deeper network's loss is off by that much."""
    runs = simulate(WIDTHS, {6: 360.0}, noise=0.0005)
    runs.loc[runs["depth"] == 12, "test_loss"] += by
    return runs


def test_the_crossing_of_clean_curves_is_the_true_one():
    found = drawn(simulate(WIDTHS, {6: 360.0}, noise=1e-5), Noise(1e-5, np.inf))
    assert found.crossing == pytest.approx(TRUE, abs=0.01)
    assert np.abs(found.crossings - TRUE).max() < 0.05
    assert (found.share_below, found.share_above, found.outliers) == (0, 0, ())
    assert found.log_size.shape == found.difference.shape == found.signs.shape == (GRID,)
    assert (found.low <= found.difference).all()
    assert (found.difference <= found.high).all()
    left = found.log_size < TRUE
    assert (found.difference[left][:-1] > 0).all()  # the deeper one is worse there
    assert (found.difference[~left][1:] < 0).all()
    assert found.signs[[0, -1]].tolist() == [1, -1]


def test_curves_that_do_not_cross_cross_at_an_end_of_the_range():
    worse, better = drawn(shifted(0.1), Noise(0.0005, np.inf)), drawn(shifted(-0.1), Noise(0.0005, np.inf))
    assert (worse.share_above, better.share_below) == (1, 1)
    assert (worse.crossings == worse.log_size[-1]).all()
    assert (better.crossings == better.log_size[0]).all()
    assert (set(worse.signs), set(better.signs)) == ({1}, {-1})


def test_twice_the_noise_spreads_the_crossings_twice_as_far():
    spreads = [
        np.std(drawn(simulate(WIDTHS, {6: 360.0}, noise=noise, seed=3), Noise(noise, np.inf)).crossings)
        for noise in (0.0002, 0.0004)
    ]
    assert spreads[1] / spreads[0] == pytest.approx(2, rel=0.3)


def test_a_shape_far_off_its_curve_is_named_with_its_sign():
    runs = simulate(WIDTHS, {6: 360.0}, noise=0.0005)
    width = WIDTHS[12][5]
    runs.loc[(runs["depth"] == 12) & (runs["width"] == width), "test_loss"] -= 0.01
    ((depth, named, pull),) = drawn(runs, Noise(0.0005, np.inf)).outliers
    assert (depth, named) == (12, width)
    assert pull < -10
