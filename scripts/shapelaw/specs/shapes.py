"""The shape of a decoder, and its parameters, operations and memory as formulas.

A decoder of images reads a letter for each patch. A patch is 2 x 2 pixels of 3 levels of grey, read row by row: 81
patches, so that each is one visible ASCII letter and one token of the vocabulary of bytes. A linear map of the patch's
numbers is the convolutional embedding of a vision Transformer: as a matrix its kernel has a rank of at most the
numbers of a patch (Wies et al. 2021, eqs. 2 and 4).
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Literal

from shapelaw.specs.axes import axes_of, axis, with_axes

BLOCKS = {"gpt2": "GPT-2's block", "llama": "Llama's block", "printed": "the printed block"}
EQUAL_SHARE = 0.02  # share of the blocks' weights by which shapes of equal size may differ
STATE_BYTES = 16  # of a parameter in training: itself, its gradient and two moments of AdamW, in float32
MLP_RATIO = 4  # feed-forward width over the residual width, unless given, as in GPT-2
# the hidden width of SwiGLU, 8/3 d, is rounded up to a multiple of this (Llama 7B: of 256)
SWIGLU_MULTIPLE = 8
# images as text: a letter for each patch of pixels
SIDE, LEVELS = 2, 3  # pixels along a side of a patch; levels of grey
NUMBERS = SIDE * SIDE  # of a patch
PATCHES = LEVELS**NUMBERS
FIRST_LETTER = "!"  # of patch 0; the letters after it are those of the others
BYTE_VOCABULARY = 257  # of bytes, where a letter is a token; a larger one merges letters
FIRST_ID = 1  # of patch 0 in the vocabulary of bytes, whose id 0 ends a document
INPUTS = NUMBERS + 1  # of a patch embedding: a patch's numbers, and one that says that an image ended
Gelu = Literal["tanh", "erf"]
Block = Literal["gpt2", "llama", "printed"]


@with_axes(kw_only=True)
class Shape:
    """A decoder of GPT-2's or Llama's pre-norm blocks, or of those that a paper prints, with a full-rank classifier.

    `gpt2` has LayerNorm, GELU, biases and an embedding of positions; `llama` RMSNorm, SwiGLU, no biases and rotary
    positions (Touvron et al. 2023); `printed` is the layer of the depth-width paper's equations 1 and 2 (Levine et al.
    2020): `LayerNorm(W2 ReLU(W1 LayerNorm(x + SA(x))))`, without biases in its maps and with no residual around the
    feed-forward network, under GPT-2's embedding of positions.
    A token embedding of rank r is factored as (V x r)(r x d); above min(d, V) it has more weights than one matrix, and
    no more rank. The order of the fields is that of a run's key.
    """

    vocab_size: int = axis(
        "Size of the vocabulary; 257 is bytes, a larger one byte-level BPE. Default: 2000.",
        key="V{}",
        title="vocabulary",
        symbol="V",
        synonyms="n_vocab",
    )
    context_length: int = axis(
        "Tokens in a window. Default: 128.", synonyms="seq_len seq_length n_ctx max_seq_len"
    )
    depth: int = axis(
        "Number of blocks, L.",
        key="L{}",
        symbol="L",
        synonyms="n_layer n_layers layers num_layers num_hidden_layers n_blocks num_blocks nlayers",
    )
    width: int = axis(
        "Width of the network, d.",
        key="d{}",
        symbol="d",
        synonyms="d_model n_embd hidden_size n_embed embed_dim model_dim hidden_dim dim dmodel",
    )
    embedding_rank: int | None = axis(
        "Rank of factored token embeddings, at most V; null is one matrix.",
        default=None,
        key="r{}",
        symbol="r",
        null="full rank",
        follows=True,
        original=True,
    )
    heads: int = axis(
        "Attention heads; they divide the width unless `head_dim` is given too. Default: 2.",
        key="H{}",
        symbol="H",
        synonyms="n_head n_heads num_heads num_attention_heads",
        follows=True,
    )
    attention_dim: int = axis(
        "The same as `head_dim`, as the tables call it; or a rule: `{ratio: 4}` makes all heads together 4 d wide, "
        "`equal_params` gives attention of a degree as many weights as softmax attention has.",
        key="a{}",
        title="head dimension",
        synonyms="head_dim d_head head_size",
        follows=True,
    )
    ff_width: int | None = axis(
        "Width of the feed-forward network; null is 4 d, in Llama's block 8/3 d; `4 * heads * attention_dim` "
        "follows the heads, as in T5.",
        default=None,
        key="f{}",
        title="feed-forward width",
        synonyms="d_ff ffn_dim intermediate_size ffn_hidden_size",
        follows=True,
    )
    positional_rank: int | None = axis(
        "Rank of factored positional embeddings; null is one matrix, and `embedding_rank` that of the tokens.",
        default=None,
        key="p{}",
        words="positional r = {:,}",
        null="full rank",
        follows=True,
        original=True,
    )
    attention_degree: int | None = axis(
        "Degree of linear attention (block-degree note, eq. 2); null is softmax attention.",
        default=None,
        ge=2,
        key="k{}",
        null="softmax",
    )
    gelu: Gelu = axis(
        "GELU of GPT-2's block: its approximation by `tanh`, or the exact `erf`.", default="tanh", key="{}"
    )
    block: Block = axis("Blocks: `gpt2`, `llama` or `printed`.", default="gpt2", key="{}", words="{}")
    kv_heads: int | None = axis(
        "Heads of keys and values of Llama's block (Ainslie et al. 2023); null is as many as heads.",
        default=None,
        key="kv{}",
        title="key heads",
        synonyms="n_kv_heads num_key_value_heads n_query_groups",
        follows=True,
    )
    tied: bool = axis(
        "The classifier is the token embedding.",
        default=False,
        key="tied",
        synonyms="tie_word_embeddings tied_embeddings",
    )
    patch_embedding: bool = axis(
        "Tokens are patches of images, with an embedding of their numbers.", default=False, key="patch"
    )
    loops: int = axis(
        "Times that all blocks are passed, one after another and with the same weights (looped Transformers, "
        "Dehghani et al. 2019): r times their FLOPs, no further parameters.",
        default=1,
        key="x{}",
        synonyms="n_loops num_loops n_recurrences",
    )
    base_width: int | None = axis(
        "Width from which rates, initialisation and logits are scaled (muP, Yang et al. 2022); null: none.",
        default=None,
        key="mu{}",
        words="scaled from {:g}",
        null="one rate for all widths",
    )
    base_attention_dim: int | None = axis(
        "Dimension of a head at `base_width`, from which scores are scaled; null: that of this decoder.",
        default=None,
        splits=False,
        column=False,
    )

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
        hidden_maps = 3 if self.block == "llama" else 2  # up and down, and in Llama's block a gate
        return self.depth * (attention + hidden_maps * self.width * self.hidden_width)

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


def numbers_of_ids() -> list[list[float]]:
    """The inputs of a patch embedding for ids 0 ... 81, [82, 5].

    Id 0 ends an image: its last number is 1. The levels of a patch are -1, 0 and 1, its first pixel the highest digit
    of its number in base 3.
    """
    rows = [[0.0] * NUMBERS + [1.0]]
    for patch in range(PATCHES):
        digits = [patch // LEVELS**place % LEVELS for place in reversed(range(NUMBERS))]
        rows.append([*(digit - (LEVELS - 1) / 2 for digit in digits), 0.0])
    return rows
