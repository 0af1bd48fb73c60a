"""The answers that a surface gives: the best depth of a size, what a shape costs, where a depth overtakes another.

What depths cost is asked as of the public evidence (`shape_costs.py`), at a surface's own sizes or at those of a
question. A surface knows the depths that were tried near a size, so depths are compared between these alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from shapelaw.advice.answer.answer import Witness
from shapelaw.advice.answer.costs import (
    DEPTHS,
    OUTSIDE,
    WITHIN,
    Best,
    Costs,
    Evidence,
    Question,
    Spread,
    ask,
    interval_of_few,
    outside,
)
from shapelaw.advice.answer.sizes import Counting, big
from shapelaw.advice.evidence.clocks import Clock, log_blocks_at
from shapelaw.advice.evidence.losses import lowest
from shapelaw.advice.own_runs.budgets import STANDARD, SizeRule
from shapelaw.advice.surface.average import Surface
from shapelaw.advice.surface.forms import Shapes, SurfaceStatus
from shapelaw.errors import UserError
from shapelaw.fits.line import Floats
from shapelaw.fits.noise import INTERVAL
from shapelaw.specs.sizes import SAME_SIZE, SizeAxis

COMPARED = 81  # depths that are compared at a size
SIZES = 41  # sizes at which the best loss is known, between which it is interpolated
NEIGHBOURS = math.log(2.0)  # shapes whose size is less than a factor 2 away show which depths were tried
# an interval that fills more than this share of the depths tried says nothing
TOO_WIDE = 0.75
# of the size axis below and above the shapes, searched for the size that a loss needs
BEYOND = math.log(4.0)
FARTHER = math.log(8.0)  # of the depth, beyond the shapes, where the size is beyond them
# of the draws' interval, at least; with it 69 to 77% of intervals contain the truth (calibration.md)
DRAWN = 0.4
ANSWERED = (SurfaceStatus.CONVERGED, SurfaceStatus.EXTRAPOLATED)
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

    status: SurfaceStatus
    loss: float = math.nan
    low: float = math.nan
    high: float = math.nan
    needed: float = math.nan
    needed_low: float = math.nan
    needed_high: float = math.nan


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
    beyond = x < shapes.x.min() - SAME_SIZE or x > shapes.x.max() + SAME_SIZE
    if beyond:
        low, high = float(shapes.z.min()) - FARTHER, float(shapes.z.max()) + FARTHER
        low = max(low, 0.0)
    else:
        low, high = tried_depths(shapes, x)
    grid = np.linspace(low, high, COMPARED * (2 if beyond else 1))
    return BestDepth(size, *_best_among(surface, np.full_like(grid, x), grid, beyond))


def _best_among(
    surface: Surface, x: Floats, z: Floats, beyond: bool
) -> tuple[float, float, float, SurfaceStatus]:
    """The best depth among (p,) log depths `z` of log sizes `x`, the ends of its interval, and its status.

    An end of the interval is as far off as the best depth moves that way where the shallower or the deeper half of the
    shapes is left out, and `DRAWN` of the draws' own interval at least: what all forms do wrong moves the best depth
    however many shapes there are, and no draw shows it. Where the best depth is a bound, it and the other end are NaN.
    """
    draws, _ = lowest(surface.losses(x, z), z)
    middle, low, high = drawn = _middle_and_interval(draws)
    moves = surface.moves(x, z)
    if moves is not None:
        low = max(middle - max(DRAWN * (middle - low), float(-moves.min())), float(z[0]))
        high = min(middle + max(DRAWN * (high - middle), float(moves.max())), float(z[-1]))
    status = status_of(min(low, drawn[1]), max(high, drawn[2]), z, beyond, surface.told)
    if status not in ANSWERED:
        least, most = _bounds(surface, draws, x, z)
        middle = math.nan
        low = min(low, least) if status is SurfaceStatus.DEEPER else math.nan
        high = max(high, most) if status is SurfaceStatus.SHALLOWER else math.nan
    return math.exp(middle), math.exp(low), math.exp(high), status


def _bounds(surface: Surface, draws: Floats, x: Floats, z: Floats) -> tuple[float, float]:
    """The weakest bounds of a log depth by each form with a weight of `PLAUSIBLE` or more, and by its halves.

    Where no form has that weight, as one that is asked alone may not, those of the heaviest form.
    """
    drawn = [form for form in surface.forms if len(form.drawn_theta)]
    parts = np.split(draws, np.cumsum([len(form.drawn_theta) for form in drawn])[:-1])
    least = min(PLAUSIBLE, max(form.weight for form in drawn))
    ends = np.concatenate(
        [
            [*np.quantile(part, INTERVAL), *form.places(x, z)]
            for form, part in zip(drawn, parts, strict=True)
            if form.weight >= least
        ]
    )
    return float(ends.min()), float(ends.max())


def _middle_and_interval(values: Floats) -> tuple[float, float, float]:
    middle, low, high = np.quantile(values, (0.5, *INTERVAL))
    return float(middle), float(low), float(high)


def status_of(low: float, high: float, grid: Floats, beyond: bool, told: bool) -> SurfaceStatus:
    """The trust in a best depth whose log has the 68% interval `low` to `high`, among the log depths of `grid`."""
    step = grid[1] - grid[0]
    if not told or step <= 0:  # one depth alone was tried
        return SurfaceStatus.NOT_IDENTIFIABLE
    at_low, at_high = low < grid[0] + step, high > grid[-1] - step
    if (at_low and at_high) or high - low > TOO_WIDE * (grid[-1] - grid[0]):
        return SurfaceStatus.NOT_IDENTIFIABLE
    if beyond:  # one layer is an end by itself; at any other the answer would be the grid's
        at_end = at_high or (at_low and grid[0] > 0)
        return SurfaceStatus.NOT_IDENTIFIABLE if at_end else SurfaceStatus.EXTRAPOLATED
    if at_high:
        return SurfaceStatus.DEEPER
    return SurfaceStatus.SHALLOWER if at_low else SurfaceStatus.CONVERGED


def penalties(surface: Surface) -> list[Penalty]:
    """For each shape, in order, what its depth costs at its size; nothing is known of it where depth isn't told."""
    shapes = surface.shapes
    if not surface.told:
        return [Penalty(SurfaceStatus.NOT_IDENTIFIABLE)] * len(shapes)
    sizes, best = best_losses(surface)
    own, fitted = surface.losses(shapes.x, shapes.z), surface.fitted(shapes.x, shapes.z)  # (draws, n), (n,)
    found = []
    for index, x in enumerate(shapes.x):
        low, high = tried_depths(shapes, x)
        grid = np.linspace(low, high, COMPARED)
        losses = surface.losses(np.full_like(grid, x), grid)
        at, least = lowest(losses, grid)
        least = np.minimum(least, own[:, index])
        together = surface.fitted(np.full_like(grid, x), grid)
        cost = max(0.0, float(fitted[index] - lowest(together[None], grid)[1][0]))
        interval = interval_of_few(own[:, index], least, losses[:, together.argmin()], cost)
        needed = np.exp([_size_of(loss, row, sizes) for loss, row in zip(own[:, index], best, strict=True)])
        needs = _above(np.minimum(needed, shapes.size[index]), float(shapes.size.min()))
        _, at_low, at_high = _middle_and_interval(at)
        status = status_of(at_low, at_high, grid, beyond=False, told=surface.told)
        told = () if status is SurfaceStatus.NOT_IDENTIFIABLE else (cost, *interval, *needs)
        found.append(Penalty(status, *told))
    return found


