"""The answers that a surface gives: the best depth of a size, what a shape costs, where a depth overtakes another."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from shapelaw.fits.evidence import lowest as lowest
from shapelaw.fits.line import Floats
from shapelaw.fits.shape_costs import interval_of_few
from shapelaw.fits.surface import Surface
from shapelaw.fits.surface_shapes import Shapes, SurfaceStatus
from shapelaw.specs.sizes import SAME_SIZE

INTERVAL = (0.16, 0.84)
DEPTHS = 81  # depths that are compared at a size
SIZES = 41  # sizes at which the best loss is known, between which it is interpolated
NEIGHBOURS = math.log(2.0)  # shapes whose size is less than a factor 2 away show which depths were tried
# an interval that fills more than this share of the depths tried says nothing
TOO_WIDE = 0.75
# of the size axis below and above the shapes, searched for the size that a loss needs
BEYOND = math.log(4.0)
FARTHER = math.log(8.0)  # of the depth, beyond the shapes, where the size is beyond them
# standard deviation of log depth by which a best depth is wider for each e-fold of size beyond the shapes: 64 to 71% of
# the intervals at two and three times the 12 or 15 smallest of 22 public shapes hold the best depth by all, 61 to 67%
# without it
ROLLED_OUT = 0.1
# a bound is the weakest of the bounds by those forms that have such a weight
PLAUSIBLE = 0.05
# a crossing is reported if this share of the draws has it within the sizes
SURE = 0.95


@dataclass(frozen=True)
class BestDepth:
    """The best depth of a size with its 68% interval; NaN where only a bound is known, or nothing.

    A bound is a chance of 84% by each form that the shapes leave plausible: the best depth is above `low` (status
    "deeper"), or below `high`. At the edge of the shapes forms differ by more than their draws do.
    """

    size: float
    depth: float
    low: float
    high: float
    status: SurfaceStatus


@dataclass(frozen=True)
class Penalty:
    """The cost of a shape's depth: its loss above the best of its size, and the size that the best shape needs for it.

    Both with 68% intervals; a size that is needed is NaN where it lies below all shapes, and then it is less than
    `needed_high`. Nothing is known where no best depth can be told. Where `status` is a bound, the best depth lies at
    the edge of the shapes or beyond, so the shape costs at least so much.
    """

    loss: float
    low: float
    high: float
    needed: float
    needed_low: float
    needed_high: float
    status: SurfaceStatus


@dataclass(frozen=True)
class Overtaking:
    """The size from which the deeper of two trained depths has the lower loss, with its 68% interval.

    `share` is that of the draws in which such a size lies within the shapes' sizes.
    """

    depth: float
    deeper: float
    size: float
    low: float
    high: float
    share: float


def tried_depths(shapes: Shapes, x: float) -> tuple[float, float]:
    """The log depths between which a size (its log) was tried: of shapes near it, and between its neighbours'."""
    near = np.abs(shapes.x - x) <= NEIGHBOURS
    low = float(shapes.z[near].min()) if near.any() else math.inf
    high = float(shapes.z[near].max()) if near.any() else -math.inf
    left, right = shapes.x <= x, shapes.x >= x
    if left.any() and right.any():
        share = (x - shapes.x[left][:, None]) / np.maximum(shapes.x[right] - shapes.x[left][:, None], 1e-12)
        between = (1.0 - share) * shapes.z[left][:, None] + share * shapes.z[right]
        low, high = min(low, float(between.min())), max(high, float(between.max()))
    return low, high


