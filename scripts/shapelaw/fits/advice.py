"""The depth and width that a parameter budget is worth, by the transitions' law, with how sure that is.

The law gives for each depth the number of parameters in blocks from which a deeper network is better,
`N_transition(L) = 12 L d(L)^2` (Levine et al. 2020, eq. 10). A budget is of all parameters: the deeper the network, the
narrower, the less its embedding takes and the more is left for blocks. The advised depth is the first at which what is
left for blocks no longer exceeds `N_transition`. Its interval is over several forms of the law and their coefficients
(`shapelaw.fits.projection`), so it contains the doubt which form is right.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from shapelaw.errors import UserError
from shapelaw.fits.line import Floats
from shapelaw.fits.projection import INTERVAL, Form, first_depths
from shapelaw.specs.shapes import Shape

DRAWS = 4000
WIDE, WIDE_HEADS = 2048, 128  # the width from which heads of 128 are usual
HEAD_DIMS, FEW_HEADS = (64, 32, 16, 8), 4  # the first of them that leaves 4 heads
MULTIPLES = ((1024, 128), (256, 64), (64, 16), (0, 8))  # from a width on, widths are multiples of


@dataclass(frozen=True)
class Budget:
    """All parameters of a decoder and what its embeddings take of them.

    Attributes:
        params: all parameters.
        vocab_size: V.
        context_length: N, entries of a learned positional embedding; 0 where positions have no parameters.
        tied: whether the classifier is the embedding's matrix.
        rank: r of a token embedding factored as (V x r)(r x d); None is one V x d matrix. Tied, its V x r matrix is the
            classifier's too, behind a map from d to r (OPT-350M).
    """

    params: float
    vocab_size: int
    context_length: int = 0
    tied: bool = False
    rank: int | None = None

    @property
    def per_width(self) -> float:
        """Parameters of embeddings and classifier for each unit of width."""
        table = self.vocab_size if self.rank is None else self.rank
        shared = 0 if self.rank is None else self.rank
        return table + (shared if self.tied else self.vocab_size) + self.context_length

    @property
    def fixed(self) -> float:
        """Parameters that no width changes: the (V x r) of a factored embedding."""
        return 0 if self.rank is None else self.vocab_size * self.rank

    def width_at(self, depth: npt.ArrayLike) -> Floats:
        """The width, a real number, at which a network of this depth has the budget's parameters.

        Biases and norms, about 13 L d, are left out: below 1% from width 110 on.

        Raises:
            UserError: the embedding alone takes the budget.
        """
        left = self.params - self.fixed
        if left <= 0:
            raise UserError(
                f"The embedding's first factor, {self.vocab_size:,} x {self.rank:,}, has {self.fixed:,.0f} parameters, "
                f"and the budget is {self.params:,.0f}; take a lower rank, a smaller vocabulary or a larger budget."
            )
        blocks = 12.0 * np.asarray(depth, dtype=np.float64)
        root = np.sqrt(self.per_width**2 + 4.0 * blocks * left)
        return np.asarray(2.0 * left / (self.per_width + root))

    def block_params(self, depth: npt.ArrayLike) -> Floats:
        """`12 L d^2` at `width_at(L)`."""
        return np.asarray(12.0 * np.asarray(depth, dtype=np.float64) * self.width_at(depth) ** 2)


@dataclass(frozen=True)
class Advice:
    """The advised real depth and width, with 68% intervals over the forms of the law.

    Attributes:
        depth: median depth.
        depth_low, depth_high: its interval; infinite where a form never reaches the size.
        width: width at that depth.
        width_low, width_high: its interval, of the opposite depths; 0 at an infinite one.
        block_params: parameters of the blocks at that depth.
        unreached: the share of draws in which up to 1,000 layers are worth the budget.
    """

    depth: float
    depth_low: float
    depth_high: float
    width: float
    width_low: float
    width_high: float
    block_params: float
    unreached: float


def advise(forms: Sequence[Form], budget: Budget, *, draws: int = DRAWS, seed: int = 0) -> Advice:
    """The depth from which a deeper network is not worth the budget, over draws of the law.

    Raises:
        UserError: the law has no form, or the embedding alone takes the budget.
    """
    if not forms:
        raise UserError("The fit has no law to advise by: it needs at least 3 transitions on a rising line.")
    at = first_depths(forms, budget.block_params, draws=draws, seed=seed)
    low, middle, high = (
        float(value) for value in np.quantile(at, (INTERVAL[0], 0.5, INTERVAL[1]), method="nearest")
    )
    widths = [float(budget.width_at(value)) if math.isfinite(value) else 0.0 for value in (high, middle, low)]
    blocks = float(budget.block_params(middle)) if math.isfinite(middle) else math.nan
    return Advice(middle, low, high, widths[1], widths[0], widths[2], blocks, float(np.isinf(at).mean()))


def rounded_shape(budget: Budget, depth: float, *, head_dim: int | None = None) -> Shape:
    """The shape near a real depth that hardware likes.

    The width is a multiple of 128 from 1,024 on (of 64, 16 and 8 below) and of the heads' dimension. Of the widths
    beside the real one, each with the depths that bring it near the budget, the one with the least relative errors of
    width and parameters together is taken.

    Args:
        depth: the advised depth.
        head_dim: dimension of a head; 128 from width 2,048 on, else 64, or less where that leaves fewer than 4 heads.
    """
    real = float(budget.width_at(depth))
    dim = head_dim or _usual_head_dim(real)
    step = math.lcm(next(step for least, step in MULTIPLES if real >= least), dim)
    found = []
    for width in {max(step, math.floor(real / step) * step), math.ceil(real / step) * step}:
        exact = (budget.params - budget.fixed - budget.per_width * width) / (12.0 * width**2)
        for layers in {max(1, math.floor(exact)), max(1, math.ceil(exact))}:
            shape = Shape(
                layers,
                width,
                width // dim,
                budget.vocab_size,
                max(1, budget.context_length),
                dim,
                budget.rank,
            )
            off = abs(math.log(width / real)) + abs(math.log(params_of(shape, budget) / budget.params))
            found.append((off, layers, shape))
    return min(found, key=lambda one: one[:2])[2]


def _usual_head_dim(width: float) -> int:
    if width >= WIDE:
        return WIDE_HEADS
    return next((dim for dim in HEAD_DIMS if width >= FEW_HEADS * dim), HEAD_DIMS[-1])


def params_of(shape: Shape, budget: Budget) -> int:
    """All parameters of a shape whose embeddings are as the budget has them."""
    classifier = shape.width * shape.vocab_size
    without_positions = shape.total_params - (0 if budget.context_length else shape.width)
    if not budget.tied:
        return without_positions
    return without_positions - classifier + (0 if budget.rank is None else shape.width * budget.rank)