def _above(sizes: Floats, smallest: float) -> tuple[float, float, float]:
    """The median of sizes and its 68% interval; NaN below the smallest shape, where only the upper end is known."""
    middle, low, high = _middle_and_interval(sizes)
    if middle < smallest:
        return math.nan, math.nan, max(high, smallest)
    return middle, low if low >= smallest else math.nan, high


def best_losses(surface: Surface) -> tuple[Floats, Floats]:
    """(SIZES,) log sizes, and the (draws, SIZES) lowest losses there among the depths that were tried."""
    shapes = surface.shapes
    sizes = np.linspace(shapes.x.min() - BEYOND, shapes.x.max(), SIZES)
    best = []
    for x in sizes:
        low, high = tried_depths(shapes, max(x, float(shapes.x.min())))
        # below the shapes the best depth goes on falling
        reach = low - max(0.0, float(shapes.x.min()) - x) / 2.0
        grid = np.linspace(max(reach, 0.0), max(high, reach + SAME_SIZE), COMPARED)
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
        grid = np.linspace(low, high, 4 * COMPARED)
        gap = surface.losses(grid, np.full_like(grid, math.log(deep)))
        gap = gap - surface.losses(grid, np.full_like(grid, math.log(shallow)))
        crossing = _crossing(gap, grid)
        inside = np.isfinite(crossing)
        share, size = float(inside.mean()), (math.nan,) * 3
        if share >= SURE:
            size = _middle_and_interval(np.exp(crossing[inside]))
        found.append(Overtaking(float(shallow), float(deep), *size, share))
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


STEP = 0.02  # log depths to which the moves of draws are rounded
AS_IT_IS = Spread(0.0, 0.0, 0.0, 0.0, 0.0)
NO_CLOCK = Clock(1.0, DEPTHS[[0, -1]], np.zeros(2), "no machine")


