"""Pooled seed noise, the significance threshold, and the scatter of shapes about their curve."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shapelaw.errors import UserError
from shapelaw.fits.noise import (
    GRID_OF_T,
    LEAST_DOF,
    Noise,
    WidthNoise,
    chance_words,
    group_means,
    group_noise,
    least,
    outlying,
    pooled_noise,
    scatter_about,
    seed_table,
    width_noise,
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


def test_no_repeats_are_no_noise_and_equal_ones_are_refused():
    assert pooled_noise(runs_of([[1.0], [2.0]])) is None
    assert seed_table(runs_of([[1.0], [2.0, 3.0]]))["seeds"].tolist() == [1, 2]
    with pytest.raises(UserError, match="exactly equal losses"):
        pooled_noise(runs_of([[1.0, 1.0]]))


def test_threshold_is_students():
    assert Noise(1.0, math.inf).threshold() == pytest.approx(1.959964, abs=1e-6)
    assert Noise(1.0, 4.0).threshold() == pytest.approx(2.776445, abs=1e-6)


def test_a_missing_rank_is_a_group_of_its_own() -> None:
    means = group_means(GROUPED, ["width", "rank"], ["size"])
    assert means["loss"].tolist() == [2.0, 5.0, 3.0, 9.0]
    assert means["seeds"].tolist() == [2, 1, 2, 1]
    assert means["size"].tolist() == [80, 81, 160, 320]
    noise = group_noise(group_means(GROUPED, ["width", "rank"]))
    assert noise is not None
    assert (noise.std, noise.dof) == (pytest.approx(math.sqrt(2.0)), 2.0)


WIDTHS = np.geomspace(16.0, 512.0, 6)


def repeats(slope: float, seeds: int, number: int, spread: float = 0.01) -> pd.DataFrame:
    """Runs of six widths whose noise is `spread` at width 64 and follows the width by a power."""
    rng = np.random.default_rng(number)
    noise = spread * (WIDTHS / 64.0) ** slope
    losses = 2.0 + noise[:, None] * rng.standard_normal((len(WIDTHS), seeds))
    rows = [(2, w, s, x) for w, row in zip(WIDTHS, losses, strict=True) for s, x in enumerate(row)]
    return pd.DataFrame(rows, columns=["depth", "width", "seed", "loss"])


def by_width(slope: float = -0.8, seeds: int = 12, number: int = 0) -> WidthNoise:
    noise = pooled_noise(repeats(slope, seeds, number))
    assert isinstance(noise, WidthNoise)
    return noise


@given(st.floats(0.4, 1.5), st.sampled_from([-1.0, 1.0]), st.integers(0, 10**6))
@settings(max_examples=15)
def test_many_seeds_show_how_the_noise_follows_the_width(size: float, sign: float, number: int) -> None:
    noise = by_width(sign * size, 60, number)
    assert abs(noise.slope - sign * size) < 4.5 * noise.slope_err < 0.35
    off = np.log(noise.at(WIDTHS) / (0.01 * (WIDTHS / 64.0) ** (sign * size)))
    assert (np.abs(off) < 4.5 * np.sqrt(0.5 / noise.dof_at(WIDTHS))).all()


@given(st.floats(1e-4, 10.0), st.integers(2, 20), st.integers(2, 12))
@settings(max_examples=15)
def test_equal_spreads_are_one_number(spread: float, seeds: int, shapes: int) -> None:
    width = np.geomspace(8.0, 1024.0, shapes)
    assert width_noise(width, np.full(shapes, spread), np.full(shapes, seeds - 1.0)) is None
    one_width = np.random.default_rng(0).uniform(0.1, 2.0, 20)
    assert width_noise(np.full(20, 64.0), one_width, np.full(20, 2.0)) is None


@given(st.lists(st.floats(1e-6, 1.0), min_size=2, max_size=LEAST_DOF - 1))
@settings(max_examples=15)
def test_few_seeds_are_one_number(spreads: list[float]) -> None:
    pairs = runs_of([[1.0, 1.0 + spread] for spread in spreads])
    noise = pooled_noise(pairs)
    assert noise == pooled_noise(pairs, by_width=False)
    assert type(noise) is Noise


def test_a_slope_is_rarely_found_where_there_is_none() -> None:
    spreads = np.sqrt(np.random.default_rng(0).chisquare(3.0, (500, len(WIDTHS))) / 3.0)
    found = [width_noise(WIDTHS, spread, np.full(len(WIDTHS), 3.0)) is not None for spread in spreads]
    assert np.mean(found) < 0.07


def test_noise_far_from_the_middle_is_known_worse() -> None:
    noise = by_width(-1.0, 3, 2)
    dof = noise.dof_at(np.array([noise.middle, *WIDTHS]))
    assert dof[0] == pytest.approx(noise.dof)
    assert (dof[1:] < noise.dof).all()
    assert noise.dof < 12
    assert (noise.threshold_at(WIDTHS) > noise.threshold()).all()
    assert noise.threshold_at(noise.middle, 512.0) == noise.threshold_at(512.0)


def test_runs_of_the_pooled_noise_are_as_noisy() -> None:
    noise, seeds = by_width(), np.array([1.0, 2, 3, 1, 1, 4])
    assert noise.std / np.sqrt(noise.runs_at(WIDTHS, seeds)) == pytest.approx(
        noise.at(WIDTHS) / np.sqrt(seeds)
    )
    assert noise.std == pooled_noise(repeats(-0.8, 12, 0), by_width=False).std
    tilts = noise.drawn_tilts(WIDTHS, 20000, np.random.default_rng(0))
    log_tilts = np.log(tilts).std(axis=0)
    assert log_tilts == pytest.approx(2.0 * noise.slope_err * np.abs(np.log(WIDTHS / noise.middle)), rel=0.03)


def test_a_chance_in_words():
    assert chance_words(0.0471) == "p = 0.047"
    assert chance_words(1.0) == "p = 1"
    assert chance_words(3.5e-102) == "p < 0.001"


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
def test_a_shape_far_off_is_named_with_its_sign_unless_points_are_few(place, off):
    y = deviations(0.0, np.ones(24))
    assert outlying(LINE, y, np.ones(24), np.inf) == []
    y[place] += off
    ((named, pull),) = outlying(LINE, y, np.ones(24), 30.0)
    assert named == place
    assert 10 < pull / np.sign(off) < 40
    four = 3 + 2 * X[:4] + np.array([0.0, 0.0, 0.0, 1e6])
    assert outlying(LINE[:4], four, np.ones(4), np.inf) == []


def test_the_least_design_has_the_order_of_the_curve():
    designs = [np.stack([X**power for power in range(order + 1)], axis=1) for order in range(5)]
    rng = np.random.default_rng(1)
    chosen = [
        least(designs, 3 + 2 * X - 9 * X**2 + rng.standard_normal(24), np.ones(24), np.inf)[0]
        for _ in range(20)
    ]
    assert chosen.count(2) >= 15
    assert min(chosen) == 2
