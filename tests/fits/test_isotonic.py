"""Monotone regression against SciPy's, and the test of monotony against its own promises."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression

from shapelaw.fits.isotonic import Monotony, isotonic, monotony
from shapelaw.fits.noise import Noise

X = np.array([1.0, 5, 10, 20, 30, 40, 50, 60])

values = st.lists(st.tuples(st.floats(-5, 5), st.floats(0.1, 10)), min_size=1, max_size=12)


@given(values)
@settings(max_examples=60, deadline=None)
def test_isotonic_is_scipys(points):
    y, weights = np.array(points).T
    rows = np.stack([y, -y])
    expected = [isotonic_regression(row, weights=weights).x for row in rows]
    assert isotonic(rows, weights) == pytest.approx(np.array(expected), abs=1e-9)


def experiment(truth, rng, seeds=3, noise=0.02):
    """Means, their errors from an estimated noise, and that noise."""
    runs = truth[:, None] + noise * rng.standard_normal((len(truth), seeds))
    dof = len(truth) * (seeds - 1)
    std = float(np.sqrt(runs.var(axis=1, ddof=1).mean()))
    return runs.mean(axis=1), np.full(len(truth), std / np.sqrt(seeds)), Noise(std, float(dof))


def test_a_plateau_is_called_falling_as_often_as_the_level_says():
    rng = np.random.default_rng(2)
    p_values = [monotony(X, *experiment(np.full(8, 0.5), rng), draws=500).falls_p for _ in range(300)]
    assert 0.02 < np.mean(np.array(p_values) < 0.05) < 0.08
    assert 0.42 < np.mean(np.array(p_values) < 0.5) < 0.58


def test_a_rising_curve_is_never_called_falling_and_a_falling_one_is_found():
    rng = np.random.default_rng(4)
    rising = 1 - np.exp(-X / 15)
    found = [monotony(X, *experiment(rising, rng), draws=500) for _ in range(100)]
    assert all(one.verdict is Monotony.RISING for one in found)
    dented = rising.copy()
    dented[5] -= 0.2
    dents = [monotony(X, *experiment(dented, rng), draws=500) for _ in range(50)]
    assert all(one.verdict is Monotony.FALLING for one in dents)
    assert {(one.fall_from, one.fall_to) for one in dents} == {(30.0, 40.0)}
    drop = dented[4] - dented[5]
    pulls = [(one.largest_fall - drop) / one.largest_fall_err for one in dents]
    assert abs(np.mean(pulls)) < 0.4


def test_flat_unknown_and_single_points_say_so():
    err = np.full(8, 0.01)
    flat = monotony(X, np.full(8, 0.5), err, Noise(0.01, np.inf))
    assert flat.verdict is Monotony.FLAT
    assert flat.largest_fall == 0.0
    assert monotony(X, X, np.full(8, np.nan), None).verdict is Monotony.NO_NOISE
    assert monotony(X[:1], X[:1], err[:1], Noise(0.01, 4.0)).verdict is Monotony.TOO_FEW_POINTS
    again = [monotony(X, -X, err, Noise(0.01, 4.0), seed=3) for _ in range(2)]
    assert again[0] == again[1]
    assert again[0].verdict is Monotony.FALLING
