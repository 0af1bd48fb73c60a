"""What seeds and networks say together: paired differences, rank correlations, and monotony, each with its noise."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt
from scipy import optimize, stats  # type: ignore[import-untyped]

from shapelaw.fits.line import FitStatus, Floats
from shapelaw.fits.noise import SIGNIFICANT, Noise


@dataclass(frozen=True)
class Mean:
    """A mean over seeds with Student's 95% interval; NaN bounds with one seed.

    Attributes:
        value: the mean.
        low, high: the interval.
        p_value: two-sided, for a true mean of zero; NaN with one seed.
        seeds: their number.
    """

    value: float
    low: float
    high: float
    p_value: float
    seeds: int

    @property
    def significant(self) -> bool:
        """True if the interval excludes zero."""
        return self.p_value < 0.05

    @property
    def reach(self) -> float:
        """Half of the interval, to draw: 0 with one seed."""
        return 0.0 if self.seeds < 2 else self.high - self.value

    @property
    def verdict(self) -> str:
        """The verdict in words on a mean of losses minus those of a reference."""
        if math.isnan(self.p_value):
            return "one seed: no comparison"
        if not self.significant:
            return "no significant difference"
        return "worse" if self.value > 0 else "better"


UNKNOWN = Mean(math.nan, math.nan, math.nan, math.nan, 0)


def mean_of(values: npt.ArrayLike) -> Mean:
    """The mean of one number per seed.

    Raises:
        ValueError: there are no numbers.
    """
    numbers = np.asarray(values, np.float64)
    if numbers.size == 0:
        raise ValueError("no numbers to take a mean of")
    mean = float(numbers.mean())
    if numbers.size == 1:
        return Mean(mean, math.nan, math.nan, math.nan, 1)
    err, dof = float(numbers.std(ddof=1)) / math.sqrt(numbers.size), numbers.size - 1
    if err == 0:
        return Mean(mean, mean, mean, float(mean == 0), numbers.size)
    half = float(stats.t.ppf(0.975, dof)) * err
    return Mean(mean, mean - half, mean + half, float(2 * stats.t.sf(abs(mean) / err, dof)), numbers.size)


def paired_mean(left: Mapping[int, float], right: Mapping[int, float]) -> Mean | None:
    """The mean of `left - right` over the seeds that both have; None if they share no seed."""
    both = sorted(left.keys() & right.keys())
    return mean_of([left[seed] - right[seed] for seed in both]) if both else None


Places = npt.NDArray[np.int64]


def best_on_others(losses_SR: npt.ArrayLike) -> list[int]:
    """For each seed the place of the rate with the least mean loss over the other seeds; of a single seed, its own.

    Never that of a rate at which another seed diverged, whose loss is infinite.
    """
    losses = np.asarray(losses_SR, np.float64)
    others = (
        [np.delete(losses, place, axis=0) for place in range(len(losses))] if len(losses) > 1 else [losses]
    )
    return [int(some.mean(axis=0).argmin()) for some in others]


DRAWS = 2000
PERMUTATIONS = 5040  # of 7
FEWEST = 4  # networks
_FEWEST_DRAWS = 0.5  # share of the draws that must have a correlation for an interval


@dataclass(frozen=True)
class RankCorrelation:
    """A rank correlation with its 95% interval.

    Attributes:
        value: Spearman's rho, with ties at their mean rank; NaN if one side is constant or there are too few networks.
        low, high: percentiles of the bootstrap; NaN where too few draws have a correlation.
        p_value: two-sided, for no relation between values and losses, from permutations of the networks: exact up to 7
            of them. Four networks can't fall below 0.08. NaN unless all networks have equally many points.
        networks: the number of different networks.
        seeds: the largest number of seeds of a network.
    """

    value: float
    low: float
    high: float
    p_value: float
    networks: int
    seeds: int

    @property
    def verdict(self) -> str:
        """The correlation in words."""
        if math.isnan(self.low):
            return "too few networks"
        if not self.p_value < 0.05:
            return "no significant correlation"
        return "negative" if self.high < 0 else "positive" if self.low > 0 else "no significant correlation"


def rank_correlation(
    values: npt.ArrayLike, losses: npt.ArrayLike, networks: npt.ArrayLike, draws: int = DRAWS, seed: int = 0
) -> RankCorrelation:
    """The rank correlation of values with mean losses.

    The bootstrap draws networks with all their points, and seeds, the same ones for every network: points that share a
    network or a seed are not independent evidence.

    Args:
        values: [P], one per point (a network on a task).
        losses: [P, S], one per seed; NaN where a seed has none. Any monotone function of the seeds' means gives the
            same.
        networks: [P], the network of each point.
        draws: number of bootstrap draws.
        seed: seed of the bootstrap.
    """
    x, y, names = np.asarray(values, np.float64), np.asarray(losses, np.float64), np.asarray(networks)
    there = np.isfinite(y).any(1)
    x, y, names = x[there], y[there], names[there]
    different, seeds = np.unique(names), y.shape[1]
    if len(different) < FEWEST:
        return RankCorrelation(math.nan, math.nan, math.nan, math.nan, len(different), seeds)
    random, places = np.random.default_rng(seed), [np.flatnonzero(names == name) for name in different]
    by_length: dict[int, list[tuple[Places, Places]]] = {}
    for _ in range(draws):
        points = np.concatenate([places[at] for at in random.integers(0, len(places), len(places))])
        by_length.setdefault(len(points), []).append((points, np.asarray(random.integers(0, seeds, seeds))))
    drawn = []
    for batch in by_length.values():
        points, chosen = (np.stack(part) for part in zip(*batch, strict=True))
        drawn.append(_spearman(x[points], y[points[:, :, None], chosen[:, None, :]]))
    known = np.concatenate(drawn)
    known = known[np.isfinite(known)]
    low, high = (
        np.quantile(known, (0.025, 0.975)) if len(known) > _FEWEST_DRAWS * draws else (math.nan, math.nan)
    )
    value = float(_spearman(x[None], y[None])[0])
    p_value = _chance(value, x, y, places, random)
    return RankCorrelation(value, float(low), float(high), p_value, len(different), seeds)


def _chance(value: float, x: Floats, y: Floats, places: list[Places], random: np.random.Generator) -> float:
    """The share of permutations, of values among networks, whose correlation is as far from 0."""
    if math.isnan(value) or len({len(points) for points in places}) > 1:
        return math.nan
    points, count = np.stack(places), len(places)
    exact = math.factorial(count) <= PERMUTATIONS
    if exact:
        orders = np.array(list(itertools.permutations(range(count))))
    else:
        orders = np.stack([random.permutation(count) for _ in range(PERMUTATIONS)])
    values = x[points][orders].reshape(len(orders), -1)
    losses = np.broadcast_to(y[points.ravel()], (len(orders), points.size, y.shape[1]))
    as_far = int((np.abs(_spearman(values, losses)) >= abs(value) - 1e-9).sum())
    return as_far / len(orders) if exact else (as_far + 1) / (len(orders) + 1)


def _spearman(values: Floats, losses: Floats) -> Floats:
    """Spearman's rho, [draws], from [draws, P] and [draws, P, S]; NaN where a side is constant or unknown."""
    count = np.isfinite(losses).sum(2)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.nansum(losses, 2) / count
        left, right = (_standard(stats.rankdata(side, axis=1)) for side in (values, means))
        return np.where((count > 0).all(1), (left * right).mean(1), np.nan)


