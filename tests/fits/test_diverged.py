"""Which runs went wrong: a loss far off its twins, or above both neighbours in size; and that noise alone is none."""

import numpy as np
import pandas as pd
import pytest

from shapelaw.fits.diverged import off_neighbours, off_twins

WIDTHS = (32, 64, 128, 256, 512)


def runs(seeds, noise=lambda width: 0.01, rng=None):
    rng = rng or np.random.default_rng(0)
    rows = [
        (depth, width, seed, 2.0 + 8.0 * (depth * width**2) ** -0.15 + noise(width) * rng.standard_normal())
        for depth in (1, 2, 4)
        for width in WIDTHS
        for seed in range(seeds)
    ]
    return pd.DataFrame(rows, columns=["depth", "width", "seed", "loss"])


@pytest.mark.parametrize("seeds", [2, 3, 5])
@pytest.mark.parametrize("loss", [9.87, 4.5])
def test_one_of_several_seeds_is_off_by_itself(seeds, loss):
    table = runs(seeds)
    table.loc[2 * seeds, "loss"] = loss
    assert table.index[off_twins(table)].tolist() == [2 * seeds]


def test_of_three_seeds_the_two_that_agree_are_right_and_without_agreement_the_lowest():
    table = runs(3)
    table.loc[6, "loss"] = 0.5
    assert table.index[off_twins(table)].tolist() == [6]
    table.loc[[6, 7], "loss"] = [7.1, 9.4]
    assert table.index[off_twins(table)].tolist() == [6, 7]


def test_noise_that_follows_the_width_is_no_divergence():
    rng = np.random.default_rng(1)
    off = [off_twins(runs(3, lambda width: 0.05 * (32 / width) ** 0.75, rng)).sum() for _ in range(40)]
    assert sum(off) <= 2  # of 1,800 runs


def test_above_both_neighbours_at_any_place_of_a_curve_but_the_first():
    for at in (1, 2, 3, 4, 7, 9):
        table = runs(1)
        table.loc[at, "loss"] = 9.87
        above, _ = off_neighbours(table)
        assert table.index[above].tolist() == [at]


def test_smooth_curves_and_noise_have_nothing_above():
    rng = np.random.default_rng(2)
    for noise in (0.0, 0.01, 0.1):
        found = [off_neighbours(runs(1, lambda _, noise=noise: noise, rng)) for _ in range(20)]
        assert sum(above.sum() for above, _ in found) <= 1
        assert sum(out.sum() for _, out in found) <= 6  # of 300 runs
    few = runs(1).iloc[[0, 1, 5, 6]]
    assert not off_neighbours(few)[0].any()
    assert not off_twins(few).any()