def costs_of_size(surface: Surface, best: BestDepth, within: float = WITHIN) -> Costs | None:
    """The costs of depths at one size, as the surface's axis counts it; None where no best depth can be told,
    or the size is more than three times outside of the shapes'.

    Args:
        surface: with draws.
        best: its best depth of the size.
        within: nats that count as nothing.
    """
    shapes = surface.shapes
    span = float(shapes.size.min()), float(shapes.size.max())
    if best.status not in ANSWERED or outside(best.size, span) > math.log(OUTSIDE):
        return None
    along = np.full_like(DEPTHS, math.log(best.size))
    evidence = OwnSurface(surface).evidence(along, span)
    question = Question(best.size, Counting(SizeAxis.BLOCK), 1.0, NO_CLOCK, within=within)
    found = ask(evidence, question)
    whole = sorted({max(1, math.floor(best.depth)), math.ceil(best.depth)})
    losses = found.evidence.draws.middle(found.log_blocks[: len(whole)], np.log(whole), 0.0)
    depth = whole[int(losses.argmin())]
    low, high = min(best.low, depth), max(best.high, depth)
    return replace(found, best=Best(float(depth), low, high, low, high))


def new_run(surface: Surface, size: float, depth: float) -> tuple[float, float, float]:
    """The loss of one more run of a size and depth, in nats, with its 68% interval; the scatter of runs is in it."""
    at = np.log([size]), np.log([depth])
    losses = surface.losses(*at)[:, 0]
    scattered = losses + surface.scatter * np.random.default_rng(0).standard_normal(len(losses))
    low, high = np.quantile(scattered, INTERVAL)
    return float(surface.fitted(*at)[0]), float(low), float(high)


