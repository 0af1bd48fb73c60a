"""The best depth of every ratio H d_a / d at equal size, its redundancy, and spreads over ratios and depths."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from shapelaw.errors import UserError
from shapelaw.fits.equal_sizes import AtSize, Networks, at_own_sizes, at_size, mean_slope, size_groups
from shapelaw.fits.inputs import refuse
from shapelaw.fits.line import Floats
from shapelaw.fits.noise import INTERVAL, Noise, group_means, group_noise
from shapelaw.fits.redundancy import DRAWS, Baseline, Redundancy, redundancy_of_draws
from shapelaw.fits.significance import MonotonyTest, monotony
from shapelaw.specs.shapes import MLP_RATIO
from shapelaw.specs.sizes import SIZE_COLUMNS, SizeAxis
from shapelaw.studies.decoders import redundancies as shared

ATTENTION, WIDTH = "4 H d_a", "4 d"  # what the feed-forward width is
_WHOLE = ("depth", "width", "heads", "attention_dim")
_NETWORK = ("ratio", "feed_forward", "depth", "width")


@dataclass(frozen=True)
class Found:
    """A ratio at a size, on one size axis.

    Attributes:
        feed_forward: what the feed-forward width is.
        ratio: H d_a / d.
        axis: the size axis.
        at: its depths at that size.
        redundancy: against ratio 1 at its best depth of each size; of ratio 1 itself None.
    """

    feed_forward: str
    ratio: float
    axis: SizeAxis
    at: AtSize
    redundancy: Redundancy | None


class Range(NamedTuple):
    """A range of losses with its 68% interval; NaN ends without noise."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Spread:
    """The ranges of the loss at one size.

    Noise makes a range too large, and the largest of several ranges more so: a difference above zero is on the safe
    side.

    Attributes:
        feed_forward: what the feed-forward width is.
        size: the size.
        ratios: range of the best depths' losses over ratios, with its 68% interval.
        depths: range over depths, of the ratio where it is largest, with its interval.
        difference: the first less the second, with its interval.
        p_value: the chance that the first is not larger; NaN without noise.
    """

    feed_forward: str
    size: float
    ratios: Range
    depths: Range
    difference: Range
    p_value: float


@dataclass(frozen=True)
class RatioAnalysis:
    """The networks and what was found of them.

    Attributes:
        networks: one row each: `ratio, feed_forward, depth, width`, sizes, `loss`, `seeds`, `loss_std`. A network of
            ratio 1 has one row, of the feed-forward width 4 H d_a = 4 d.
        noise: noise of one run's loss over seeds, pooled; None where nothing is repeated.
        axis: the size axis of all but the redundancies, which are on all.
        baseline: ratio 1 at the size of each of its networks.
        found: every ratio at every size that it reaches, on every axis.
        monotony: by feed-forward width and size, the test that the loss does not fall where the ratio grows.
        spreads: where two ratios and two depths of one of them reach a size.
    """

    networks: pd.DataFrame
    noise: Noise | None
    axis: SizeAxis
    baseline: tuple[AtSize, ...]
    found: tuple[Found, ...]
    monotony: Mapping[tuple[str, float], MonotonyTest]
    spreads: tuple[Spread, ...]

    @property
    def redundant(self) -> tuple[Found, ...]:
        """The findings on every axis that have a redundancy: all but those of ratio 1."""
        return tuple(one for one in self.found if one.redundancy is not None)

    @property
    def on_axis(self) -> tuple[Found, ...]:
        """The findings on the main axis."""
        return tuple(one for one in self.found if one.axis is self.axis)

    def also_best(self, one: Found) -> tuple[int, ...]:
        """The other depths that are not significantly worse than the best one; none without noise."""
        return () if self.noise is None else one.at.also_best(self.noise)

    def compared(self, feed_forward: str, axis: SizeAxis) -> tuple[Found, ...]:
        """The ratios at the one size at which they compare best: of those that most depths reach, the largest.

        At the largest size of all some ratios have networks of few depths, whose best may be worse than that of all.
        """
        mine = [one for one in self.found if (one.feed_forward, one.axis) == (feed_forward, axis)]
        depths = Counter[float]()
        for one in mine:
            if one.redundancy is not None:
                depths[one.at.size] += len(one.at.depths)
        best = max(depths, key=lambda size: (depths[size], size), default=None)
        return tuple(one for one in mine if one.at.size == best)


def check_ratio_runs(table: pd.DataFrame, source: str) -> pd.DataFrame:
    """The runs with `ratio`, `feed_forward` and `loss`; an empty `ff_width` is 4 d.

    Raises:
        UserError: a column is missing, a value is wrong, runs differ in more than shape, or one has two rows.
    """
    runs = shared.bottleneck_runs(table, source, _WHOLE, {"ff_width": "for four times the width"})
    inner = runs["heads"] * runs["attention_dim"]
    hidden = runs["ff_width"].fillna(MLP_RATIO * runs["width"])
    follows = hidden == MLP_RATIO * inner
    neither = ~follows & (hidden != MLP_RATIO * runs["width"])
    refuse(runs, neither, source, "ff_width must be 4 H d_a or 4 d (or empty for 4 d)")
    runs = runs.assign(ratio=inner / runs["width"], feed_forward=np.where(follows, ATTENTION, WIDTH))
    twice = runs.duplicated([*_NETWORK, "seed"], keep=False)
    refuse(runs, twice, source, "a run (ratio, feed-forward width, depth, width, seed) must have one row")
    return runs


