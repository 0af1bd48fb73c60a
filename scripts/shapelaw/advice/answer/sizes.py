"""The shapes that one size can have, and sizes as options of commands and in words.

For a depth these are the width, heads and feed-forward width that hardware likes. A size is that of all parameters, of
the blocks, or of what is multiplied for every token (FLOPs). The deeper a network of one size, the narrower it is, and
the less of it is embedding. Widths are multiples of 16 below 1,024 and of 64 from there on, so the feed-forward width
makes up what is missing to the size.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from shapelaw.errors import UserError
from shapelaw.specs.shapes import EQUAL_SHARE, Block, Shape
from shapelaw.specs.sizes import SizeAxis, number_of

if TYPE_CHECKING:  # an answer for a size needs neither
    import numpy as np
    import numpy.typing as npt

    Real = TypeVar("Real", float, npt.NDArray[np.float64])


def size_of(text: str) -> float:
    """The number of a text (`number_of`) that is a size, so positive.

    Raises:
        ValueError: the text is no positive number.
    """
    value = number_of(text)
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"{text} is not a positive number")
    return value


def option_number(option: str, text: str, least: float, whole: bool = False) -> float:
    """The number of an option of a command, written as a size.

    Raises:
        UserError: it is none, is below `least`, or isn't whole where it has to be.
    """
    try:
        value = size_of(text)
    except ValueError:
        value = -1.0
    if value < least or (whole and not value.is_integer()):
        kind = "a whole number" if whole else "a number"
        raise UserError(
            f"{option} is {text}; give {kind} of at least {least:,g}, such as 1.3B, 32k or 1,300,000,000 (commas "
            "separate thousands; use a point for decimals)."
        )
    return value


def option_whole(option: str, text: str, least: int = 1) -> int:
    """The same of a whole number."""
    return int(option_number(option, text, least, whole=True))


def big(number: float) -> str:
    """A number in three digits, as people say it: `1.3 billion`."""
    for unit, word in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if number >= unit:
            return f"{number / unit:,.3g} {word}"
    return f"{float(f'{number:.3g}'):,.0f}"


# widths from `least` on are multiples of `step`, and so are feed-forward widths of theirs
WIDTH_STEPS = ((1024, 64), (64, 16), (0, 8))
HEAD_GROUP = 4  # heads are multiples of it, so that they can be shared out among GPUs
# dimensions of a head, by preference: below and from WIDE on
HEAD_DIMS = (64, 128, 96, 80, 112, 72, 88, 104, 120, *range(66, 128, 2))
WIDE_HEAD_DIMS = (128, 64, *HEAD_DIMS[2:])
WIDE = 2048
WIDTH_RANGE = 0.16  # log width from the real one within which heads are chosen
# log width that a head's dimension is worth by its divisor
DISLIKED = ((64, 0.0), (16, 0.03), (8, 0.06), (1, 0.12))
FF_RANGE = (0.6, 1.6)  # feed-forward widths that are taken, over the block's usual one


@dataclass(frozen=True)
class Counting:
    """What a size counts, and the rest of a network that it depends on.

    Attributes:
        axis: all parameters; the weights of the blocks' matrices; or FLOPs, as the weights that are multiplied for
            every token (6 FLOPs each in training): those of the blocks and the classifier. Scores of attention, which
            follow the context, are not among them.
        vocab_size: V.
        tied: whether the classifier is the embedding's matrix.
        block: Llama's (RMSNorm, SwiGLU of 8/3 d) or GPT-2's (LayerNorm, GELU of 4 d, biases).
        positions: entries of a learned positional embedding; 0 where positions have no parameters.
        rank: r of a token embedding factored as (V x r)(r x d); None is one V x d matrix. One that is tied has another
            map, (d x r), before its classifier.
        kv_heads: heads of keys and values of Llama's block; None is as many as heads.
    """

    axis: SizeAxis = SizeAxis.TOTAL
    vocab_size: int = 50257
    tied: bool = False
    block: Block = "llama"
    positions: int = 0
    rank: int | None = None
    kv_heads: int | None = None

    def size(self, shape: Shape) -> int:
        """The size of a shape, whose embeddings are taken as these rules have them."""
        d, blocks = shape.width, shape.block_params
        if self.axis is SizeAxis.BLOCK:
            return blocks
        if self.axis is SizeAxis.FLOPS:
            table, fixed, _ = self._terms()
            return blocks + round(table * d + fixed)
        plain = self.shape(shape.depth, d, shape.attention_dim, shape.hidden_width, shape.heads)
        other_blocks = blocks - plain.block_params  # other heads of keys, or another number of maps
        no_positions = self.block != "llama" and not self.positions
        back = d * self.rank if self.rank is not None and self.tied else 0
        return plain.total_params + other_blocks + back - (d if no_positions else 0)

    def shape(
        self, depth: int, width: int, head_dim: int, ff_width: int | None, heads: int | None = None
    ) -> Shape:
        """The plain shape of these sizes, as many heads as share the width unless given."""
        return Shape(
            depth=depth,
            width=width,
            heads=width // head_dim if heads is None else heads,
            vocab_size=self.vocab_size,
            context_length=max(1, self.positions),
            attention_dim=head_dim,
            embedding_rank=self.rank,
            ff_width=ff_width,
            block=self.block,
            kv_heads=self.kv_heads,
            tied=self.tied,
        )

    @property
    def head_group(self) -> int:
        """What a number of heads has to be a multiple of, by the heads of keys."""
        return math.lcm(HEAD_GROUP, self.kv_heads or 1)

    @property
    def fixed(self) -> float:
        """The part of a size that no width changes: the first factor of an embedding in two."""
        return self._terms()[1]

    def width_at(self, size: float, depth: float) -> float:
        """The real width at which standard blocks of 12 L d² reach a size.

        Raises:
            UserError: the embedding alone takes the size.
        """
        self.require_room(size)
        return self.widths_at(size, depth)

    def require_room(self, size: float) -> None:
        """Check that a size has room beside the embedding's first factor.

        Raises:
            UserError: it has none.
        """
        if size <= self.fixed:
            assert self.rank is not None
            raise UserError(
                f"The embedding's first factor, {self.vocab_size:,} x {self.rank:,}, has {self.fixed:,.0f} parameters, "
                f"and the budget is {size:,.0f}; take a lower rank, a smaller vocabulary or a larger budget."
            )

    def widths_at(self, size: Real, depth: Real) -> Real:
        """`width_at` of numbers or (p,) arrays of them, unchecked."""
        table, fixed, small = self._terms()
        left, linear = size - fixed, table + small * depth
        width: Real = 2.0 * left / (linear + (linear**2 + 48.0 * depth * left) ** 0.5)
        return width

    def _terms(self) -> tuple[float, float, float]:
        """Parameters for each unit of width, those that no width changes, and biases and norms of a layer and width."""
        if self.axis is SizeAxis.BLOCK:
            return 0.0, 0.0, 0.0
        rank = self.rank or 0
        # a factored embedding that is the classifier too has a map of rank x width to and one from the blocks
        classifier = rank if self.tied and rank else self.vocab_size
        fixed = self.vocab_size * rank
        if self.axis is SizeAxis.FLOPS:
            return float(classifier + rank), float(fixed if self.tied else 0), 0.0
        table = (rank or self.vocab_size) + (classifier if rank or not self.tied else 0) + self.positions
        return float(table), float(fixed), 2.0 if self.block == "llama" else 13.0


@dataclass(frozen=True)
class SizedShape:
    """A shape for a size.

    Attributes:
        shape: the shape; its `ff_width` is given.
        size: its size, as the rules count it.
        asked: the size that was asked for.
    """

    shape: Shape
    size: int
    asked: float

    @property
    def off(self) -> float:
        """What its size differs from the one asked for, as a share of that; within 2% but where no width fits."""
        return self.size / self.asked - 1.0

    @property
    def fits(self) -> bool:
        return abs(self.off) <= EQUAL_SHARE

    @property
    def numbers(self) -> dict[str, int]:
        """The shape's own numbers, by their names in tables."""
        one = self.shape
        named = {"depth": one.depth, "width": one.width, "heads": one.heads}
        return named | {"head_dim": one.attention_dim, "ff_width": one.hidden_width}