@dataclass(frozen=True)
class OwnSurface:
    """A surface of one's own as a witness, and its draws by logs of blocks and depths.

    Attributes:
        surface: fitted, with draws.
        axis: what its sizes count.
        rule: its size from depth and width.
        tokens: that its runs had; NaN where they are not known or follow the size.
        source: its folder.
    """

    surface: Surface
    axis: SizeAxis = SizeAxis.BLOCK
    rule: SizeRule = STANDARD
    tokens: float = math.nan
    source: str = ""

    def __len__(self) -> int:
        return self.surface.draws

    def losses(
        self, log_blocks: Floats, log_depth: Floats, log_tokens: float, shift: Floats | float = 0.0
    ) -> Floats:
        """(D, p) losses in nats; tokens change nothing.

        Args:
            log_blocks, log_depth: (p,) logs of the parameters of the blocks and of the layers.
            log_tokens: log of the number of tokens.
            shift: (D,) what the surface is moved by in log depth, which is rounded to `STEP`.
        """
        moves = STEP * np.round(np.asarray(shift) / STEP)
        return self.surface.losses(self._log_size(log_blocks, log_depth), log_depth, moves)

    def middle(self, log_blocks: Floats, log_depth: Floats, log_tokens: float) -> Floats:
        """(p,) losses in nats by the forms' own fits, which noise bends less than their draws."""
        return self.surface.fitted(self._log_size(log_blocks, log_depth), log_depth)

    def witness(self, question: Question) -> Witness:
        """What it says about the best depth of a question.

        Raises:
            UserError: the vocabulary leaves no room for blocks.
        """
        found, status = self.ask(question)
        best, span = found.best, found.evidence.blocks
        beyond = math.exp(outside(found.blocks, span))
        remarks = []
        if math.isfinite(self.tokens) and abs(math.log(question.tokens / self.tokens)) > SAME_SIZE:
            remarks.append(f"Its runs saw {big(self.tokens)} tokens, these {big(question.tokens)}.")
        if status is SurfaceStatus.EXTRAPOLATED:
            remarks.append("Its interval is wider the farther the size lies outside of its shapes'.")
        if beyond > 1 + SAME_SIZE and question.counting.axis is not self.axis is SizeAxis.BLOCK:
            remarks.append(
                f"Its sizes are parameters of the blocks, of which these have about {big(found.blocks)}; "
                "--size block compares at those."
            )
        bounds = {
            SurfaceStatus.DEEPER: f"above {np.floor(best.own_low):,.0f}",
            SurfaceStatus.SHALLOWER: f"below {max(2.0, np.ceil(best.own_high)):,.0f}",
        }
        said = bounds.get(status, "" if status in ANSWERED else "can't tell")
        depth, low, high = (math.inf,) * 3 if said else (best.depth, best.low, best.high)
        told = tuple(remarks), said, status in bounds
        return Witness(self.source, "your own", depth, low, high, span, beyond, *told)

    def costs(self, question: Question, per_log_tokens: float) -> Costs | None:
        """The costs of a question's depths where the surface tells a best one; else None.

        Args:
            question: the question; at equal time only depths that were timed are told.
            per_log_tokens: see `ask`.
        """
        try:
            found, status = self.ask(question, per_log_tokens)
        except UserError:  # no room beside the vocabulary, or depths that were never timed: nothing is told
            return None
        return found if status in ANSWERED else None

    def ask(self, question: Question, per_log_tokens: float = 0.0) -> tuple[Costs, SurfaceStatus]:
        """The costs of a question's depths by the surface, along its own sizes of the question's blocks, and the trust
        that its best depth deserves.

        Args:
            question: the question.
            per_log_tokens: standard deviation by which best depths are wider for each e-fold of tokens between the
                surface's runs and the question.

        Raises:
            UserError: the vocabulary leaves no room for blocks, or the best depth at equal time was never timed.
        """
        shapes = self.surface.shapes
        along = self._log_size(log_blocks_at(question.size, question.counting, DEPTHS), DEPTHS)
        blocks = self.rule.blocks * shapes.depth * shapes.width**2 if self._converts else shapes.size
        span = float(blocks.min()), float(blocks.max())
        evidence = self.evidence(along, span)
        if math.isfinite(self.tokens):
            spread = replace(evidence.spread, per_log_tokens=per_log_tokens, per_log_fewer=per_log_tokens)
            evidence = replace(evidence, spread=spread, tokens=(self.tokens, self.tokens))
        found = ask(evidence, question)
        out = outside(found.blocks, span)
        x = self._log_size(found.log_blocks, evidence.grid)
        _, low, high, status = _best_among(self.surface, x, evidence.grid, out > SAME_SIZE)
        found = replace(found, best=_as_wide(found, low, high))
        return found, SurfaceStatus.NOT_IDENTIFIABLE if out > math.log(OUTSIDE) else status

    def evidence(self, along: Floats, span: tuple[float, float]) -> Evidence:
        """The surface as evidence on the depths that were tried at the (201,) log sizes `along` all of `DEPTHS`."""
        shapes = self.surface.shapes
        inside = (along >= shapes.x.min() - SAME_SIZE) & (along <= shapes.x.max() + SAME_SIZE)
        tried = _tried(self.surface, along, inside)
        if not inside.any():
            ends = max(0.0, float(shapes.z.min()) - FARTHER), float(shapes.z.max()) + FARTHER
        elif np.ptp(along) == 0 or not tried.any():
            ends = tried_depths(shapes, float(along[inside].mean()))
        else:
            ends = float(DEPTHS[tried].min()), float(DEPTHS[tried].max())
        grid, smallest = np.linspace(*ends, len(DEPTHS)), float(shapes.size.min())
        spans = span, span, (1.0, 1e30)  # any number of tokens
        given = self, AS_IT_IS, *spans, NO_CLOCK, self.source, grid
        return Evidence(*given, least_tokens=0.0, least_size=smallest, few_shapes=True)

    @property
    def _converts(self) -> bool:
        return self.axis is not SizeAxis.BLOCK and self.rule.exact

    def _log_size(self, log_blocks: Floats, log_depth: Floats) -> Floats:
        """Logs of sizes as the surface counts them, from those of blocks: its own embeddings beside them."""
        if not self._converts:
            return log_blocks
        depth, blocks = np.exp(log_depth), np.exp(log_blocks)
        width = np.sqrt(blocks / (self.rule.blocks * depth))
        return np.asarray(np.log(blocks + (self.rule.layers * depth + self.rule.table) * width))


def _as_wide(costs: Costs, low: float, high: float) -> Best:
    """The best depth of a comparison with the interval of a surface, and by what moves ridges and times besides."""
    best = costs.best
    low, high = min(low, best.depth), max(high, best.depth)
    down, up = (math.hypot(math.log(end / best.depth), costs.shift) for end in (low, high))
    ends = best.depth * math.exp(-down), best.depth * math.exp(up)
    if costs.block_errors is not None:
        ends = min(ends[0], best.low), max(ends[1], best.high)
    return Best(best.depth, *ends, low, high)


def _tried(surface: Surface, along: Floats, inside: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """(201,) whether a depth of `DEPTHS` was tried at its log size `along`, where this is `inside` the shapes'."""
    spans = {x: tried_depths(surface.shapes, x) for x in set(along[inside].tolist())}
    nothing = math.inf, -math.inf
    ends = np.array([spans.get(x, nothing) for x in along.tolist()])
    return np.asarray((ends[:, 0] <= DEPTHS) & (ends[:, 1] >= DEPTHS))
