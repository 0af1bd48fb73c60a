"""The parameters that a bottleneck wastes, by the size of the network without it that reaches the same loss.

Wies et al. 2021, sections 5.1 and 5.3: a network of rank r/d = 16/680 and 70M parameters does as well as a network of
full rank that is 25% smaller. The paper reads that off its figures; here a curve that never rises with size
interpolates the baseline's losses, and the noise of all losses is carried through.

For a bottleneck of some strength its redundancy follows from those that were measured: ours, out of the folder of
results of a study, and the published ones. The strength is d / r for the embedding's rank and H d_a / d for the
attention's width: 1 without a bottleneck. That redundancy grows with it (figures 2 and 4) is all that is assumed
between two published strengths; between two of ours, which have intervals, redundancy and interval are interpolated.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from shapelaw.errors import UserError
from shapelaw.fits.inputs import numbers_of, numbers_or_empty, read_table, require_columns
from shapelaw.fits.line import Floats
from shapelaw.fits.noise import INTERVAL, Noise
from shapelaw.fits.significance import isotonic
from shapelaw.specs.sizes import SIZE_COLUMNS, SIZE_LABELS, SizeAxis

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


def interval_words(low: float, high: float) -> str:
    """The interval of a redundancy in words: `12% to 30%`, `up to 25%` or `40% and more` where an end is open."""
    if math.isinf(low):
        return f"up to {high:.0%}" if high < 1 else "open on both sides"
    return f"{low:.0%} to {high:.0%}" if high < 1 else f"{low:.0%} and more"


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


TOKENS, PATCHES = "tokens", "patches"  # the setting of a rank: how the input is embedded
# of an attention ratio: the feed-forward width
AS_T5, AS_GPT, OTHER = "d_ff = 4 H d_a", "d_ff = 4 d", "another d_ff"
RANK, RATIO = "d / r", "H d_a / d"  # the kinds of strength
_SAME_WIDTH = 0.05  # relative difference of feed-forward widths that count as equal
_ROUNDING = 1e-9  # relative, of strengths that count as equal
SIZE_REACH = 10.0  # factor of the parameters, beyond the networks measured, within which a measurement counts
_PAPER, _SHARE = "Wies et al. 2021", "; a share of all parameters"
_PUBLISHED_SIZES = 3e7, math.inf  # figures 2 and 4 have 30 to 75 million; the paper projects them upwards


class Basis(StrEnum):
    """The measurement that an estimate rests on."""

    FIT = "our fit"
    PUBLISHED = "published"
    BETWEEN = "between published"
    EXTRAPOLATED = "extrapolated"


@dataclass(frozen=True)
class Point:
    """A redundancy measured at a strength, or over a short range of strengths.

    Attributes:
        weakest, strongest: the range of strengths that it holds for.
        value: the redundancy; NaN where only an interval is known.
        low, high: the interval; -inf or 1 where it is open on that side, NaN without one.
    """

    weakest: float
    strongest: float
    value: float
    low: float = math.nan
    high: float = math.nan

    @property
    def least(self) -> float:
        """The least that it can be: the interval's end, or the value where there is no interval."""
        return self.value if math.isnan(self.low) else self.low

    @property
    def most(self) -> float:
        """The most that it can be."""
        return self.value if math.isnan(self.high) else self.high


@dataclass(frozen=True)
class Series:
    """Redundancies of one bottleneck in one setting.

    Attributes:
        kind: the number that its strengths are, d / r or H d_a / d.
        setting: of the networks that were measured.
        basis: ours or published.
        source: where they stand, and of which networks.
        points: in growing strength, at least one.
        sizes: all parameters of the smallest and of the largest network that it counts for; None where it counts for
            any size.
    """

    kind: str
    setting: str
    basis: Basis
    source: str
    points: tuple[Point, ...]
    sizes: tuple[float, float] | None = None

    def reaches(self, params: float | None) -> bool:
        """True for a size within a factor of 10 of `sizes`; an unknown size counts as a large one."""
        if self.sizes is None:
            return True
        size = math.inf if params is None else params
        return self.sizes[0] / SIZE_REACH <= size <= self.sizes[1] * SIZE_REACH

    def at(self, strength: float) -> Point | None:
        """The redundancy at a strength; None outside the strengths that were measured."""
        for point in self.points:
            if point.weakest * (1 - _ROUNDING) <= strength <= point.strongest * (1 + _ROUNDING):
                return point
        weaker = [point for point in self.points if point.strongest < strength]
        stronger = [point for point in self.points if point.weakest > strength]
        return _between(weaker[-1], stronger[0], strength) if weaker and stronger else None


