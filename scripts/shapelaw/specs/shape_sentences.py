"""What keeps numbers from being a decoder's shape, a sentence for each problem."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from shapelaw.specs.patches import BYTE_VOCABULARY

if TYPE_CHECKING:
    from shapelaw.specs.shapes import Shape

_SIZES = (
    *("depth", "width", "heads", "vocab_size", "context_length", "embedding_rank", "positional_rank"),
    *("ff_width", "kv_heads", "base_width", "base_attention_dim"),
)
_OF_GPT2 = {"positional_rank": "rotary positions", "attention_degree": "softmax attention", "gelu": "SwiGLU"}
_NOT_PRINTED = {"attention_degree": "softmax attention", "gelu": "ReLU"}
BLOCKS = ("gpt2", "llama", "printed")


def shape_sentences(shape: Shape, divided: bool, redundant_rank: bool) -> list[str]:
    """A sentence for each problem of a shape's numbers.

    Args:
        divided: whether the heads share the width among them, so that their number must divide it.
        redundant_rank: whether ranks above full are meant.
    """
    names = _SIZES if divided else (*_SIZES[:5], "attention_dim", *_SIZES[5:])
    numbers = {name: getattr(shape, name) for name in names}
    problems = [
        f"{name} is {n}; it must be at least 1" for name, n in numbers.items() if n is not None and n < 1
    ]
    if shape.attention_degree is not None and shape.attention_degree < 2:
        problems.append(
            f"attention_degree is {shape.attention_degree}; linear attention has degree 2 or more, "
            "and null is softmax attention"
        )
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
    below, above = width // heads * heads, (width // heads + 1) * heads
    near = f"{below} or {above}" if below else f"{above}"
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
        return [f"block is {shape.block!r}; there are {', '.join(BLOCKS[:-1])} and {BLOCKS[-1]}"]
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
            twice = 2 * shape.heads
            below, above = shape.width // twice * twice, (shape.width // twice + 1) * twice
            near = f"width {below} or {above}" if below else f"width {above}"
            near += (
                f" with {shape.heads} heads or, where heads is {{dim: {shape.attention_dim}}}, an even dim"
            )
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
