"""A decoder's shape from numbers, and sentences on what keeps numbers from being one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from shapelaw.specs.shapes import BLOCKS, BYTE_VOCABULARY, EQUAL_SHARE, SHAPE_AXES, Shape


class HeadDim(NamedTuple):
    """A rule for the number of heads: as many of a dimension as share the width."""

    dim: int


def make_shape(
    depth: int,
    width: int,
    heads: int | HeadDim,
    vocab_size: int,
    context_length: int,
    attention_dim: int | None = None,
    *,
    redundant_rank: bool = False,
    **options: Any,
) -> Shape:
    """A checked shape.

    Args:
        heads: their number, or their dimension as a rule.
        attention_dim: width / heads when None.
        redundant_rank: a factored embedding may have a rank above that of the matrix it stands for.
        options: the other fields of `Shape`.

    Raises:
        ShapeError: these numbers don't make a shape; the error has a sentence for every problem.
    """
    divided = attention_dim is None
    if not isinstance(heads, int):
        _check_dimension(width, heads.dim, attention_dim)
        attention_dim = heads.dim
        heads = width // attention_dim
    inner = width // max(heads, 1) if attention_dim is None else attention_dim
    shape = Shape(
        depth=depth,
        width=width,
        heads=heads,
        vocab_size=vocab_size,
        context_length=context_length,
        attention_dim=inner,
        **options,
    )
    problems = shape_sentences(shape, divided, redundant_rank)
    if problems:
        raise ShapeError(*problems)
    return shape


class ShapeError(ValueError):
    """Some numbers don't make a shape; `problems` has a sentence for each reason."""

    def __init__(self, *problems: str) -> None:
        super().__init__("; ".join(problems))
        self.problems = list(problems)


def _near(width: int, unit: int) -> str:
    """The multiples of a unit that are next to a width: `8 or 16`."""
    below = width // unit * unit
    return f"{below} or {below + unit}" if below else f"{unit}"


def _check_dimension(width: int, dim: int, attention_dim: int | None) -> None:
    """Refuse a width that heads of one dimension don't divide.

    Raises:
        ShapeError: always with one sentence.
    """
    if attention_dim is not None:
        raise ShapeError("heads.dim and attention_dim are both set; leave one of them out")
    if width % dim:
        raise ShapeError(
            f"width {width} is not divisible by heads of dimension {dim}; use width {_near(width, dim)}, or a number "
            "of heads"
        )


def with_attention_degree(shape: Shape, degree: int | None) -> Shape:
    """The same decoder with attention of another degree and nearly as many weights, by another dimension of its heads.

    Args:
        shape: a decoder with softmax attention.
        degree: degree of linear attention; None means softmax.

    Raises:
        ShapeError: no dimension of the heads brings the blocks' weights within 2% of the given shape's.
    """
    maps = replace(shape, attention_degree=degree).attention_maps + 1
    exact = shape.attention_dim * (shape.attention_maps + 1) / maps
    near = [
        replace(shape, attention_degree=degree, attention_dim=dim)
        for dim in {max(1, math.floor(exact)), math.ceil(exact)}
    ]
    best = min(near, key=lambda one: abs(one.block_params - shape.block_params))
    if abs(best.block_params - shape.block_params) > EQUAL_SHARE * shape.block_params:
        raise ShapeError(
            f"no heads' dimension gives attention of degree {degree} within {EQUAL_SHARE:.0%} of the weights of "
            f"softmax attention at width {shape.width} and {shape.heads} heads (the nearest has "
            f"{best.block_params:,} for {shape.block_params:,}); take a larger width or fewer heads"
        )
    return best


_OF_GPT2 = {"positional_rank": "rotary positions", "attention_degree": "softmax attention", "gelu": "SwiGLU"}
_NOT_PRINTED = {"attention_degree": "softmax attention", "gelu": "ReLU"}


def shape_sentences(shape: Shape, divided: bool, redundant_rank: bool) -> list[str]:
    """A sentence for each problem of a shape's numbers.

    Args:
        divided: whether the heads share the width among them, so that their number must divide it.
        redundant_rank: whether ranks above full are meant.
    """
    problems = [
        f"{name} is {value}; it must be at least {axis.ge}"
        for name, axis in SHAPE_AXES.items()
        if axis.ge is not None and (value := getattr(shape, name)) is not None and value < axis.ge
        if not (divided and name == "attention_dim")
    ]
    if shape.base_attention_dim is not None and shape.base_width is None:
        problems.append("base_attention_dim is set without base_width; give both, or leave it out")
    return problems or [
        *_division(shape, divided),
        *_ranks(shape, redundant_rank),
        *(_of_llama(shape) if shape.block == "llama" else _of_one_head_each(shape)),
    ]


