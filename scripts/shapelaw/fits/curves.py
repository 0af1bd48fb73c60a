"""The loss of one depth as a function of size with the noise of every point, and the paper's rule for two curves.

The rule says at which width the deeper of two networks becomes better (Levine et al. 2020).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from shapelaw.fits.batches import Batches, batches_of
from shapelaw.fits.noise import Floats, Noise, group_means
from shapelaw.fits.projection import standard_params
from shapelaw.specs.sizes import SAME_SIZE, SIZE_COLUMNS, SizeAxis

SAME = 1e-6  # in log size: rounding


class TransitionStatus(StrEnum):
    """The outcome of a search for a transition: a crossing, or the reason for none."""

    CROSSING = "crossing"
    SEVERAL = "several sign changes"
    REVERSED = "reversed: deeper better, then worse"
    DEEPER_BETTER = "none in range, deeper better everywhere"
    SHALLOWER_BETTER = "none in range, shallower better everywhere"
    AT_EDGE = "at the edge"
    TOO_NOISY = "too noisy"
    UNDECIDED = "undecided"  # by this many draws
    NO_NOISE = "no noise estimate"
    TOO_FEW_SIZES = "too few sizes"


class Side(StrEnum):
    """The side of its `bound` on which a transition lies that is not reported as a crossing."""

    ABOVE = "above"
    BELOW = "below"
    AT = "at"  # estimated there, but nothing beyond it confirms it


# each status but a crossing, in words; {} is how far the sizes reach, where one depth is better everywhere
_IN_WORDS = {
    TransitionStatus.SEVERAL: "the better of the two changes more than once",
    TransitionStatus.REVERSED: "the deeper network is better, then worse",
    TransitionStatus.DEEPER_BETTER: "no transition{}: the deeper network is better everywhere",
    TransitionStatus.SHALLOWER_BETTER: "no transition{}: the shallower network is better everywhere",
    TransitionStatus.AT_EDGE: "at the edge of the sizes",
    TransitionStatus.TOO_NOISY: "too noisy for an estimate",
    TransitionStatus.UNDECIDED: "undecided",
    TransitionStatus.NO_NOISE: "no noise estimate",
    TransitionStatus.TOO_FEW_SIZES: "too few sizes in common",
}
_REACH: dict[tuple[TransitionStatus, object], str] = {
    (TransitionStatus.DEEPER_BETTER, Side.BELOW): " down to width {:.0f}",
    (TransitionStatus.SHALLOWER_BETTER, Side.ABOVE): " up to width {:.0f}",
}


def status_sentence(row: Mapping[Any, Any]) -> str:
    """What became of a transition, without a full stop: `no transition up to width 180: the shallower network ...`.

    Args:
        row: of transitions.csv; of its columns `bound`, `side` and `caution` some may be missing.
    """
    status, side, caution = TransitionStatus(row["status"]), row.get("side"), row.get("caution")
    if status is TransitionStatus.CROSSING:
        return f"width {row['width']:.1f} ± {row['width_err']:.1f}"
    bound = "" if not isinstance(side, str) or pd.isna(row["bound"]) else f"{row['bound']:.0f}"
    reach = _REACH.get((status, side), "") if bound else ""
    said = _IN_WORDS[status].format(reach.format(row.get("bound")))
    if status is TransitionStatus.UNDECIDED and isinstance(caution, str) and caution:
        said += f" ({caution})"
    if bound and not reach:
        lies = "," if status is TransitionStatus.AT_EDGE else "; a transition would lie"
        said += f"{lies} {'about' if side == Side.AT else side} width {bound}"
    return said


@dataclass(frozen=True)
class Transition:
    """The width of the network of `depth` at which `deeper_depth` overtakes it.

    `width_low` and `width_high` bound it (the rule's two points, or a 68% interval). All four widths are NaN
    unless `status` is crossing. Where another status still bounds the transition, `side` says how: above or below
    `bound` with a chance of 84%, with a chance of 97.5% if the bound is loosened by `bound_err`; or "at" `bound`. A
    crossing between `reportable_low` and `reportable_high` could have been reported. `noise_scale` is the typical
    distance of a run from its smooth curve, in units of the seed noise; `caution` says what makes the interval
    doubtful, if anything does. `correlation` is that of its error with the error of the next deeper pair's transition,
    which shares a depth with it. `lag` is by how much the paper's rule puts it too high, of the log width.
    """

    depth: int
    deeper_depth: int
    width: float
    width_err: float
    width_low: float
    width_high: float
    method: str
    status: TransitionStatus
    bound: float = math.nan
    bound_err: float = math.nan
    side: Side | None = None
    reportable_low: float = math.nan
    reportable_high: float = math.nan
    noise_scale: float = math.nan
    caution: str = ""
    correlation: float = math.nan
    lag: float = math.nan


@dataclass(frozen=True)
class Curve:
    """The networks of one depth by growing size: (n,) widths, sizes, mean losses, their standard errors, seeds.

    `loss_err` is the seed noise at each width over the root of the number of seeds; NaN if there is no noise estimate.
    `batches` has the share of each network's runs that are of a batch (`fits/batches.py`).
    """

    depth: int
    width: Floats
    size: Floats
    loss: Floats
    loss_err: Floats
    seeds: Floats
    batches: Batches = field(default_factory=dict)

    @property
    def log_size(self) -> Floats:
        return np.log(self.size, dtype=np.float64)

    def loss_at(self, size: npt.ArrayLike) -> tuple[Floats, Floats]:
        """Loss and its standard error at (m,) sizes, linear in log size between neighbours.

        NaN for sizes out of range by more than 10%, and everywhere if the curve has one point only.
        """
        weights, reached = self.weights_at(np.asarray(size, dtype=np.float64))
        if len(self.size) < 2:
            reached = np.zeros_like(reached)
        err = np.sqrt(weights**2 @ self.loss_err**2)
        return np.where(reached, weights @ self.loss, np.nan), np.where(reached, err, np.nan)

    def weights_at(self, size: Floats) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """(m, n) weights of the n losses in the loss at (m,) sizes, and where the depth reaches these.

        Linear in log size between neighbours, up to 10% beyond the ends; one network reaches its own size alone.
        """
        x, knots = np.log(size), self.log_size
        count = len(knots)
        if count == 1:
            return np.ones((len(x), 1)), np.abs(x - knots[0]) <= SAME
        right = np.clip(np.searchsorted(knots, x), 1, count - 1)
        share = (x - knots[right - 1]) / (knots[right] - knots[right - 1])
        weights, rows = np.zeros((len(x), count)), np.arange(len(x))
        weights[rows, right - 1], weights[rows, right] = 1.0 - share, share
        return weights, (x >= knots[0] - SAME_SIZE) & (x <= knots[-1] + SAME_SIZE)

    def width_at(self, log_size: npt.ArrayLike) -> Floats:
        """Width of this depth at (m,) log sizes, by the power law between neighbours (exact for `12 L d^2`)."""
        log_width: Floats = np.interp(np.asarray(log_size), self.log_size, np.log(self.width))
        return np.exp(log_width, dtype=np.float64)


def loss_curves(runs: pd.DataFrame, noise: Noise | None, size: SizeAxis = SizeAxis.BLOCK) -> dict[int, Curve]:
    """One curve per depth, as in `curves_by_size`."""
    return curves_by_size(runs, noise, [size])[size]


def curves_by_size(
    runs: pd.DataFrame, noise: Noise | None, sizes: Iterable[SizeAxis]
) -> dict[SizeAxis, dict[int, Curve]]:
    """For each size one curve per depth, seeds averaged.

    Args:
        runs: `depth, width, seed, loss`, the columns of the sizes, and batches. Without a column `block_params` the
            blocks' size is `12 L d^2`.
    """
    shapes = group_means(runs, ["depth", "width"], [name for name in SIZE_COLUMNS.values() if name in runs])
    if SIZE_COLUMNS[SizeAxis.BLOCK] not in shapes:
        shapes[SIZE_COLUMNS[SizeAxis.BLOCK]] = standard_params(shapes["depth"], shapes["width"])
    batches = batches_of(runs)
    numbers = {name: shapes[name].to_numpy(dtype=np.float64) for name in ("width", "loss", "seeds")}
    std = np.full(len(shapes), np.nan) if noise is None else noise.at(numbers["width"])
    columns = (*numbers.values(), std / np.sqrt(numbers["seeds"]))
    depths = shapes["depth"].to_numpy(dtype=np.int64)

    def curves(size: SizeAxis) -> dict[int, Curve]:
        every, found = shapes[SIZE_COLUMNS[size]].to_numpy(dtype=np.float64), {}
        for depth in map(int, np.unique(depths)):
            rows = np.flatnonzero(depths == depth)
            rows = rows[np.argsort(every[rows], kind="stable")]
            width, loss, seeds, err = (column[rows] for column in columns)
            shares = {batch: share[rows] for batch, share in batches.items()}
            found[depth] = Curve(depth, width, every[rows], loss, err, seeds, shares)
        return found

    return {size: curves(size) for size in sizes}


def adjacent_pairs(curves: Mapping[int, Curve]) -> list[tuple[Curve, Curve]]:
    """Each depth with the next greater one, e.g. (6, 12), (12, 18), ... (Levine et al. 2020, section 5.2.2)."""
    return list(pairwise(curves[depth] for depth in sorted(curves)))


def no_transition(shallow: Curve, deep: Curve, method: str, status: TransitionStatus) -> Transition:
    nan = math.nan
    return Transition(shallow.depth, deep.depth, nan, nan, nan, nan, method, status)


@dataclass(frozen=True)
class Gaps:
    """Two depths compared at the (n,) growing sizes of the shallower that the deeper reaches.

    Attributes:
        width: of the shallower network.
        deeper_width: of the trained network of the deeper depth that is nearest in size.
        loss: of the shallower network.
        deeper_loss: of the deeper depth at the same size, on the line in log size through its two neighbours.
        err: standard error of `loss - deeper_loss` by the noise between seeds alone; NaN without a noise estimate.
    """

    width: Floats
    deeper_width: Floats
    loss: Floats
    deeper_loss: Floats
    err: Floats

    @property
    def deeper_by(self) -> Floats:
        """(n,) by how much the deeper network is better, in the loss's unit."""
        return self.loss - self.deeper_loss

    @property
    def z(self) -> Floats:
        """(n,) `deeper_by` in standard errors."""
        return self.deeper_by / self.err

    def better(self, noise: Noise | None) -> npt.NDArray[np.int64]:
        """(n,) 1 where the deeper network is significantly better, -1 where the shallower is, else 0."""
        threshold = np.inf if noise is None else noise.threshold_at(self.width, self.deeper_width)
        return np.where(np.abs(self.z) > threshold, np.sign(self.z), 0).astype(np.int64)


def gaps_of(shallow: Curve, deep: Curve) -> Gaps:
    """The gaps of two depths at equal size; sizes count as equal within 10%, as everywhere (`Curve.loss_at`)."""
    deep_loss, deep_err = deep.loss_at(shallow.size)
    inside = np.isfinite(deep_loss)
    nearest = np.abs(deep.log_size - shallow.log_size[inside, None]).argmin(axis=1)
    return Gaps(
        shallow.width[inside],
        deep.width[nearest],
        shallow.loss[inside],
        deep_loss[inside],
        np.hypot(shallow.loss_err[inside], deep_err[inside]),
    )


PAPER_RULE = "paper rule"
MIN_SIZES = 3
# standard errors below which two losses count as equal
ALIKE = 1.0
# measured on gaps that are linear in log width: 1.0 to 1.5 with 40 to 10 sizes a factor of 7 in width. Without noise it
# were half way between 1 and 1.96, where the left and the right size would lie
WAITS = 1.3
# log width from the transition within which gaps tell their slope
NEAR = 0.7


def paper_rule(shallow: Curve, deep: Curve, noise: Noise | None) -> Transition:
    """Levine et al. 2020, section 5.2.2: the mean of two widths of the shallower network.

    The right one is the first size at which the shallower network is significantly worse than the deeper one
    (interpolated at that size, a two-sided test at 95% on the pooled seed noise). The left one is the last
    size before it at which the two are alike or the shallower is better: it is worse by less than `ALIKE` standard
    errors. Sizes between the two are neither, so the two need not be neighbours: four of the five published brackets
    enclose trained widths. The error is half their distance, as the paper's table 4a has it (its text says the
    distance).

    No transition is reported when a bracketing size is the first or the last of the comparison, since nothing
    beyond it confirms that side (at the edge), or when a larger size contradicts it significantly (too noisy).

    The rule waits for a significant difference, so it lags: by about `WAITS` standard errors of a gap over the slope of
    the gap in log width, which a line through the gaps nearby gives (`Transition.lag`).
    """
    if noise is None:
        return no_transition(shallow, deep, PAPER_RULE, TransitionStatus.NO_NOISE)
    gaps = gaps_of(shallow, deep)
    if len(gaps.width) < MIN_SIZES:
        return no_transition(shallow, deep, PAPER_RULE, TransitionStatus.TOO_FEW_SIZES)

    better = gaps.better(noise)
    right = int(np.argmax(better > 0))
    alike = np.flatnonzero(gaps.z[:right] < ALIKE)

    status = _status(better, alike)
    if status is not TransitionStatus.CROSSING:
        return no_transition(shallow, deep, PAPER_RULE, status)
    low, high = float(gaps.width[alike[-1]]), float(gaps.width[right])
    widths = (low + high) / 2, (high - low) / 2, low, high
    far = np.abs(np.log(gaps.width / widths[0]))
    near = far <= max(NEAR, np.sort(far)[MIN_SIZES - 1])
    slope = float(np.polyfit(np.log(gaps.width[near]), gaps.deeper_by[near], 1)[0])
    lag = WAITS * float(gaps.err[near].mean()) / slope if slope > 0 else math.nan
    return Transition(shallow.depth, deep.depth, *widths, PAPER_RULE, status, lag=lag)


def _status(better: npt.NDArray[np.int64], alike: npt.NDArray[np.intp]) -> TransitionStatus:
    """The status from `Gaps.better` at n >= 3 sizes; `alike`: those before the first where the deeper is better."""
    shallow_worse, deep_worse = better > 0, better < 0
    if not shallow_worse.any():
        if deep_worse[-1]:
            return TransitionStatus.SHALLOWER_BETTER
        return TransitionStatus.AT_EDGE if deep_worse.any() else TransitionStatus.TOO_NOISY
    first = int(np.argmax(shallow_worse))
    if deep_worse[first:].any():
        return TransitionStatus.TOO_NOISY
    if first == 0:
        return TransitionStatus.DEEPER_BETTER
    if not alike.size or alike[-1] == 0 or first == len(shallow_worse) - 1:
        return TransitionStatus.AT_EDGE
    return TransitionStatus.CROSSING