def shape_of_size(
    size: float, depth: int, counting: Counting, off_by: Callable[[Shape], float] = lambda shape: 0.0
) -> SizedShape:
    """The shape of one depth that has a size.

    Of the widths near the real one it takes one whose size the feed-forward width can make up for, with a number of
    heads that `HEAD_GROUP` and the heads of keys divide, preferably of dimension 64 or 128, and the nearest such one.
    `off_by` counts what else is wrong with a shape, as a log of the width.

    Raises:
        UserError: the vocabulary leaves no room for blocks.
    """
    real = counting.width_at(size, depth)
    step = _step(real)
    low, high = (real * math.exp(sign * WIDTH_RANGE) for sign in (-1, 1))
    least = step * max(1, math.floor(real / step))
    widths = {*range(step * math.ceil(low / step), math.floor(high) + 1, step), least, least + step}
    filled = [_filled(size, depth, width, counting) for width in widths if width]
    best = min(filled, key=lambda one: (*_dislike(one, counting), _away(one.shape, real) + off_by(one.shape)))
    if real < WIDTH_STEPS[-1][1] and not best.fits:
        raise UserError(
            f"{big(size)} parameters have no room for {depth} layers beside a vocabulary of "
            f"{counting.vocab_size:,}: less than {WIDTH_STEPS[-1][1]} numbers of width are left. Take a larger size, a "
            "smaller vocabulary, or --tied."
        )
    if counting.kv_heads is not None and best.shape.heads % counting.kv_heads:
        raise UserError(
            f"{counting.kv_heads} heads of keys don't divide the heads of any width near {real:.0f}, which {depth} "
            "layers of this size have; take 1, 2, 4 or 8."
        )
    return best