@dataclass(frozen=True)
class Estimate:
    """A redundancy with its interval and what it rests on; `value` is NaN where only the interval is known."""

    value: float
    low: float
    high: float
    basis: Basis
    source: str


def estimate(
    kind: str, strength: float, setting: str, series: Iterable[Series], params: float | None = None
) -> Estimate | None:
    """The redundancy of a bottleneck by the first series of its setting and size that covers its strength.

    Where none does, the estimate is extrapolated: from the first series of another setting, or else of other sizes,
    that has this strength, or else it is at least what was measured at the greatest strength.

    Args:
        kind: the number that the strength is, d / r or H d_a / d.
        series: the preferred ones first.
        params: all parameters of the architecture, where they are known; a measurement counts only near its own sizes.

    Returns:
        The estimate; None where no series is of this kind.
    """
    of_kind = sorted(
        (one for one in series if one.kind == kind),
        key=lambda one: (not one.reaches(params), one.setting != setting),
    )
    near = [one for one in of_kind if one.reaches(params) and one.setting == setting]
    for one in of_kind:
        point = one.at(strength)
        if point is not None:
            basis = one.basis if one in near else Basis.EXTRAPOLATED
            if basis is Basis.PUBLISHED and math.isnan(point.value):
                basis = Basis.BETWEEN
            return Estimate(point.value, point.low, point.high, basis, one.source)
    for some in (near, of_kind):
        beyond = [one for one in some if one.points[-1].strongest < strength]
        if beyond:
            break
    else:
        return None
    last = max(beyond, key=lambda one: one.points[-1].strongest)
    return Estimate(math.nan, last.points[-1].least, 1.0, Basis.EXTRAPOLATED, last.source)


def rank_setting(patches: bool) -> str:
    """The setting of a rank of the embedding."""
    return PATCHES if patches else TOKENS


def attention_setting(ff_width: int | None, width: int, attention_width: int) -> str:
    """The setting of an attention ratio; an unknown feed-forward width counts as the paper's, 4 H d_a."""
    if ff_width is None or math.isclose(ff_width, 4 * attention_width, rel_tol=_SAME_WIDTH):
        return AS_T5
    return AS_GPT if math.isclose(ff_width, 4 * width, rel_tol=_SAME_WIDTH) else OTHER


def published_series(rank: float, ratios: Mapping[float, float]) -> tuple[Series, ...]:
    """The published redundancies of a low rank and of a high attention ratio; 0 without a bottleneck, by definition.

    The one at r/d = 16/680 holds up to ALBERT-xxlarge's 128/4096, as section 5.1 has it ("close to"). The paper itself
    projects them to larger networks (T5-11B), not to smaller ones.

    Args:
        rank: the redundancy at r/d = 16/680.
        ratios: the redundancy of each ratio.
    """
    none = Point(1.0, 1.0, 0.0)
    return (
        Series(
            RANK,
            TOKENS,
            Basis.PUBLISHED,
            f"{_PAPER}, figure 2 and section 5.1: r/d = 16/680, 12 layers, about 70M parameters{_SHARE}",
            (none, Point(4096 / 128, 680 / 16, rank)),
            _PUBLISHED_SIZES,
        ),
        Series(
            RATIO,
            AS_T5,
            Basis.PUBLISHED,
            f"{_PAPER}, figure 4 and section 5.3: H d_a/d of 4 and 16 with d_ff = 4 H d_a, 30M to 70M parameters"
            f"{_SHARE}",
            (none, *(Point(ratio, ratio, share) for ratio, share in ratios.items())),
            _PUBLISHED_SIZES,
        ),
    )


def _between(weaker: Point, stronger: Point, strength: float) -> Point:
    """Between two points: interpolated in log strength where both have intervals, else bounded by both."""
    if any(math.isnan(end) for end in (weaker.low, weaker.high, stronger.low, stronger.high)):
        return Point(strength, strength, math.nan, weaker.least, stronger.most)
    left, right = math.log(weaker.strongest), math.log(stronger.weakest)
    share = (math.log(strength) - left) / (right - left)
    ends = zip(
        (weaker.value, weaker.low, weaker.high), (stronger.value, stronger.low, stronger.high), strict=True
    )
    return Point(strength, strength, *((1 - share) * a + share * b for a, b in ends))


