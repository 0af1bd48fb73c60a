"""The scatter of shapes about their curve: seed noise alone, a shape's own deviation, and single shapes far off."""

import numpy as np
import pytest

from shapelaw.fits.scatter import GRID_OF_T, least, outlying, scatter_about

X = np.linspace(-1, 1, 24)
LINE = np.stack([np.ones_like(X), X], axis=1)


def deviations(size, seeds, seed=0):
    """Mean losses about a line, in units of the seed noise, where a shape's own deviation has that size."""
    rng = np.random.default_rng(seed)
    return 3 + 2 * X + rng.standard_normal(24) * np.sqrt(1 / seeds + size**2)


@pytest.mark.parametrize("dof", [np.inf, 12.0])
@pytest.mark.parametrize("size", [0.0, 2.0, 8.0])
def test_the_scatter_of_a_single_run_is_found(size, dof):
    """The median over 40 data sets is within 15% of the true sqrt(1 + t^2)."""
    seeds = np.where(np.arange(24) % 3, 1.0, 3.0)
    scales = [scatter_about(LINE, deviations(size, seeds, number), seeds, dof).scale for number in range(40)]
    assert np.median(scales) == pytest.approx(np.hypot(1, size), rel=0.15)


def test_repeated_seeds_average_out_seed_noise_and_nothing_else():
    quiet = scatter_about(LINE, 3 + 2 * X, np.ones(24), np.inf)  # on the line: seed noise alone explains it
    assert quiet.std(4) / quiet.std(1) == pytest.approx(0.5, abs=0.05)
    rough = scatter_about(LINE, deviations(30, np.ones(24)), np.ones(24), np.inf)
    assert rough.std(4) / rough.std(1) == pytest.approx(1, abs=0.01)
    assert quiet.weight.sum() == pytest.approx(1)
    assert GRID_OF_T[rough.weight.argmax()] > 10 > 1 > GRID_OF_T[quiet.weight.argmax()]


def test_draws_come_from_the_posterior():
    seeds = np.where(np.arange(24) < 12, 1.0, 9.0)
    found = scatter_about(LINE, deviations(1.0, seeds), seeds, 12.0)
    drawn = found.draw(4000, np.random.default_rng(0))
    assert drawn.shape == (4000, 24)
    assert np.median(drawn[:, 0]) == pytest.approx(float(found.std(1)), rel=0.1)
    assert np.median(drawn[:, -1]) == pytest.approx(float(found.std(9)), rel=0.1)
    assert (drawn[:, 0] > drawn[:, -1]).all()


@pytest.mark.parametrize(("place", "off"), [(5, 20.0), (17, -20.0)])
def test_a_shape_far_off_is_named_with_its_sign(place, off):
    y = deviations(0.0, np.ones(24))
    assert outlying(LINE, y, np.ones(24), np.inf) == []
    y[place] += off
    ((named, pull),) = outlying(LINE, y, np.ones(24), 30.0)
    assert named == place
    assert 10 < pull / np.sign(off) < 40


def test_of_four_points_on_a_line_none_can_be_called_far_off():
    y = 3 + 2 * X[:4]
    y[3] += 1e6
    assert outlying(LINE[:4], y, np.ones(4), np.inf) == []


def test_the_least_design_has_the_order_of_the_curve():
    designs = [np.stack([X**power for power in range(order + 1)], axis=1) for order in range(5)]
    rng = np.random.default_rng(1)
    chosen = [
        least(designs, 3 + 2 * X - 9 * X**2 + rng.standard_normal(24), np.ones(24), np.inf)[0]
        for _ in range(20)
    ]
    assert chosen.count(2) >= 15
    assert min(chosen) == 2