def best_depth(surface: Surface, size: float) -> BestDepth:
    """The best depth of a size: the median over draws of the depth of least loss, among the depths that were tried."""
    x, shapes = math.log(size), surface.shapes
    outside = x < shapes.x.min() - SAME_SIZE or x > shapes.x.max() + SAME_SIZE
    if outside:
        low, high = float(shapes.z.min()) - FARTHER, float(shapes.z.max()) + FARTHER
        low = max(low, 0.0)
    else:
        low, high = tried_depths(shapes, x)
    grid = np.linspace(low, high, DEPTHS * (2 if outside else 1))
    best, _ = lowest(surface.losses(np.full_like(grid, x), grid), grid)
    farther = max(0.0, float(shapes.x.min()) - x, x - float(shapes.x.max())) if outside else 0.0
    best = best + ROLLED_OUT * farther * np.random.default_rng(0).standard_normal(len(best))
    middle, q_low, q_high = _middle_and_interval(best)
    status = status_of(q_low, q_high, grid, outside, surface.told)
    depth = middle
    if status not in (SurfaceStatus.CONVERGED, SurfaceStatus.EXTRAPOLATED):
        bounds = [_middle_and_interval(some) for some in _of_plausible_forms(surface, best)]
        depth = math.nan
        q_low = min(low for _, low, _ in bounds) if status is SurfaceStatus.DEEPER else math.nan
        q_high = max(high for _, _, high in bounds) if status is SurfaceStatus.SHALLOWER else math.nan
    return BestDepth(size, math.exp(depth), math.exp(q_low), math.exp(q_high), status)


def _of_plausible_forms(surface: Surface, values: Floats) -> list[Floats]:
    """Of (draws,) values, in the order of `Surface.losses`: those of each form with a weight of `PLAUSIBLE` or more."""
    drawn = [one for one in surface.forms if len(one.drawn_theta)]
    parts = np.split(values, np.cumsum([len(one.drawn_theta) for one in drawn])[:-1])
    return [part for one, part in zip(drawn, parts, strict=True) if one.weight >= PLAUSIBLE]


def _middle_and_interval(values: Floats) -> tuple[float, float, float]:
    middle, low, high = np.quantile(values, (0.5, *INTERVAL))
    return float(middle), float(low), float(high)


def status_of(low: float, high: float, grid: Floats, outside: bool, told: bool) -> SurfaceStatus:
    """The trust in a best depth whose log has the 68% interval `low` to `high`, among the log depths of `grid`."""
    step = grid[1] - grid[0]
    if not told or step <= 0:  # one depth alone was tried
        return SurfaceStatus.NOT_IDENTIFIABLE
    at_low, at_high = low < grid[0] + step, high > grid[-1] - step
    if (at_low and at_high) or high - low > TOO_WIDE * (grid[-1] - grid[0]):
        return SurfaceStatus.NOT_IDENTIFIABLE
    if outside:
        return SurfaceStatus.EXTRAPOLATED
    if at_high:
        return SurfaceStatus.DEEPER
    return SurfaceStatus.SHALLOWER if at_low else SurfaceStatus.CONVERGED


def penalties(surface: Surface) -> list[Penalty]:
    """For each shape, in order, what its depth costs at its size; nothing is known of it where depth isn't told."""
    shapes = surface.shapes
    if not surface.told:
        return [unknown_penalty(SurfaceStatus.NOT_IDENTIFIABLE)] * len(shapes)
    sizes, best = best_losses(surface)
    own, fitted = surface.losses(shapes.x, shapes.z), surface.fitted(shapes.x, shapes.z)  # (draws, n), (n,)
    found = []
    for index, x in enumerate(shapes.x):
        low, high = tried_depths(shapes, x)
        grid = np.linspace(low, high, DEPTHS)
        losses = surface.losses(np.full_like(grid, x), grid)
        at, least = lowest(losses, grid)
        least = np.minimum(least, own[:, index])
        together = surface.fitted(np.full_like(grid, x), grid)
        cost = max(0.0, float(fitted[index] - lowest(together[None], grid)[1][0]))
        interval = interval_of_few(own[:, index], least, losses[:, together.argmin()], cost)
        needed = np.exp([_size_of(loss, row, sizes) for loss, row in zip(own[:, index], best, strict=True)])
        needs = _above(np.minimum(needed, shapes.size[index]), float(shapes.size.min()))
        _, at_low, at_high = _middle_and_interval(at)
        status = status_of(at_low, at_high, grid, outside=False, told=surface.told)
        if status is SurfaceStatus.NOT_IDENTIFIABLE:
            found.append(unknown_penalty(status))
        else:
            found.append(Penalty(cost, *interval, *needs, status))
    return found