def analyse_runs(runs: pd.DataFrame, axis: SizeAxis = SizeAxis.BLOCK) -> RatioAnalysis:
    """Best depths, redundancies, monotony and spreads.

    Args:
        runs: of `check_ratio_runs`.
        axis: the size axis of all but the redundancies.

    Raises:
        UserError: fewer than two networks have ratio 1, or none has another.
    """
    networks = group_means(runs, list(_NETWORK), shared.SIZES)
    if (networks["ratio"] == 1).sum() < 2 or (networks["ratio"] == 1).all():
        raise UserError(
            "The runs need two networks with H d_a = d, and one with another H d_a to compare with them."
        )
    noise, found = group_noise(networks), list[Found]()
    tested: dict[tuple[str, float], MonotonyTest] = {}
    spreads: list[Spread] = []
    for one in SizeAxis:
        for feed_forward in (ATTENTION, WIDTH):
            series = _series(networks, feed_forward, one)
            if len(series) < 2:
                continue
            drawn = {
                ratio: some.drawn(noise, DRAWS, place)
                for place, (ratio, some) in enumerate(series.items())
                if noise is not None
            }
            ones = at_own_sizes(series[1.0])
            slope = mean_slope(ones)
            others = np.concatenate([some.size for ratio, some in series.items() if ratio != 1])
            for size in size_groups(others):
                here = [(ratio, at) for ratio, some in series.items() if (at := at_size(some, size, slope))]
                found += [
                    Found(feed_forward, ratio, one, at, _redundancy(ones, ratio, at, drawn, noise))
                    for ratio, at in here
                ]
                if one is axis:
                    tested[feed_forward, size] = _monotony(here, noise)
                    spreads += _spread(feed_forward, size, here, drawn)
    baseline = at_own_sizes(_series(networks, ATTENTION, axis)[1.0])
    return RatioAnalysis(networks, noise, axis, baseline, tuple(found), tested, tuple(spreads))


def _series(networks: pd.DataFrame, feed_forward: str, axis: SizeAxis) -> dict[float, Networks]:
    """The networks of every ratio; ratio 1 always."""
    mine = networks[(networks["ratio"] == 1) | (networks["feed_forward"] == feed_forward)]
    series = {}
    for ratio in np.unique(mine["ratio"]):
        rows = mine[mine["ratio"] == ratio]
        numbers = rows[[SIZE_COLUMNS[axis], "loss", "seeds", "width"]].to_numpy(np.float64).T
        series[float(ratio)] = Networks(rows["depth"].to_numpy(np.int64), *numbers)
    return series


def _redundancy(
    ones: Sequence[AtSize], ratio: float, at: AtSize, drawn: Mapping[float, Floats], noise: Noise | None
) -> Redundancy | None:
    """The redundancy of a ratio's best depth, against ratio 1 at the best depth of each of its own sizes."""
    if ratio == 1:
        return None
    size, loss = (np.array([getattr(one, name) for one in ones]) for name in ("size", "loss"))
    baseline = Baseline(size, loss, np.array([one.runs(noise) for one in ones]))
    if not drawn:
        return redundancy_of_draws(baseline, at.size, at.loss, None)
    losses = np.stack([one.drawn_losses(drawn[1.0]).min(axis=1) for one in ones], axis=1)
    mine = at.drawn_losses(drawn[ratio]).min(axis=1)
    return redundancy_of_draws(baseline, at.size, at.loss, (losses, mine))


def _monotony(here: list[tuple[float, AtSize]], noise: Noise | None) -> MonotonyTest:
    ratios, losses = np.array([(ratio, at.loss) for ratio, at in here]).T
    errs = shared.standard_errors(noise, [at.runs(noise) for _, at in here])
    known = [] if noise is None else [at.noise(noise) for _, at in here]
    return monotony(ratios, losses, errs, min(known, key=lambda one: one.dof, default=None))


def _spread(
    feed_forward: str, size: float, here: list[tuple[float, AtSize]], drawn: Mapping[float, Floats]
) -> Iterator[Spread]:
    if len(here) < 2 or all(len(at.depths) < 2 for _, at in here):
        return
    ratios, depths = float(np.ptp([at.loss for _, at in here])), max(at.spread for _, at in here)
    values = np.array([ratios, depths, ratios - depths])
    ends, p_value = np.full((2, 3), np.nan), np.nan
    if drawn:
        losses = [at.drawn_losses(drawn[ratio]) for ratio, at in here]
        over_ratios = np.ptp(np.stack([some.min(axis=1) for some in losses]), axis=0)
        over_depths = np.stack([np.ptp(some, axis=1) for some in losses]).max(axis=0)
        ranges = np.stack([over_ratios, over_depths, over_ratios - over_depths])
        # noise on top of noise makes ranges larger, and that part is taken off
        ranges += (values - np.median(ranges, axis=1))[:, None]
        ends, p_value = np.quantile(ranges, INTERVAL, axis=1), float(np.mean(ranges[2] <= 0))
    first, second, difference = (Range(*one) for one in np.vstack([values, ends]).T.tolist())
    yield Spread(feed_forward, size, first, second, difference, p_value)
