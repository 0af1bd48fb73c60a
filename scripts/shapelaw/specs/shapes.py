"""The shape of a decoder, with its parameters, operations and memory as formulas (no torch)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

EQUAL_SHARE = 0.02  # share of the blocks' weights by which shapes of equal size may differ
MLP_RATIO = 4  # feed-forward width over the residual width, unless given, as in GPT-2
Gelu = Literal["tanh", "erf"]


@dataclass(frozen=True)
class Shape:
    """A pre-norm, GPT-2-style decoder with an untied, full-rank classifier.

    Attributes:
        depth: number of blocks, L.
        width: residual dimension, d.
        heads: attention heads of a block, H.
        vocab_size: V.
        context_length: N, tokens a window.
        attention_dim: dimension of one head, d_a; width / heads unless given.
        embedding_rank: r of a token embedding factored as (V x r)(r x d); None is one V x d matrix. Above min(d, V) the
            factored embedding has more weights than the matrix and no more rank.
        positional_rank: the same for the positional embedding, (N x r_e)(r_e x d).
        attention_degree: None means softmax attention; k >= 2 linear attention of that polynomial degree in the
            tokens (block-degree note, eq. 2), which has k input maps where softmax attention has three.
        gelu: the feed-forward network's activation: GPT-2's approximation by tanh, or x times the normal
            distribution function itself (Hendrycks and Gimpel 2016), by erf.
        ff_width: d_ff, hidden width of the feed-forward network; 4 d when None. T5 and the vocabulary paper's
            section 5.3 have 4 H d_a.
    """

    depth: int
    width: int
    heads: int
    vocab_size: int
    context_length: int
    attention_dim: int
    embedding_rank: int | None = None
    positional_rank: int | None = None
    attention_degree: int | None = None
    gelu: Gelu = "tanh"
    ff_width: int | None = None

    @property
    def hidden_width(self) -> int:
        """d_ff, the width of the feed-forward network."""
        return MLP_RATIO * self.width if self.ff_width is None else self.ff_width

    @property
    def attention_ratio(self) -> float:
        """H d_a / d, the width of all heads over that of the network (vocabulary paper, section 5.3)."""
        return self.attention_width / self.width

    @property
    def attention_maps(self) -> int:
        """Maps from the width into the heads: queries, keys and values, or one a degree of linear attention."""
        return 3 if self.attention_degree is None else self.attention_degree

    @property
    def attention_width(self) -> int:
        """H d_a, the width of all heads together."""
        return self.heads * self.attention_dim

    @property
    def block_params(self) -> int:
        """Weights of the blocks' matrices: 12 L d^2 where H d_a = d and d_ff = 4 d (the papers' network size)."""
        attention = (self.attention_maps + 1) * self.width * self.attention_width
        return self.depth * (attention + 2 * self.width * self.hidden_width)

    @property
    def embedding_params(self) -> int:
        """Token and positional embedding together."""
        return _embedding_params(self.vocab_size, self.width, self.embedding_rank) + _embedding_params(
            self.context_length, self.width, self.positional_rank
        )

    @property
    def total_params(self) -> int:
        """All parameters: embeddings, blocks with biases and norms, final norm, classifier."""
        d, a = self.width, self.attention_width
        biases_and_norms = self.attention_maps * a + d + self.hidden_width + d + 2 * 2 * d
        return (
            self.embedding_params
            + self.block_params
            + self.depth * biases_and_norms
            + 2 * d
            + d * self.vocab_size
        )

    def forward_flops(self, batch_size: int) -> int:
        """Floating-point operations of the matrix products of one forward pass over `batch_size` windows.

        A product of (m x k) and (k x n) counts 2mkn; attention counts all N x N scores although half
        are masked (the convention of PyTorch's flop counter and of nanoGPT's MFU).
        """
        d, n = self.width, self.context_length
        per_token = 2 * self.block_params + 2 * d * self.vocab_size
        if self.attention_degree != 2:  # linear attention has running sums in place of scores
            per_token += self.depth * 2 * 2 * n * self.attention_width
        if self.embedding_rank is not None:
            per_token += 2 * self.embedding_rank * d
        positions = 2 * n * self.positional_rank * d if self.positional_rank is not None else 0
        return batch_size * n * per_token + positions

    def step_flops(self, batch_size: int) -> int:
        """Operations of one training step: the backward pass counts twice the forward pass."""
        return 3 * self.forward_flops(batch_size)

    def activation_bytes(self, batch_size: int, number_bytes: int = 4) -> int:
        """Memory for the backward pass of that many sequences: about 8 d + 4 H d_a + 2 d_ff + 2 H N numbers per token
        and block.
        """
        numbers = 8 * self.width + 4 * self.attention_width + 2 * self.hidden_width
        per_token = self.depth * (numbers + 2 * self.heads * self.context_length)
        return batch_size * self.context_length * per_token * number_bytes


def _embedding_params(entries: int, width: int, rank: int | None) -> int:
    return entries * width if rank is None else (entries + width) * rank


def make_shape(
    depth: int,
    width: int,
    heads: int,
    vocab_size: int,
    context_length: int,
    attention_dim: int | None = None,
    *,
    redundant_rank: bool = False,
    **options: Any,
) -> Shape:
    """A checked shape.

    Args:
        attention_dim: width / heads when None.
        redundant_rank: a factored embedding may have a rank above that of the matrix it stands for.
        options: the other fields of `Shape`.

    Raises:
        ShapeError: these numbers don't make a shape; the error has a sentence for every problem.
    """
    inner = width // max(heads, 1) if attention_dim is None else attention_dim
    shape = Shape(depth, width, heads, vocab_size, context_length, inner, **options)
    problems = _problems(shape, attention_dim is None, redundant_rank)
    if problems:
        raise ShapeError(problems)
    return shape


def shape_problems(*sizes: int | None, **options: Any) -> list[str]:
    """A sentence for each problem of `make_shape`'s arguments."""
    try:
        make_shape(*sizes, **options)  # type: ignore[arg-type]
    except ShapeError as error:
        return error.problems
    return []