def _above(sizes: Floats, smallest: float) -> tuple[float, float, float]:
    """The median of sizes and its 68% interval; NaN below the smallest shape, where only the upper end is known."""
    middle, low, high = _middle_and_interval(sizes)
    if middle < smallest:
        return math.nan, math.nan, max(high, smallest)
    return middle, low if low >= smallest else math.nan, high


def unknown_penalty(status: SurfaceStatus) -> Penalty:
    """The penalty of which nothing is known, for this reason."""
    nan = math.nan
    return Penalty(nan, nan, nan, nan, nan, nan, status)


def best_losses(surface: Surface) -> tuple[Floats, Floats]:
    """(SIZES,) log sizes, and the (draws, SIZES) lowest losses there among the depths that were tried."""
    shapes = surface.shapes
    sizes = np.linspace(shapes.x.min() - BEYOND, shapes.x.max(), SIZES)
    best = []
    for x in sizes:
        low, high = tried_depths(shapes, max(x, float(shapes.x.min())))
        # below the shapes the best depth goes on falling
        reach = low - max(0.0, float(shapes.x.min()) - x) / 2.0
        grid = np.linspace(max(reach, 0.0), max(high, reach + SAME_SIZE), DEPTHS)
        best.append(lowest(surface.losses(np.full_like(grid, x), grid), grid)[1])
    return sizes, np.stack(best, axis=1)


def _size_of(loss: float, best: Floats, sizes: Floats) -> float:
    """The log size whose best loss is `loss`; the smallest of `sizes` where even that is better."""
    falling = np.minimum.accumulate(best)
    return float(np.interp(-loss, -falling, sizes))


def overtakings(surface: Surface) -> list[Overtaking]:
    """For each two neighbouring depths with four shapes or more each: where the deeper one overtakes.

    None where depth isn't told.
    """
    shapes = surface.shapes
    if not surface.told:
        return []
    depths, counts = np.unique(shapes.depth, return_counts=True)
    found = []
    for shallow, deep in pairwise(depths[counts >= 4]):
        spans = [shapes.x[shapes.depth == depth] for depth in (shallow, deep)]
        low, high = max(x.min() for x in spans), min(x.max() for x in spans)
        if low >= high:
            continue
        grid = np.linspace(low, high, 4 * DEPTHS)
        gap = surface.losses(grid, np.full_like(grid, math.log(deep)))
        gap = gap - surface.losses(grid, np.full_like(grid, math.log(shallow)))
        crossing = _crossing(gap, grid)
        inside = np.isfinite(crossing)
        size = size_low = size_high = math.nan
        if inside.mean() >= SURE:
            size, size_low, size_high = _middle_and_interval(np.exp(crossing[inside]))
        share = float(inside.mean())
        found.append(Overtaking(float(shallow), float(deep), size, size_low, size_high, share))
    return found


def _crossing(gap: Floats, grid: Floats) -> Floats:
    """The (d,) places where (d, g) gaps turn from above zero to below; NaN where they don't, or more than once."""
    falls = (gap[:, :-1] > 0) & (gap[:, 1:] <= 0)
    rises = (gap[:, :-1] <= 0) & (gap[:, 1:] > 0)
    once = (falls.sum(axis=1) == 1) & ~rises.any(axis=1)
    at, rows = falls.argmax(axis=1), np.arange(len(gap))
    before, after = gap[rows, at], gap[rows, at + 1]
    share = np.where(once, before / np.where(once, before - after, 1.0), 0.0)
    return np.where(once, grid[at] + share * (grid[1] - grid[0]), np.nan)


def middle_sizes(shapes: Shapes, count: int = 5) -> npt.NDArray[np.float64]:
    """Sizes evenly spread in log size between the smallest and the largest shape."""
    return np.asarray(np.geomspace(shapes.size.min(), shapes.size.max(), count), dtype=np.float64)
