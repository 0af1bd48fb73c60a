"""What depths cost by a surface of one's own, asked as the evidence is (`shape_costs.py`): own sizes, or a question's.

A surface knows the depths that were tried near a size, so depths are compared between these alone. Where the size lies
outside of the shapes', its draws are moved in log depth besides, the more the farther: forms that agree among the
shapes differ beyond them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from shapelaw.errors import UserError
from shapelaw.fits.curves import SizeAxis
from shapelaw.fits.line import Floats
from shapelaw.fits.projection import SizeRule
from shapelaw.fits.shape_answer import Witness
from shapelaw.fits.shape_costs import (
    DEPTHS,
    OUTSIDE,
    WITHIN,
    Best,
    Clock,
    Costs,
    Evidence,
    Question,
    Spread,
    ask,
    outside,
)
from shapelaw.fits.surface import Surface
from shapelaw.fits.surface_answers import (
    FARTHER,
    INTERVAL,
    ROLLED_OUT,
    BestDepth,
    status_of,
    tried_depths,
)
from shapelaw.fits.surface_shapes import SurfaceStatus
from shapelaw.specs.sizes import SAME_SIZE, Counting, big

STEP = 0.02  # log depths to which the moves of draws are rounded
ANSWERED = (SurfaceStatus.CONVERGED, SurfaceStatus.EXTRAPOLATED)
NO_CLOCK = Clock(1.0, DEPTHS[[0, -1]], np.zeros(2), "no machine")
SizeOf = Callable[[Floats, Floats], Floats]


@dataclass(frozen=True)
class SurfaceDraws:
    """The draws of a surface; `size_of` gives its (p,) log sizes from (p,) logs of blocks and of depths."""

    surface: Surface
    size_of: SizeOf

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
        x = self.size_of(log_blocks, log_depth)
        moves = np.round(np.broadcast_to(shift, len(self)) / STEP).astype(int)
        found = np.empty((len(self), len(x)))
        first = 0
        for one in self.surface.forms:
            mine = moves[first : first + len(one.drawn_theta)]
            for move in np.unique(mine):
                rows = np.flatnonzero(mine == move)
                theta, coefficients = one.drawn_theta[rows], one.drawn_coefficients[rows]
                found[first + rows] = one.form.model.values(
                    theta, coefficients, x, log_depth - STEP * float(move)
                )
            first += len(mine)
        return found

    def middle(self, log_blocks: Floats, log_depth: Floats, log_tokens: float) -> Floats:
        """(p,) losses in nats by the forms' own fits, which noise bends less than their draws."""
        return self.surface.fitted(self.size_of(log_blocks, log_depth), log_depth)


@dataclass(frozen=True)
class SizeCosts:
    """The costs of depths by a surface, and the trust that its best depth deserves."""

    costs: Costs
    status: SurfaceStatus


def costs_of_size(surface: Surface, best: BestDepth, within: float = WITHIN) -> SizeCosts | None:
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
    evidence = _evidence(surface, lambda log_blocks, _: log_blocks, along, span)
    question = Question(best.size, Counting(SizeAxis.BLOCK), 1.0, NO_CLOCK, within=within)
    found = ask(evidence, question)
    whole = sorted({max(1, math.floor(best.depth)), math.ceil(best.depth)})
    depth = min(whole, key=lambda one: _loss_at(found, one))
    low, high = min(best.low, depth), max(best.high, depth)
    return SizeCosts(replace(found, best=Best(float(depth), low, high, low, high)), best.status)


def _loss_at(costs: Costs, depth: int) -> float:
    log_depth = np.log([depth])
    return float(costs.evidence.draws.middle(costs.log_blocks[:1], log_depth, 0.0)[0])


def new_run(surface: Surface, size: float, depth: float, seed: int = 0) -> tuple[float, float, float]:
    """The loss of one more run of a size and depth, in nats, with its 68% interval; the scatter of runs is in it."""
    at = np.log([size]), np.log([depth])
    losses = surface.losses(*at)[:, 0]
    scattered = losses + surface.scatter * np.random.default_rng(seed).standard_normal(len(losses))
    low, high = np.quantile(scattered, INTERVAL)
    return float(surface.fitted(*at)[0]), float(low), float(high)