def _standard(ranks: Floats) -> Floats:
    """The values scaled to mean 0 and variance 1; NaN where all are equal."""
    centered = ranks - ranks.mean(1, keepdims=True)
    return np.asarray(centered / centered.std(1, keepdims=True))


class Monotony(StrEnum):
    """The verdict on falls of means by more than their noise."""

    RISING = "rising, no significant fall"
    FALLING = "falls significantly"
    FLAT = "no significant change"
    NO_NOISE = "no noise estimate"
    TOO_FEW_POINTS = "too few points"


@dataclass(frozen=True)
class MonotonyTest:
    """`falls_p` is the chance of falls this large if none are real; `rises_p` the same for rises.

    `largest_fall` is the largest drop from a point to any later one, 0 if there is none, with its standard error
    and the two x. `chi2` is the weighted sum of squared residuals from the nearest curve that does not fall, with
    its `r_squared`; `falls_p` is its p-value. All NaN where nothing was tested.
    """

    verdict: Monotony
    falls_p: float = np.nan
    rises_p: float = np.nan
    largest_fall: float = np.nan
    largest_fall_err: float = np.nan
    fall_from: float = np.nan
    fall_to: float = np.nan
    chi2: float = np.nan
    r_squared: float = np.nan

    @property
    def status(self) -> FitStatus:
        """The status of the isotonic fit, whatever the test finds."""
        return {
            Monotony.TOO_FEW_POINTS: FitStatus.TOO_FEW_POINTS,
            Monotony.NO_NOISE: FitStatus.NOT_IDENTIFIABLE,
        }.get(self.verdict, FitStatus.CONVERGED)

    @property
    def message(self) -> str:
        """The reason for `status`, in a sentence."""
        if self.verdict is Monotony.NO_NOISE:
            return "no seed noise, so a fall can't be told from chance; train several seeds of some points"
        if self.verdict is Monotony.TOO_FEW_POINTS:
            return "1 point: an order needs 2"
        return f"{self.verdict} (p of a fall = {self.falls_p:.2g})"