def _division(shape: Shape, divided: bool) -> list[str]:
    width, heads = shape.width, shape.heads
    if not divided or width % heads == 0:
        return []
    near = _near(width, heads)
    return [f"width {width} is not divisible by {heads} heads; use width {near}, or set attention_dim"]


def _ranks(shape: Shape, redundant_rank: bool) -> list[str]:
    problems = []
    for name, length, what in (
        ("embedding", "embedding_inputs" if shape.patch_embedding else "vocab_size", "embedding"),
        ("positional", "context_length", "positional embedding"),
    ):
        rank, full_rank = getattr(shape, f"{name}_rank"), min(shape.width, getattr(shape, length))
        if rank is not None and rank > full_rank and not redundant_rank:
            problems.append(
                f"{name}_rank {rank} is above min(width, {length}) = {full_rank}, the rank of a full {what}; "
                f"leave it out or use at most {full_rank}"
            )
    if shape.tied and shape.patch_embedding:
        problems.append(
            "tied and patch_embedding are both true: a linear map of a patch's numbers is no classifier; leave out one"
        )
    if shape.patch_embedding and shape.vocab_size != BYTE_VOCABULARY:
        problems.append(
            f"vocab_size is {shape.vocab_size} and patch_embedding is true; only in the vocabulary of "
            f"bytes is a patch one token, so set it to {BYTE_VOCABULARY}"
        )
    if shape.tied and shape.embedding_rank is not None:
        problems.append(
            f"tied is true and embedding_rank is {shape.embedding_rank}: a classifier that is the token embedding "
            "needs it in one matrix; leave out one of them"
        )
    return problems


def _of_one_head_each(shape: Shape) -> list[str]:
    """What keeps a shape from being one of GPT-2's or of printed blocks, where each head has keys of its own."""
    if shape.block not in BLOCKS:
        *most, last = BLOCKS
        return [f"block is {shape.block!r}; there are {', '.join(most)} and {last}"]
    problems = _excluded(shape, _NOT_PRINTED) if shape.block == "printed" else []
    if shape.kv_heads is not None:
        problems.append(
            f"kv_heads is {shape.kv_heads} and block is {shape.block}; set block: llama, or leave kv_heads out"
        )
    return problems


def _excluded(shape: Shape, instead: Mapping[str, str]) -> list[str]:
    """A sentence for each option of GPT-2's blocks that a shape has and its own blocks have something instead of."""
    return [
        f"{name} is {getattr(shape, name)} and block is {shape.block}, which has {other}; leave it out, or set "
        "block: gpt2"
        for name, other in instead.items()
        if getattr(shape, name) != getattr(type(shape), name)
    ]


def _of_llama(shape: Shape) -> list[str]:
    problems = _excluded(shape, _OF_GPT2)
    if shape.attention_dim % 2:
        near = f"attention_dim {shape.attention_dim + 1} with {shape.heads} heads"
        if shape.attention_width == shape.width:
            near = f"width {_near(shape.width, 2 * shape.heads)}"
            near += f" with {shape.heads} heads or, where head_dim is {shape.attention_dim}, an even one"
        problems.append(
            f"the dimension of a head is {shape.attention_dim}, and rotary positions turn its numbers in pairs: "
            f"take an even one ({near})"
        )
    if shape.kv_heads is not None and shape.heads % shape.kv_heads:
        fitting = [str(n) for n in range(1, shape.heads + 1) if shape.heads % n == 0]
        problems.append(
            f"kv_heads {shape.kv_heads} does not divide {shape.heads} heads; use one of {', '.join(fitting)}"
        )
    return problems


def depth_scaling_sentence(block: str, parametrization: str) -> str:
    """A sentence, without its full stop, where a parametrization scales branches that a block has not; else empty."""
    if block != "printed" or parametrization == "standard":
        return ""
    return (
        f"parametrization is {parametrization}, which scales residual branches, and block is printed, whose "
        "feed-forward network is none; leave it out, or set block: gpt2"
    )
