"""Redundancy against a known truth."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapelaw.fits.noise import Noise
from shapelaw.fits.redundancy import (
    Baseline,
    Needed,
    RedundancyStatus,
    needed_rank,
    redundancy,
)

SIZES = np.geomspace(40e6, 75e6, 7)
NOISE = Noise(0.002, math.inf)


def law(size: float | np.ndarray) -> np.ndarray:
    """A loss that falls with size as those of the paper's baselines do."""
    return np.asarray(2.5 + 8.0 * np.asarray(size) ** -0.12)


def baseline(noise: float = 0.0, seeds: int = 1, rng: np.random.Generator | None = None) -> Baseline:
    error = 0.0 if rng is None else noise * rng.standard_normal(len(SIZES)) / math.sqrt(seeds)
    return Baseline(SIZES, law(SIZES) + error, np.full(len(SIZES), float(seeds)))


@given(st.floats(0.03, 0.4))
def test_the_redundancy_of_a_network_with_the_loss_of_a_smaller_one_is_found(truth: float) -> None:
    found = redundancy(baseline(), 70e6, float(law(70e6 * (1 - truth))), 1.0, NOISE)
    assert found.status is RedundancyStatus.MEASURED
    assert found.value == pytest.approx(truth, abs=0.002)
    assert found.low <= found.value <= found.high


def test_the_paper_s_25_percent() -> None:
    """Rank 16 of width 680, about 70M parameters (vocabulary paper, section 5.1)."""
    found = redundancy(baseline(), 70e6, float(law(0.75 * 70e6)), 5.0, Noise(0.0005, 8.0))
    assert found.value == pytest.approx(0.25, abs=0.003)
    assert found.significant


@pytest.mark.parametrize("seeds", [1, 3])
def test_intervals_cover_the_truth(seeds: int) -> None:
    rng, truth, hits = np.random.default_rng(0), 0.2, []
    for draw in range(200):
        loss = float(law(70e6 * (1 - truth))) + 0.002 * rng.standard_normal() / math.sqrt(seeds)
        found = redundancy(baseline(0.002, seeds, rng), 70e6, loss, float(seeds), NOISE, seed=draw)
        hits.append(found.low <= truth <= found.high)
    assert 0.58 <= np.mean(hits) <= 0.80


def test_the_noise_of_the_noise_widens_the_interval() -> None:
    loss = float(law(56e6))
    sure = redundancy(baseline(), 70e6, loss, 1.0, NOISE)
    unsure = redundancy(baseline(), 70e6, loss, 1.0, Noise(NOISE.std, 2.0))
    assert unsure.high - unsure.low > 1.1 * (sure.high - sure.low)


def test_a_loss_outside_the_baseline_is_a_bound() -> None:
    worse = redundancy(baseline(), 70e6, float(law(20e6)), 1.0, NOISE)
    assert worse.status is RedundancyStatus.AT_LEAST
    assert worse.value == pytest.approx(1 - 40 / 70)
    assert worse.significant
    assert worse.high == 1.0
    better = redundancy(baseline(), 70e6, float(law(200e6)), 1.0, NOISE)
    assert better.status is RedundancyStatus.AT_MOST
    assert better.value == pytest.approx(1 - 75 / 70)
    assert not better.significant


def test_without_noise_or_points_it_is_said() -> None:
    assert redundancy(baseline(), 70e6, float(law(60e6)), 1.0, None).status is RedundancyStatus.NO_NOISE
    one = Baseline(SIZES[:1], law(SIZES[:1]), np.ones(1))
    assert redundancy(one, 70e6, 3.0, 1.0, NOISE).status is RedundancyStatus.TOO_FEW_POINTS


def test_a_baseline_that_rises_by_chance_is_made_monotone() -> None:
    loss = law(SIZES)
    loss[3] += 0.05
    found = redundancy(Baseline(SIZES, loss, np.ones(7)), 70e6, float(law(62e6)), 1.0, NOISE)
    assert 0.0 < found.value < 0.3


def test_the_rank_from_which_nothing_is_lost() -> None:
    """Positional rank 16 is as good as full (figure 7): losses fall and then stay."""
    ranks, full = (1, 2, 4, 8, 16, 32), (3.0, 3.0)
    losses = np.array([3.2, 3.1, 3.05, 3.02, 3.001, 2.999])
    assert needed_rank(ranks, losses, np.full(6, 3.0), full, Noise(0.003, 12.0)) == Needed(16, 8)
    assert needed_rank(ranks, losses, np.full(6, 3.0), full, Noise(1.0, 12.0)) == Needed(1, None)
    few = needed_rank(ranks, losses, np.full(6, 3.0), full, Noise(0.003, 12.0))
    assert few.unseen == pytest.approx(
        Noise(0.003, 12.0).threshold() * 0.003 * math.sqrt(1 / 3 + 1 / full[1])
    )
    assert needed_rank(ranks, losses + 1, np.full(6, 3.0), full, Noise(0.003, 12.0)) == Needed(None, 32)
