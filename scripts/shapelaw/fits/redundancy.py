"""The parameters that a bottleneck wastes, by the size of the network without it that reaches the same loss.

Wies et al. 2021, sections 5.1 and 5.3: a network of rank r/d = 16/680 and 70M parameters does as well as a network of
full rank that is 25% smaller. The paper reads that off its figures; here a curve that never rises with size
interpolates the baseline's losses, and the noise of all losses is carried through.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from shapelaw.fits.noise import INTERVAL, Floats, Noise
from shapelaw.fits.significance import isotonic

DRAWS = 2000
_SLOPE = 1e-12  # slope of a flat part of the curve, so that it has an inverse


class RedundancyStatus(StrEnum):
    """The outcome of a comparison: a measured redundancy, or a bound."""

    MEASURED = "measured"
    AT_LEAST = "at least"  # the smallest baseline is better
    AT_MOST = "at most"  # the largest baseline is worse
    NO_NOISE = "no noise estimate"
    TOO_FEW_POINTS = "too few points"


@dataclass(frozen=True)
class Baseline:
    """Networks without the bottleneck, by size.

    Attributes:
        size: (n,) parameters, growing.
        loss: (n,) means over seeds.
        seeds: (n,) numbers of runs, or of as noisy ones (`Noise.runs_at`).
    """

    size: Floats
    loss: Floats
    seeds: Floats


@dataclass(frozen=True)
class Redundancy:
    """1 - (size of the baseline of equal loss) / (size of the network); negative where the network is better.

    Attributes:
        value: from the mean losses; the bound where `status` is a bound, NaN where there is neither.
        low, high: the 68% interval; -inf or 1 where the draws leave the baseline's sizes on that side.
        p_value: the chance of a redundancy of zero or less; NaN without noise.
        status: whether the value is measured or a bound.
    """

    value: float
    low: float
    high: float
    p_value: float
    status: RedundancyStatus

    @property
    def significant(self) -> bool:
        """True if the redundancy is above zero at 95% confidence, two-sided."""
        return self.p_value < 0.025

    def agrees(self, low: float, high: float) -> bool | None:
        """True if the interval overlaps that of a number from elsewhere, or a bound lies on its side; None if open."""
        if self.status is RedundancyStatus.MEASURED:
            return self.low <= high and low <= self.high
        if self.status is RedundancyStatus.AT_LEAST:
            return self.value <= high
        return False if self.status is RedundancyStatus.AT_MOST and self.value < low else None


def redundancy(
    baseline: Baseline, size: float, loss: float, seeds: float, noise: Noise | None, seed: int = 0
) -> Redundancy:
    """The redundancy of a network of some size and mean loss.

    Args:
        baseline: networks of at least two sizes.
        size, loss, seeds: the network's size, mean loss and number of runs.
        noise: noise of one run's loss; its own uncertainty is drawn too.
        seed: seed of the draws.
    """
    if noise is None or len(baseline.size) < 2:
        return redundancy_of_draws(baseline, size, loss, None)
    rng = np.random.default_rng(seed)
    std = noise.drawn_std(DRAWS, rng)
    losses = baseline.loss + std * rng.standard_normal((DRAWS, len(baseline.loss))) / np.sqrt(baseline.seeds)
    mine = loss + std[:, 0] * rng.standard_normal(DRAWS) / math.sqrt(seeds)
    return redundancy_of_draws(baseline, size, loss, (losses, mine))


def redundancy_of_draws(
    baseline: Baseline, size: float, loss: float, drawn: tuple[Floats, Floats] | None
) -> Redundancy:
    """The redundancy of a network where draws of the losses stand for their noise.

    Args:
        baseline: networks of at least two sizes.
        size, loss: the network's size and mean loss.
        drawn: (m, n) losses of the baseline and (m,) losses of the network; None without a noise estimate.
    """
    if len(baseline.size) < 2:
        nan = math.nan
        return Redundancy(nan, nan, nan, nan, RedundancyStatus.TOO_FEW_POINTS)
    equal = float(equal_sizes(baseline, baseline.loss[None], np.array([loss]))[0])
    ends = float(baseline.size[0]), float(baseline.size[-1])
    value = 1 - min(max(equal, ends[0]), ends[1]) / size
    status = RedundancyStatus.MEASURED
    if math.isinf(equal):
        status = RedundancyStatus.AT_MOST
    elif equal == 0:
        status = RedundancyStatus.AT_LEAST
    if drawn is None:
        return Redundancy(value, math.nan, math.nan, math.nan, RedundancyStatus.NO_NOISE)
    sizes = equal_sizes(baseline, *drawn)
    # a draw below the smallest or beyond the largest baseline is known only as that bound
    low = np.quantile(1 - np.maximum(sizes, ends[0]) / size, INTERVAL[0], method="inverted_cdf")
    high = np.quantile(1 - np.minimum(sizes, ends[1]) / size, INTERVAL[1], method="inverted_cdf")
    p_value = float(np.mean(1 - sizes / size <= 0))
    return Redundancy(value, float(low), float(high), p_value, status)


def equal_sizes(baseline: Baseline, losses: Floats, loss: Floats) -> Floats:
    """(m,) sizes at which the baseline has a loss; 0 below its smallest size, inf beyond its largest.

    Args:
        losses: (m, n) losses of the baseline's sizes; they are made monotone first.
        loss: (m,) the losses to reach.
    """
    rising = isotonic(-losses, baseline.seeds) + _SLOPE * np.arange(len(baseline.size))
    log_size, found = np.log(baseline.size), np.empty(len(losses))
    for row, (curve, wanted) in enumerate(zip(rising, -loss, strict=True)):
        found[row] = np.interp(wanted, curve, log_size, left=-np.inf, right=np.inf)
    return np.exp(found, dtype=np.float64)


@dataclass(frozen=True)
class Needed:
    """The rank from which on the loss can't be distinguished from that of full rank.

    Attributes:
        enough: the least rank from which on no loss is significantly worse than that of full rank; None where even the
            largest rank is worse.
        too_small: the largest rank that is significantly worse; None if no rank is.
        unseen: the least cost, in nats, that would have been significant at the rank that is enough; NaN without one.
    """

    enough: int | None
    too_small: int | None
    unseen: float = field(default=math.nan, compare=False)


def needed_rank(
    ranks: Sequence[int],
    losses: npt.ArrayLike,
    seeds: npt.ArrayLike,
    full: tuple[float, float],
    noise: Noise,
) -> Needed:
    """The least rank that is enough, and the largest that is too small.

    Args:
        ranks: (n,) in growing order.
        losses, seeds: (n,) mean losses and numbers of runs.
        full: mean loss and number of runs of full rank.
        noise: noise of one run's loss.
    """
    loss, count = np.asarray(losses, dtype=np.float64), np.asarray(seeds, dtype=np.float64)
    least = noise.threshold() * noise.std * np.sqrt(1 / count + 1 / full[1])
    worse = [rank for rank, bad in zip(ranks, loss - full[0] > least, strict=True) if bad]
    too_small = max(worse, default=None)
    enough = min((rank for rank in ranks if too_small is None or rank > too_small), default=None)
    return Needed(enough, too_small, math.nan if enough is None else float(least[list(ranks).index(enough)]))
