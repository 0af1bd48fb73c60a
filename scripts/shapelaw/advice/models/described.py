"""What somebody's model is, in numbers and in words: what `shapelaw.advice.models.pretrained` reads of a config.json.

Light: neither torch nor transformers is imported.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from shapelaw.advice.models.architectures import NUMBERS, Architecture, make_architecture
from shapelaw.errors import UserError


class Kind(StrEnum):
    """What a model is, as far as a law of dense decoders is concerned."""

    DENSE_DECODER = "dense-decoder"
    MIXTURE = "mixture-of-experts"
    ENCODER = "encoder"
    ENCODER_DECODER = "encoder-decoder"
    STATE_SPACE = "state-space"
    IMAGE = "image"


SAID = {
    Kind.DENSE_DECODER: "a dense decoder",
    Kind.MIXTURE: "a mixture of experts",
    Kind.ENCODER: "an encoder",
    Kind.ENCODER_DECODER: "an encoder with a decoder",
    Kind.STATE_SPACE: "a state-space model",
    Kind.IMAGE: "an image model",
}


@dataclass(frozen=True)
class Model:
    """A model by its config.json.

    Attributes:
        kind: what it is.
        name: its folder's name.
        source: path of the config.json.
        family: transformers' model_type; "" where the config names none.
        params: all parameters, shared ones once; None where transformers doesn't know the family.
        active_params: parameters that work on one token; None unless a mixture of experts, and where not known.
        block_params: parameters of the blocks with biases and norms; of the encoder's where there is a decoder too.
        tied: the classifier is the token embedding's matrix.
        embedding_rank: r of a token embedding that is factored, (V x r)(r x d); None is one V x d matrix.
        depth: blocks, L; of the encoder where there is a decoder too.
        width: d.
        heads: heads of queries, H; None without attention, and where blocks differ.
        kv_heads: heads of keys and values.
        head_dim: d_a, dimension of a head's values: the map out of attention takes heads * head_dim numbers.
        key_dim: dimension of a head's queries and keys, which differs from `head_dim` in multi-head latent attention.
        ff_width: d_ff of a feed-forward network that is no expert.
        vocab_size: V, rows of the token embedding; None where the input is no tokens.
        context: entries of a learned embedding of positions; 0 where positions have none.
        patch, channels, image: side of a patch, numbers of a pixel, side of an image; None where the input is tokens.
        experts, experts_per_token: of a block's mixture; None without one.
        reads: "tokens", "images" or "audio".
        notes: what has to be said wherever these numbers are used, in sentences.
    """

    kind: Kind
    name: str
    source: str
    family: str
    params: int | None = None
    active_params: int | None = None
    block_params: int | None = None
    tied: bool = False
    embedding_rank: int | None = None
    depth: int | None = None
    width: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    head_dim: int | None = None
    key_dim: int | None = None
    ff_width: int | None = None
    vocab_size: int | None = None
    context: int = 0
    patch: int | None = None
    channels: int | None = None
    image: int | None = None
    experts: int | None = None
    experts_per_token: int | None = None
    reads: str = "tokens"
    notes: tuple[str, ...] = ()


def architecture_of(model: Model) -> Architecture:
    """The numbers that decide a model's bottlenecks.

    Raises:
        UserError: its input is neither tokens nor patches of a known size, or its blocks differ in width.
    """
    if model.reads == "audio":
        raise UserError(
            f"{model.name} is {SAID[model.kind]} of audio, which has neither a vocabulary nor patches."
        )
    if model.width is None or (model.reads == "images" and model.patch is None):
        raise UserError(
            f"{model.name} ({model.family}) is {SAID[model.kind]} whose width or patch differs from block to block; no "
            "bottleneck is known for it."
        )
    numbers = {name: getattr(model, name) for name in NUMBERS if name not in ("attention_dim", "image")}
    if model.reads == "images":
        numbers |= {"vocab_size": None, "embedding_rank": None}
    return make_architecture(model.name, model.source, attention_dim=model.head_dim, **numbers)


def model_text(model: Model) -> str:
    """A model in one paragraph: what it is, how large, its shape, and what has to be said with that."""
    size = "parameters not counted" if model.params is None else f"{model.params:,} parameters"
    if model.active_params is not None:
        size += f", of which {model.active_params:,} work on one token"
    parts = [f"{model.name} is {SAID[model.kind]} ({model.family or 'of no named family'}): {size}"]
    if model.depth is not None and model.width is not None:
        parts.append(f"{model.depth:,} blocks of width {model.width:,}")
    if model.heads is not None and model.head_dim is not None:
        parts.append(f"{model.heads:,} heads of {model.head_dim:,}")
    if model.reads == "tokens" and model.vocab_size is not None:
        rank = "" if model.embedding_rank is None else f" of rank {model.embedding_rank:,}"
        parts.append(f"{model.vocab_size:,} tokens, {'tied' if model.tied else 'untied'} embeddings{rank}")
    elif model.patch is not None:
        parts.append(f"patches of {model.patch:,} pixels and no vocabulary")
    return " ".join([", ".join(parts) + ".", *model.notes])


def why_not_judged(model: Model) -> str | None:
    """Why a law of dense decoders says nothing about a model's shape; None of a dense decoder."""
    if model.kind is Kind.DENSE_DECODER:
        if model.depth is None or model.width is None:
            return (
                f"{model.name} has no one width and depth, which differ between its parts: it is not judged."
            )
        return None
    more = ""
    if model.kind is Kind.MIXTURE:
        more = " What it has to be compared with, its active parameters or all, is not known."
    return (
        f"{model.name} is {SAID[model.kind]}, and the depth that is best was measured for dense decoders: it is not "
        f"judged.{more}"
    )
