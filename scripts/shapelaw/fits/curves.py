"""The loss of one depth as a function of size, with the noise of every point."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pandas as pd

from shapelaw.fits.line import Floats
from shapelaw.fits.noise import Noise
from shapelaw.fits.projection import standard_params
from shapelaw.specs.sizes import SAME_SIZE
from shapelaw.specs.sizes import SizeAxis as SizeAxis

SIZE_COLUMNS = {
    SizeAxis.BLOCK: "block_params",
    SizeAxis.TOTAL: "total_params",
    SizeAxis.FLOPS: "step_flops",
}
SIZE_LABELS = {
    SizeAxis.BLOCK: "parameters of the blocks",
    SizeAxis.TOTAL: "all parameters",
    SizeAxis.FLOPS: "FLOPs of a training step",
}


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


@dataclass(frozen=True)
class Transition:
    """The width of the network of `depth` at which `deeper_depth` overtakes it.

    `width_low` and `width_high` bound it (the rule's two points, or a 68% interval). All four widths are NaN
    unless `status` is crossing. Where another status still bounds the transition, `side` says how: above or below
    `bound` with a chance of 84%, with a chance of 97.5% if the bound is loosened by `bound_err`; or "at" `bound`. A
    crossing between `reportable_low` and `reportable_high` could have been reported. `noise_scale` is the typical
    distance of a run from its smooth curve, in units of the seed noise; `caution` says what makes the interval
    doubtful, if anything does.
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


@dataclass(frozen=True)
class Curve:
    """The networks of one depth by growing size: (n,) widths, sizes, mean losses, their standard errors, seeds.

    `loss_err` is the seed noise at each width over the root of the number of seeds; NaN if there is no noise estimate.
    """

    depth: int
    width: Floats
    size: Floats
    loss: Floats
    loss_err: Floats
    seeds: Floats

    @property
    def log_size(self) -> Floats:
        return np.log(self.size, dtype=np.float64)

    def loss_at(self, size: npt.ArrayLike) -> tuple[Floats, Floats]:
        """Loss and its standard error at (m,) sizes, linear in log size between neighbours.

        NaN for sizes out of range by more than 10%, and everywhere if the curve has one point only.
        """
        x, knots = np.log(np.asarray(size, dtype=np.float64)), self.log_size
        if len(knots) < 2:
            return np.full_like(x, np.nan), np.full_like(x, np.nan)
        right = np.clip(np.searchsorted(knots, x), 1, len(knots) - 1)
        share = (x - knots[right - 1]) / (knots[right] - knots[right - 1])
        outside = (x < knots[0] - SAME_SIZE) | (x > knots[-1] + SAME_SIZE)
        loss = (1 - share) * self.loss[right - 1] + share * self.loss[right]
        err = np.hypot((1 - share) * self.loss_err[right - 1], share * self.loss_err[right])
        return np.where(outside, np.nan, loss), np.where(outside, np.nan, err)

    def width_at(self, log_size: npt.ArrayLike) -> Floats:
        """Width of this depth at (m,) log sizes, by the power law between neighbours (exact for `12 L d^2`)."""
        log_width: Floats = np.interp(np.asarray(log_size), self.log_size, np.log(self.width))
        return np.exp(log_width, dtype=np.float64)


def loss_curves(runs: pd.DataFrame, noise: Noise | None, size: SizeAxis = SizeAxis.BLOCK) -> dict[int, Curve]:
    """One curve per depth, seeds averaged. `runs` has `depth, width, seed, loss` and the column of `size`.

    Without a column `block_params` the blocks' size is `12 L d^2`.
    """
    if SIZE_COLUMNS[size] in runs:
        runs = runs.assign(size=runs[SIZE_COLUMNS[size]])
    elif size is SizeAxis.BLOCK:
        runs = runs.assign(size=standard_params(runs["depth"], runs["width"]))
    table = runs.groupby(["depth", "width"], as_index=False).agg(
        loss=("loss", "mean"), seeds=("seed", "size"), size=("size", "first")
    )
    curves = {}
    for depth in sorted(int(value) for value in table["depth"].unique()):
        rows = table[table["depth"] == depth].sort_values("size")
        width, sizes, loss, seeds = (
            rows[name].to_numpy(dtype=np.float64) for name in ("width", "size", "loss", "seeds")
        )
        std = np.full(width.shape, np.nan) if noise is None else noise.at(width)
        curves[depth] = Curve(depth, width, sizes, loss, std / np.sqrt(seeds), seeds)
    return curves


def adjacent_pairs(curves: Mapping[int, Curve]) -> list[tuple[Curve, Curve]]:
    """Each depth with the next greater one, e.g. (6, 12), (12, 18), ... (Levine et al. 2020, section 5.2.2)."""
    return list(pairwise(curves[depth] for depth in sorted(curves)))


def shared_range(shallow: Curve, deep: Curve) -> tuple[float, float]:
    """Lowest and highest log size that both curves cover; the first is above the second if there is none."""
    low = max(shallow.log_size[0], deep.log_size[0])
    high = min(shallow.log_size[-1], deep.log_size[-1])
    return float(low), float(high)


def sizes_in(curve: Curve, low: float, high: float) -> Floats:
    """The log sizes (m,) of a curve between two others, with 10% of tolerance."""
    x = curve.log_size
    return x[(x >= low - SAME_SIZE) & (x <= high + SAME_SIZE)]


def no_transition(shallow: Curve, deep: Curve, method: str, status: TransitionStatus) -> Transition:
    nan = math.nan
    return Transition(shallow.depth, deep.depth, nan, nan, nan, nan, method, status)