def _dislike(one: SizedShape, counting: Counting) -> tuple[bool, float, bool]:
    """What is wrong with a shape, the worst first: its size, and its number of heads."""
    return not one.fits, 0.0 if one.fits else abs(one.off), one.shape.heads % counting.head_group > 0


def _away(shape: Shape, real: float) -> float:
    """How far a shape's width is from the real one, as a log, with what its heads' dimension is worth."""
    worth = next(worth for divisor, worth in DISLIKED if shape.attention_dim % divisor == 0)
    return abs(math.log(shape.width / real)) + worth


def _filled(size: float, depth: int, width: int, counting: Counting) -> SizedShape:
    """The shape of a depth and width whose feed-forward width brings it nearest to a size, within `FF_RANGE`."""
    shape_with = partial(counting.shape, depth, width, head_dim_of(width, counting.head_group))
    standard = shape_with(None)
    usual, step = standard.hidden_width, _step(width)
    per_unit = (counting.size(shape_with(usual + step)) - counting.size(standard)) / step
    wanted = usual + (size - counting.size(standard)) / per_unit
    low, high = (share * usual for share in FF_RANGE)
    hidden = max(step, step * round(min(max(wanted, low), high) / step))
    shape = shape_with(hidden)
    return SizedShape(shape, counting.size(shape), size)


def head_dim_of(width: int, group: int = HEAD_GROUP) -> int:
    """The dimension of a head that divides a width, where possible into a multiple of `group` heads.

    It is 64 to 128 (128 first from 2,048 on), or what `group` heads leave of a width below 64 of each.
    """
    if width < group * HEAD_DIMS[0] and width % (2 * group) == 0:
        return width // group
    dims = WIDE_HEAD_DIMS if width >= WIDE else HEAD_DIMS
    grouped = (dim for dim in dims if width % (dim * group) == 0)
    return next(
        grouped, next((dim for dim in dims if width % dim == 0), width // 2 if width % 4 == 0 else width)
    )


def _step(width: float) -> int:
    return next(step for least, step in WIDTH_STEPS if width >= least)