class ShapeError(ValueError):
    """Some numbers don't make a shape; `problems` has a sentence for each reason."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


def _problems(shape: Shape, divided: bool, redundant_rank: bool) -> list[str]:
    """A sentence for each problem of a shape's numbers.

    Args:
        divided: whether the heads share the width among them, so that their number must divide it.
        redundant_rank: whether ranks above full are meant.
    """
    names = ["depth", "width", "heads", "vocab_size", "context_length", "embedding_rank", "positional_rank"]
    names.append("ff_width")
    if not divided:
        names.insert(5, "attention_dim")
    numbers = {name: getattr(shape, name) for name in names}
    problems = [
        f"{name} is {n}; it must be at least 1" for name, n in numbers.items() if n is not None and n < 1
    ]
    if shape.attention_degree is not None and shape.attention_degree < 2:
        problems.append(
            f"attention_degree is {shape.attention_degree}; linear attention has degree 2 or more, "
            "and null is softmax attention"
        )
    if problems:
        return problems
    width, heads = shape.width, shape.heads
    if divided and width % heads:
        below, above = width // heads * heads, (width // heads + 1) * heads
        near = f"{below} or {above}" if below else f"{above}"
        problems.append(
            f"width {width} is not divisible by {heads} heads; use width {near}, or set attention_dim"
        )
    for name, length, what in (
        ("embedding", "vocab_size", "embedding"),
        ("positional", "context_length", "positional embedding"),
    ):
        rank, full_rank = getattr(shape, f"{name}_rank"), min(width, getattr(shape, length))
        if rank is not None and rank > full_rank and not redundant_rank:
            problems.append(
                f"{name}_rank {rank} is above min(width, {length}) = {full_rank}, the rank of a full {what}; "
                f"leave it out or use at most {full_rank}"
            )
    return problems


def with_attention_degree(shape: Shape, degree: int | None) -> Shape:
    """The same decoder with attention of another degree and nearly as many weights, by another dimension of its heads.

    Args:
        shape: a decoder with softmax attention.
        degree: degree of linear attention; None means softmax.

    Raises:
        ValueError: no dimension of the heads brings the blocks' weights within 2% of the given shape's.
    """
    maps = replace(shape, attention_degree=degree).attention_maps + 1
    exact = shape.attention_dim * (shape.attention_maps + 1) / maps
    near = [
        replace(shape, attention_degree=degree, attention_dim=dim)
        for dim in {max(1, math.floor(exact)), math.ceil(exact)}
    ]
    best = min(near, key=lambda one: abs(one.block_params - shape.block_params))
    if abs(best.block_params - shape.block_params) > EQUAL_SHARE * shape.block_params:
        raise ValueError(
            f"no heads' dimension gives attention of degree {degree} within {EQUAL_SHARE:.0%} of the weights of "
            f"softmax attention at width {shape.width} and {shape.heads} heads (the nearest has "
            f"{best.block_params:,} for {shape.block_params:,}); take a larger width or fewer heads"
        )
    return best
