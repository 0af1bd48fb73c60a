"""Pooled seed noise and the significance threshold."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shapelaw.errors import UserError
from shapelaw.fits.noise import (
    Noise,
    group_means,
    group_noise,
    pooled_noise,
    seed_table,
)

GROUPED = pd.DataFrame(
    {
        "width": [8, 8, 8, 16, 16, 32],
        "rank": [4.0, 4.0, None, 4.0, 4.0, 4.0],
        "seed": [0, 1, 0, 0, 1, 0],
        "loss": [1.0, 3.0, 5.0, 2.0, 4.0, 9.0],
        "size": [80, 80, 81, 160, 160, 320],
    }
)


def runs_of(groups):
    rows = [(6, 64 + k, s, loss) for k, losses in enumerate(groups) for s, loss in enumerate(losses)]
    return pd.DataFrame(rows, columns=["depth", "width", "seed", "loss"])


def test_pooling_weighs_by_degrees_of_freedom():
    noise = pooled_noise(runs_of([[1.0, 1.2], [2.0, 2.1, 2.2, 2.3], [5.0]]))
    expected = (1 * np.var([1.0, 1.2], ddof=1) + 3 * np.var([2.0, 2.1, 2.2, 2.3], ddof=1)) / 4
    assert noise is not None
    assert noise.std == pytest.approx(math.sqrt(expected))
    assert noise.dof == 4


@given(st.lists(st.lists(st.floats(1, 5), min_size=2, max_size=4), min_size=1, max_size=4), st.floats(-3, 3))
@settings(max_examples=50, deadline=None)
def test_a_level_per_shape_does_not_matter(groups, shift):
    if max(np.ptp(g) for g in groups) < 1e-3:
        return
    moved = [[x + shift * k for x in g] for k, g in enumerate(groups)]
    assert pooled_noise(runs_of(moved)).std == pytest.approx(pooled_noise(runs_of(groups)).std, rel=1e-6)


def test_no_repeats_no_noise():
    assert pooled_noise(runs_of([[1.0], [2.0]])) is None
    assert seed_table(runs_of([[1.0], [2.0, 3.0]]))["seeds"].tolist() == [1, 2]


def test_seeds_that_change_nothing_are_refused():
    with pytest.raises(UserError, match="exactly equal losses"):
        pooled_noise(runs_of([[1.0, 1.0]]))


def test_threshold_is_students():
    assert Noise(1.0, math.inf).threshold(0.95) == pytest.approx(1.959964, abs=1e-6)
    assert Noise(1.0, 4.0).threshold(0.95) == pytest.approx(2.776445, abs=1e-6)


def test_a_missing_rank_is_a_group_of_its_own() -> None:
    means = group_means(GROUPED, ["width", "rank"], ["size"])
    assert means["loss"].tolist() == [2.0, 5.0, 3.0, 9.0]
    assert means["seeds"].tolist() == [2, 1, 2, 1]
    assert means["size"].tolist() == [80, 81, 160, 320]


def test_the_noise_is_pooled_over_repeated_groups() -> None:
    noise = group_noise(group_means(GROUPED, ["width", "rank"]))
    assert noise is not None
    assert (noise.std, noise.dof) == (pytest.approx(math.sqrt(2.0)), 2.0)
    assert group_noise(group_means(GROUPED, ["width", "rank", "seed"])) is None
    with pytest.raises(UserError, match="exactly equal losses"):
        group_noise(group_means(GROUPED.assign(loss=1.0), ["width", "rank"]))
