"""Capacity: the most examples that a network memorizes to 99%, and the fewest heads that memorize 99% of T examples."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy import stats  # type: ignore[import-untyped]

from shapelaw.fits.isotonic import isotonic
from shapelaw.fits.line import Floats
from shapelaw.fits.memorized import EQUAL, MEMORIZED, MemorizationCurve

INTERVAL = (0.16, 0.84)


class CapacityStatus(StrEnum):
    """The outcome of a search for a capacity: found or bounded."""

    FOUND = "found"
    AT_LEAST = "at least"
    BELOW = "below"


@dataclass(frozen=True)
class Capacity:
    """`size` is T, or H, at 99%, interpolated; `low` and `high` bound an interval of at least 68% probability.

    `memorized` and `not_memorized` are the trained sizes on either side. The interval always spans both, since nothing
    is known of the curve between them; with one seed it ends there and leaves out seed noise. An end is NaN where it
    leaves the trained sizes. For "at least" and "below" `size` is the largest or the smallest trained size, a bound.
    """

    size: float
    low: float
    high: float
    memorized: float
    not_memorized: float
    status: CapacityStatus


def capacity(
    curve: MemorizationCurve, level: float = MEMORIZED, *, draws: int = 2000, seed: int = 0
) -> Capacity:
    """T at which the mean share over seeds falls below `level`, linear in T between neighbours.

    The means are made non-increasing in T first (`isotonic`), so that noise leaves one crossing. The interval is a
    bootstrap over seeds: a draw takes whole seeds with replacement, for all T at once, since seeds may share data
    between T. Such draws of few seeds spread too little, so their deviations are widened by sqrt(S / (S - 1)) and by
    Student's quantile with S - 1 degrees of freedom over the normal one. Each draw gives the trained T on either side
    of the crossing: `low` is the 16% quantile of the lower ones, `high` the 84% quantile of the upper ones.

    On simulated seeds whose capacities differ by 6% (200 experiments each; T in even steps, doubling, five uneven ones)
    the interval held the truth in 94 to 100%: more than 68%, as nothing is known of the curve between two T.

    Raises:
        ValueError: the curve is not one along T.
    """
    if curve.along != "examples":
        raise ValueError(f"a capacity needs a curve along examples, not {curve.along}")
    return _size_at(curve.x, curve.shares, level, draws, seed)


def heads_needed(
    curve: MemorizationCurve, level: float = MEMORIZED, *, draws: int = 2000, seed: int = 0
) -> Capacity:
    """H from which the mean share of the curve's T over seeds reaches `level`, by the same rule as `capacity`.

    "at least": no trained H reaches the level; "below": every one does.

    Raises:
        ValueError: the curve is not one along H.
    """
    if curve.along != "heads":
        raise ValueError(f"the heads needed need a curve along heads, not {curve.along}")
    found = _size_at(-curve.x[::-1], curve.shares[::-1], level, draws, seed)
    turned = {
        CapacityStatus.AT_LEAST: CapacityStatus.BELOW,
        CapacityStatus.BELOW: CapacityStatus.AT_LEAST,
        CapacityStatus.FOUND: CapacityStatus.FOUND,
    }
    return Capacity(
        -found.size, -found.high, -found.low, -found.memorized, -found.not_memorized, turned[found.status]
    )


def _size_at(x: Floats, shares: Floats, level: float, draws: int, seed: int) -> Capacity:
    """The x, of (n,), at which (n, s) shares, one column a seed and NaN where one is missing, fall below the level."""
    there = np.isfinite(shares)
    seeds = there.sum(axis=1).astype(np.float64)
    mean: Floats = np.asarray(np.nanmean(shares, axis=1), dtype=np.float64)
    left = int(_reached(mean[None, :], seeds, level)[1][0])
    if left == len(x) - 1:
        return Capacity(float(x[-1]), np.nan, np.nan, float(x[-1]), np.nan, CapacityStatus.AT_LEAST)
    if left < 0:
        return Capacity(float(x[0]), np.nan, np.nan, np.nan, float(x[0]), CapacityStatus.BELOW)
    above, below = _reached(mean[None, :], seeds, level)[0][0, left : left + 2]
    point = float(x[left] + (x[left + 1] - x[left]) * (above - level) / (above - below))
    lefts = np.array([left]) if seeds.min() < 2 else _drawn(shares, mean, seeds, level, draws, seed)
    lowest, highest = (int(np.quantile(lefts, q, method="inverted_cdf")) for q in INTERVAL)
    low = float(x[min(lowest, left)]) if lowest >= 0 else np.nan
    high = float(x[max(highest, left) + 1]) if highest < len(x) - 1 else np.nan
    return Capacity(point, low, high, float(x[left]), float(x[left + 1]), CapacityStatus.FOUND)


def _drawn(shares: Floats, mean: Floats, seeds: Floats, level: float, draws: int, seed: int) -> Floats:
    """(draws,) the index of the last x that is memorized in each draw of seeds; -1 for none."""
    count, least = shares.shape[1], float(seeds.min())
    rng = np.random.default_rng(seed)
    times = rng.multinomial(count, np.full(count, 1.0 / count), size=draws).astype(np.float64)
    mass = times @ np.isfinite(shares).astype(np.float64).T
    total = times @ np.nan_to_num(shares).T
    drawn = np.where(mass > 0, total / np.maximum(mass, 1.0), mean)
    student = float(stats.t.ppf(INTERVAL[1], least - 1) / stats.norm.ppf(INTERVAL[1]))
    widened = mean + np.sqrt(least / (least - 1)) * student * (drawn - mean)
    return _reached(np.minimum(widened, 1.0), seeds, level)[1]


def _reached(shares: Floats, seeds: Floats, level: float) -> tuple[Floats, Floats]:
    """(m, n) shares made non-increasing, and (m,) the index of the last one of each row that reaches the level."""
    falling = -isotonic(-shares, seeds)
    return falling, np.asarray((falling >= level - EQUAL).sum(axis=1) - 1)
