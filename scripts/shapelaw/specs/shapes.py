"""The shape of a decoder, its parameters, operations and memory as formulas, and what keeps numbers from being one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Annotated, Any, Literal, NamedTuple

from shapelaw.specs.axes import Axis, axes_of
from shapelaw.specs.patches import BYTE_VOCABULARY, INPUTS

EQUAL_SHARE = 0.02  # share of the blocks' weights by which shapes of equal size may differ
STATE_BYTES = 16  # of a parameter in training: itself, its gradient and two moments of AdamW, in float32
MLP_RATIO = 4  # feed-forward width over the residual width, unless given, as in GPT-2
SWIGLU_MULTIPLE = (
    8  # the hidden width of SwiGLU, 8/3 d, is rounded up to a multiple of this (Llama 7B: of 256)
)
Gelu = Literal["tanh", "erf"]
Block = Literal["gpt2", "llama", "printed"]


class HeadDim(NamedTuple):
    """A rule for the number of heads: as many of a dimension as share the width."""

    dim: int


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A decoder of GPT-2's or Llama's pre-norm blocks, or of those that a paper prints, with a full-rank classifier.

    `gpt2` has LayerNorm, GELU, biases and an embedding of positions; `llama` RMSNorm, SwiGLU, no biases and rotary
    positions (Touvron et al. 2023); `printed` is the layer of the depth-width paper's equations 1 and 2 (Levine et al.
    2020): `LayerNorm(W2 ReLU(W1 LayerNorm(x + SA(x))))`, without biases in its maps and with no residual around the
    feed-forward network, under GPT-2's embedding of positions.
    A token embedding of rank r is factored as (V x r)(r x d); above min(d, V) it has more weights than one matrix, and
    no more rank. The order of the fields is that of a run's key.
    """

    vocab_size: Annotated[
        int,
        Axis(
            "Size of the vocabulary; 257 is bytes, a larger one byte-level BPE. Default: 2000.",
            ge=1,
            key="V{}",
            title="vocabulary",
            symbol="V",
            synonyms="n_vocab",
        ),
    ]
    context_length: Annotated[
        int, Axis("Tokens in a window. Default: 128.", ge=1, synonyms="seq_len seq_length n_ctx max_seq_len")
    ]
    depth: Annotated[
        int,
        Axis(
            "Number of blocks, L.",
            ge=1,
            key="L{}",
            symbol="L",
            synonyms="n_layer n_layers layers num_layers num_hidden_layers n_blocks num_blocks nlayers",
        ),
    ]
    width: Annotated[
        int,
        Axis(
            "Width of the network, d.",
            ge=1,
            key="d{}",
            symbol="d",
            synonyms="d_model n_embd hidden_size n_embed embed_dim model_dim hidden_dim dim dmodel",
        ),
    ]
    embedding_rank: Annotated[
        int | None,
        Axis(
            "Rank of factored token embeddings, at most V; null is one matrix.",
            ge=1,
            key="r{}",
            symbol="r",
            null="full rank",
            follows=True,
            original=True,
        ),
    ] = None
    heads: Annotated[
        int,
        Axis(
            "Attention heads; they divide the width unless `head_dim` is given too. Default: 2.",
            ge=1,
            key="H{}",
            symbol="H",
            synonyms="n_head n_heads num_heads num_attention_heads",
            follows=True,
        ),
    ]
    attention_dim: Annotated[
        int,
        Axis(
            "The same as `head_dim`, as the tables call it; or a rule: `{ratio: 4}` makes all heads together 4 d wide, "
            "`equal_params` gives attention of a degree as many weights as softmax attention has.",
            ge=1,
            key="a{}",
            title="head dimension",
            synonyms="head_dim d_head head_size",
            follows=True,
        ),
    ]
    ff_width: Annotated[
        int | None,
        Axis(
            "Width of the feed-forward network; null is 4 d, in Llama's block 8/3 d; `4 * heads * attention_dim` "
            "follows the heads, as in T5.",
            ge=1,
            key="f{}",
            title="feed-forward width",
            synonyms="d_ff ffn_dim intermediate_size ffn_hidden_size",
            follows=True,
        ),
    ] = None
    positional_rank: Annotated[
        int | None,
        Axis(
            "Rank of factored positional embeddings; null is one matrix, and `embedding_rank` that of the tokens.",
            ge=1,
            key="p{}",
            words="positional r = {:,}",
            null="full rank",
            follows=True,
            original=True,
        ),
    ] = None
    attention_degree: Annotated[
        int | None,
        Axis(
            "Degree of linear attention (block-degree note, eq. 2); null is softmax attention.",
            ge=2,
            key="k{}",
            null="softmax",
        ),
    ] = None
    gelu: Annotated[
        Gelu, Axis("GELU of GPT-2's block: its approximation by `tanh`, or the exact `erf`.", key="{}")
    ] = "tanh"
    block: Annotated[Block, Axis("Blocks: `gpt2`, `llama` or `printed`.", key="{}", words="{}")] = "gpt2"
    kv_heads: Annotated[
        int | None,
        Axis(
            "Heads of keys and values of Llama's block (Ainslie et al. 2023); null is as many as heads.",
            ge=1,
            key="kv{}",
            title="key heads",
            synonyms="n_kv_heads num_key_value_heads n_query_groups",
            follows=True,
        ),
    ] = None
    tied: Annotated[
        bool,
        Axis(
            "The classifier is the token embedding.",
            key="tied",
            synonyms="tie_word_embeddings tied_embeddings",
        ),
    ] = False
    patch_embedding: Annotated[
        bool, Axis("Tokens are patches of images, with an embedding of their numbers.", key="patch")
    ] = False
    loops: Annotated[
        int,
        Axis(
            "Times that all blocks are passed, one after another and with the same weights (looped Transformers, "
            "Dehghani et al. 2019): r times their FLOPs, no further parameters.",
            ge=1,
            key="x{}",
            synonyms="n_loops num_loops n_recurrences",
        ),
    ] = 1
    base_width: Annotated[
        int | None,
        Axis(
            "Width from which rates, initialisation and logits are scaled (muP, Yang et al. 2022); null: none.",
            ge=1,
            key="mu{}",
            words="scaled from {:g}",
            null="one rate for all widths",
        ),
    ] = None
    base_attention_dim: Annotated[
        int | None,
        Axis(
            "Dimension of a head at `base_width`, from which scores are scaled; null: that of this decoder.",
            ge=1,
            splits=False,
            column=False,
        ),
    ] = None

    @cached_property
    def values(self) -> Mapping[str, Any]:
        """The fields by name; the seeds of a network share its shape, so they are read once."""
        return asdict(self)

    @property
    def embedding_inputs(self) -> int:
        """The numbers that the token embedding maps to the width: V of a one-hot token, or those of a patch."""
        return INPUTS if self.patch_embedding else self.vocab_size

    @property
    def hidden_width(self) -> int:
        """d_ff, the width of the feed-forward network."""
        if self.ff_width is not None:
            return self.ff_width
        return swiglu_width(self.width) if self.block == "llama" else MLP_RATIO * self.width

    @property
    def hidden_maps(self) -> int:
        """Maps between the width and d_ff: up and down, and in Llama's block a gate."""
        return 3 if self.block == "llama" else 2

    @property
    def passes(self) -> int:
        """Blocks that a token goes through: L, times the loops."""
        return self.depth * self.loops

    @property
    def width_ratio(self) -> float:
        """The base width over the width; 1 without a base."""
        return 1.0 if self.base_width is None else self.base_width / self.width

    @property
    def score_scale(self) -> float:
        """Factor of the scores of attention: 1 / sqrt(d_a), or sqrt(base d_a) / d_a where there is a base width."""
        if self.base_width is None or self.base_attention_dim is None:
            return 1 / math.sqrt(self.attention_dim)
        return math.sqrt(self.base_attention_dim) / self.attention_dim

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
    def maps_width(self) -> int:
        """The width of all maps into the heads side by side, 3 H d_a, or less with fewer heads of keys and values."""
        if self.kv_heads is not None:
            return (self.heads + 2 * self.kv_heads) * self.attention_dim
        return self.attention_maps * self.attention_width

    @property
    def kv_width(self) -> int:
        """The width of all keys of a token in one layer."""
        return self.key_heads * self.attention_dim

    @property
    def key_heads(self) -> int:
        """The number of heads of keys and values, as many as heads unless they are fewer."""
        return self.heads if self.kv_heads is None else self.kv_heads

    @cached_property
    def block_params(self) -> int:
        """Weights of the blocks' matrices: 12 L d^2 where H d_a = d and d_ff = 4 d (the papers' network size)."""
        attention = self.width * (self.maps_width + self.attention_width)
        return self.depth * (attention + self.hidden_maps * self.width * self.hidden_width)

    @property
    def embedding_params(self) -> int:
        """Token embedding and, but in Llama's decoder, the positional one together."""
        tokens = _embedding_params(self.embedding_inputs, self.width, self.embedding_rank)
        if self.block == "llama":
            return tokens
        return tokens + _embedding_params(self.context_length, self.width, self.positional_rank)

    @cached_property
    def total_params(self) -> int:
        """All parameters: embeddings, blocks with biases and norms, final norm, classifier unless it is tied.

        The last norm of printed blocks is the last block's.
        """
        d = self.width
        norm = d if self.block == "llama" else 2 * d
        biases = self.maps_width + d + self.hidden_width + d if self.block == "gpt2" else 0
        norms = (2 * self.depth + (self.block != "printed")) * norm
        classifier = 0 if self.tied else d * self.vocab_size
        return self.embedding_params + self.block_params + self.depth * biases + norms + classifier

    def forward_flops(self, batch_size: int) -> int:
        """Floating-point operations of the matrix products of one forward pass over `batch_size` windows.

        A product of (m x k) and (k x n) counts 2mkn; attention counts all N x N scores although half
        are masked (the convention of PyTorch's flop counter and of nanoGPT's MFU).
        """
        d, n = self.width, self.context_length
        per_token = 2 * self.loops * self.block_params + 2 * d * self.vocab_size
        if self.attention_degree != 2:  # linear attention has running sums in place of scores
            per_token += self.passes * 2 * 2 * n * self.attention_width
        if self.patch_embedding:  # else the first factor is looked up
            per_token += 2 * INPUTS * (d if self.embedding_rank is None else self.embedding_rank)
        if self.embedding_rank is not None:
            per_token += 2 * self.embedding_rank * d
        positions = 2 * n * self.positional_rank * d if self.positional_rank is not None else 0
        return batch_size * n * per_token + positions

    def step_flops(self, batch_size: int) -> int:
        """Operations of one training step: the backward pass counts twice the forward pass."""
        return 3 * self.forward_flops(batch_size)

    def activation_bytes(self, batch_size: int, number_bytes: int = 4, scores: bool = True) -> int:
        """Memory for the backward pass of that many sequences, about 8 d + 4 H d_a + 2 d_ff + 2 H N numbers per token
        and pass of a block; Llama's keeps its turned queries and keys too, and 4 d_ff; the printed one d_ff once, as
        ReLU's slope follows from its output.

        Args:
            scores: attention keeps its weights, 2 H N; a fused one does not.
        """
        kept = 1 if self.block == "printed" else 2
        numbers = 8 * self.width + 4 * self.attention_width + kept * self.hidden_width
        if self.block == "llama":
            numbers += 2 * self.attention_width + 2 * self.hidden_width
        per_token = self.passes * (numbers + 2 * self.heads * self.context_length * scores)
        return batch_size * self.context_length * per_token * number_bytes