@dataclass(frozen=True)
class OwnSurface:
    """A surface of one's own as a witness.

    Attributes:
        surface: fitted, with draws.
        axis: what its sizes count.
        rule: its size from depth and width.
        tokens: that its runs had; NaN where they are not known or follow the size.
        source: its folder.
    """

    surface: Surface
    axis: SizeAxis
    rule: SizeRule
    tokens: float
    source: str

    def witness(self, question: Question) -> Witness:
        """What it says about the best depth of a question.

        Raises:
            UserError: the vocabulary leaves no room for blocks.
        """
        found = self.ask(question)
        best, span = found.costs.best, found.costs.evidence.blocks
        beyond = math.exp(outside(found.costs.blocks, span))
        remarks = []
        if math.isfinite(self.tokens) and abs(math.log(question.tokens / self.tokens)) > SAME_SIZE:
            remarks.append(f"Its runs saw {big(self.tokens)} tokens, these {big(question.tokens)}.")
        if found.status is SurfaceStatus.EXTRAPOLATED:
            remarks.append("Its interval is wider the farther the size lies outside of its shapes'.")
        said = {
            SurfaceStatus.DEEPER: f"above {best.own_low:,.0f}",
            SurfaceStatus.SHALLOWER: f"below {best.own_high:,.0f}",
        }.get(found.status, "" if found.status in ANSWERED else "can't tell")
        depth, low, high = (math.inf,) * 3 if said else (best.depth, best.low, best.high)
        return Witness(self.source, "your own", depth, low, high, span, beyond, tuple(remarks), said)

    def costs(self, question: Question, per_log_tokens: float) -> Costs | None:
        """The costs of a question's depths where the surface tells a best one; else None.

        Args:
            question: the question; at equal time only depths that were timed are told.
            per_log_tokens: see `ask`.
        """
        try:
            found = self.ask(question, per_log_tokens)
        except UserError:  # no room beside the vocabulary, or depths that were never timed: nothing is told
            return None
        return found.costs if found.status in ANSWERED else None

    def ask(self, question: Question, per_log_tokens: float = 0.0) -> SizeCosts:
        """The costs of a question's depths by the surface, along its own sizes of the question's blocks.

        Args:
            question: the question.
            per_log_tokens: standard deviation by which best depths are wider for each e-fold of tokens between the
                surface's runs and the question.

        Raises:
            UserError: the vocabulary leaves no room for blocks, or the best depth at equal time was never timed.
        """
        shapes, counting = self.surface.shapes, question.counting
        widths = np.array([counting.width_at(question.size, math.exp(z)) for z in DEPTHS])
        along = self._log_size(math.log(12.0) + DEPTHS + 2.0 * np.log(widths), DEPTHS)
        blocks = self.rule.blocks * shapes.depth * shapes.width**2 if self._converts else shapes.size
        span = float(blocks.min()), float(blocks.max())
        evidence = _evidence(self.surface, self._log_size, along, span, self.source)
        if math.isfinite(self.tokens):
            spread = replace(evidence.spread, per_log_tokens=per_log_tokens)
            evidence = replace(evidence, spread=spread, tokens=(self.tokens, self.tokens))
        found = ask(evidence, question)
        out = outside(found.blocks, span)
        ends = math.log(found.best.own_low), math.log(found.best.own_high)
        status = status_of(*ends, evidence.grid, out > SAME_SIZE, self.surface.told)
        return SizeCosts(found, SurfaceStatus.NOT_IDENTIFIABLE if out > math.log(OUTSIDE) else status)

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


def _evidence(
    surface: Surface, size_of: SizeOf, along: Floats, span: tuple[float, float], name: str = ""
) -> Evidence:
    """The surface as evidence on the depths that were tried at the (201,) log sizes `along` all of `DEPTHS`."""
    shapes = surface.shapes
    inside = (along >= shapes.x.min() - SAME_SIZE) & (along <= shapes.x.max() + SAME_SIZE)
    tried = _tried(surface, along, inside)
    if not inside.any():
        ends = max(0.0, float(shapes.z.min()) - FARTHER), float(shapes.z.max()) + FARTHER
    elif np.ptp(along) == 0 or not tried.any():
        ends = tried_depths(shapes, float(along[inside].mean()))
    else:
        ends = float(DEPTHS[tried].min()), float(DEPTHS[tried].max())
    return Evidence(
        SurfaceDraws(surface, size_of),
        Spread(0.0, ROLLED_OUT, 0.0),
        span,
        span,
        (1.0, 1e30),
        NO_CLOCK,
        name,
        np.linspace(*ends, len(DEPTHS)),
        least_tokens=0.0,
        least_size=float(shapes.size.min()),
        few_shapes=True,
    )


def _tried(surface: Surface, along: Floats, inside: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """(201,) whether a depth of `DEPTHS` was tried at its log size `along`, where this is `inside` the shapes'."""
    spans = {x: tried_depths(surface.shapes, x) for x in set(along[inside].tolist())}
    nothing = math.inf, -math.inf
    ends = np.array([spans.get(x, nothing) for x in along.tolist()])
    return np.asarray((ends[:, 0] <= DEPTHS) & (ends[:, 1] >= DEPTHS))