def isotonic(y: Floats, weights: Floats) -> Floats:
    """The nearest non-decreasing rows to (m, n) `y` in (n,) weighted least squares.

    Rows that rise by themselves stay to the last digit.
    """
    found = y.copy()
    for place in np.flatnonzero((np.diff(y, axis=1) < 0).any(axis=1)):
        found[place] = optimize.isotonic_regression(y[place], weights=weights).x
    return found


def monotony(
    x: Floats, y: Floats, err: Floats, noise: Noise | None, *, draws: int = 4000, seed: int = 0
) -> MonotonyTest:
    """Test the order of (n,) means against `noise`, from which their standard errors `err` were estimated.

    The statistic is the weighted squared distance to the nearest non-decreasing curve; where nothing falls it is
    largest for a constant curve (Robertson et al. 1988, section 2.3), so its distribution is drawn for that one, with
    the noise's own uncertainty. `falls_p` is therefore exact for a plateau and too large for a steep curve: chance is
    never called a fall more often than stated. `rises_p` is the same test of the reversed order.
    """
    if len(x) < 2:
        return MonotonyTest(Monotony.TOO_FEW_POINTS)
    if noise is None or not np.isfinite(err).all():
        return MonotonyTest(Monotony.NO_NOISE)
    rng = np.random.default_rng(seed)
    weights = err**-2.0
    scale = np.ones(draws) if np.isinf(noise.dof) else np.sqrt(rng.chisquare(noise.dof, draws) / noise.dof)
    drawn = rng.standard_normal((draws, len(x))) * err
    p_values = []
    for sign in (1.0, -1.0):
        observed = _distance(sign * y[None, :], weights)[0]
        by_chance = _distance(sign * drawn, weights) / scale**2
        p_values.append(float((1 + (by_chance >= observed * (1 - 1e-12)).sum()) / (1 + draws)))
    falls_p, rises_p = p_values
    drop = np.triu(y[:, None] - y[None, :], k=1)
    start, end = np.unravel_index(int(drop.argmax()), drop.shape)
    fall = float(drop[start, end])
    err_and_ends = float(np.hypot(err[start], err[end])), float(x[start]), float(x[end])
    verdict = Monotony.RISING if rises_p < SIGNIFICANT else Monotony.FLAT
    chi2 = float(_distance(y[None, :], weights)[0])
    total = float((weights * (y - np.average(y, weights=weights)) ** 2).sum())
    return MonotonyTest(
        Monotony.FALLING if falls_p < SIGNIFICANT else verdict,
        falls_p,
        rises_p,
        fall,
        *(err_and_ends if fall > 0 else (math.nan,) * 3),
        chi2=chi2,
        r_squared=1 - chi2 / total if total > 0 else np.nan,
    )


def _distance(y: Floats, weights: Floats) -> Floats:
    return np.asarray((weights * (y - isotonic(y, weights)) ** 2).sum(axis=1), dtype=np.float64)