SHAPE_AXES = axes_of(Shape)


def _embedding_params(entries: int, width: int, rank: int | None) -> int:
    return entries * width if rank is None else (entries + width) * rank


def swiglu_width(width: int, multiple: int = SWIGLU_MULTIPLE) -> int:
    """The hidden width of SwiGLU, 8/3 of the width rounded up to a multiple: as many weights as 4 d without a gate."""
    return -(-8 * width // (3 * multiple)) * multiple


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
        raise ShapeError(problems)
    return shape


class ShapeError(ValueError):
    """Some numbers don't make a shape; `problems` has a sentence for each reason."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


def _check_dimension(width: int, dim: int, attention_dim: int | None) -> None:
    """Refuse a width that heads of one dimension don't divide.

    Raises:
        ShapeError: always with one sentence.
    """
    if attention_dim is not None:
        raise ShapeError(["heads.dim and attention_dim are both set; leave one of them out"])
    if width % dim:
        below, above = width // dim * dim, (width // dim + 1) * dim
        near = f"{below} or {above}" if below else f"{above}"
        raise ShapeError(
            [
                f"width {width} is not divisible by heads of dimension {dim}; use width {near}, or a number of heads"
            ]
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
            [
                f"no heads' dimension gives attention of degree {degree} within {EQUAL_SHARE:.0%} of the weights of "
                f"softmax attention at width {shape.width} and {shape.heads} heads (the nearest has "
                f"{best.block_params:,} for {shape.block_params:,}); take a larger width or fewer heads"
            ]
        )
    return best


_OF_GPT2 = {"positional_rank": "rotary positions", "attention_degree": "softmax attention", "gelu": "SwiGLU"}
_NOT_PRINTED = {"attention_degree": "softmax attention", "gelu": "ReLU"}
BLOCKS = {"gpt2": "GPT-2's block", "llama": "Llama's block", "printed": "the printed block"}


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
            twice = 2 * shape.heads
            below, above = shape.width // twice * twice, (shape.width // twice + 1) * twice
            near = f"width {below} or {above}" if below else f"width {above}"
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