_TABLE, _NETWORKS = "redundancy.csv", "losses.csv"
_SHARES = ("redundancy", "low", "high")
_COLUMNS = ("size_axis", *_SHARES, "status")
_OF_RATIOS, _OF_RANKS = ("ratio", "compared"), ("rank_over_width",)
_FACTORED = "of that rank too"  # the positions, as published and as in ALBERT
_FEED_FORWARD = {"4 H d_a": AS_T5, "4 d": AS_GPT}


def fitted_series(folder: Path, axis: SizeAxis, name: str = "") -> tuple[Series, ...]:
    """The redundancies in a folder of results, a series for each setting.

    Args:
        folder: of `analyse.py embedding_rank` or `analyse.py attention_ratio`.
        axis: the size in which the redundancy is meant.
        name: of the measurement, for readers; its table's path where it has none.

    Raises:
        UserError: the folder has no such results, or none with an interval.
    """
    path = folder / _TABLE
    if not path.is_file():
        raise UserError(
            f"{folder} has no {_TABLE}; --fit needs the results of the study embedding_rank or attention_ratio."
        )
    table = read_table(path)
    strength, *others = _OF_RATIOS if "feed_forward" in table else _OF_RANKS
    require_columns(table, [*_COLUMNS, strength, *others], str(path))
    table[strength] = numbers_of(table, [strength], str(path), positive=[strength])
    table[[*_SHARES]] = numbers_or_empty(table, _SHARES, str(path))
    known = table[(table["size_axis"] == axis.value) & table["low"].notna() & table["high"].notna()]
    kind, rows = (RATIO, _ratios(known)) if "feed_forward" in known else (RANK, _ranks(known))
    if rows.empty:
        raise UserError(
            f"{path} has no redundancy in {SIZE_LABELS[axis]} with an interval; the study needs seeds that repeat."
        )
    source = f"{name or path}, in {SIZE_LABELS[axis]}"
    if (span := _range(folder / _NETWORKS, axis)) is not None:
        source += ", measured at {:.2g} to {:.2g}".format(*span)
    params = _range(folder / _NETWORKS, SizeAxis.TOTAL)
    return tuple(
        Series(kind, str(setting), Basis.FIT, source, _points(mine), params)
        for setting, mine in rows.groupby("setting", sort=False)
    )


def _ranks(known: pd.DataFrame) -> pd.DataFrame:
    """The rows of ranks up to the width, with positions of the same rank where there are such networks."""
    if "positions" in known and (known["positions"] == _FACTORED).any():
        known = known[known["positions"] == _FACTORED]
    known = known[known["rank_over_width"] < 1]  # a product at full rank shows what factoring costs
    return known.assign(strength=1 / known["rank_over_width"], setting=TOKENS)


def _ratios(known: pd.DataFrame) -> pd.DataFrame:
    """The rows of each setting at the size at which its ratios compare."""
    rows = known[known["compared"] == "yes"]
    return rows.assign(strength=rows["ratio"], setting=rows["feed_forward"].map(_FEED_FORWARD))


def _points(rows: pd.DataFrame) -> tuple[Point, ...]:
    """The redundancies in growing strength, behind none at a strength of 1, by definition."""
    measured = (
        Point(
            float(row["strength"]),
            float(row["strength"]),
            float(row["redundancy"]) if row["status"] == RedundancyStatus.MEASURED.value else math.nan,
            float(row["low"]),
            float(row["high"]),
        )
        for row in rows.sort_values("strength").to_dict("records")
    )
    return Point(1.0, 1.0, 0.0, 0.0, 0.0), *measured


def _range(path: Path, axis: SizeAxis) -> tuple[float, float] | None:
    """The smallest and the largest size in a table of networks, where it stands beside."""
    if not path.is_file():
        return None
    column, table = SIZE_COLUMNS[axis], read_table(path)
    require_columns(table, [column], str(path))
    sizes = numbers_of(table, [column], str(path))[column]
    return float(sizes.min()), float(sizes.max())
