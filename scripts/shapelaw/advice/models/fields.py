"""What the fields of a config.json say by themselves: all of a plain family's model, and some of an unknown family's.

Light: neither torch nor transformers is imported.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from shapelaw.advice.models.config_json import FIELDS, NESTED, TIES, number_in
from shapelaw.advice.models.described import Kind, Model
from shapelaw.errors import UserError


@dataclass(frozen=True)
class Plain:
    """A family of transformers whose parameters follow from its fields; the defaults are Llama's.

    Attributes:
        builds: its class with a classifier; a config that names another one is built.
        needs_kv_heads: whether a config without heads of keys has a number of its own there, not that of the heads.
        head_dim: the dimension of a head where the config gives none; None is width / heads.
        tied: whether the classifier is the embedding where the config doesn't say.
        maps: of a feed-forward network, 3 with a gate.
        norms: vectors of the width that the norms of a block hold, without biases.
        qk_norm: what the norms of queries and keys are as long as.
        biases: which maps have them; those of "all" are of the norms too.
    """

    builds: str
    needs_kv_heads: bool = False
    head_dim: int | None = None
    tied: bool = False
    maps: int = 3
    norms: int = 2
    qk_norm: Literal["", "head", "heads"] = ""
    biases: Literal["", "qkv", "all"] = ""


PLAIN = {
    "gemma": Plain("GemmaForCausalLM", True, 256, tied=True),
    "gemma2": Plain("Gemma2ForCausalLM", True, 256, tied=True, norms=4),
    "gemma3_text": Plain("Gemma3ForCausalLM", True, 256, tied=True, norms=4, qk_norm="head"),
    "gpt2": Plain("GPT2LMHeadModel", tied=True, maps=2, biases="all"),
    "gpt_neox": Plain("GPTNeoXForCausalLM", maps=2, biases="all"),
    "granite": Plain("GraniteForCausalLM"),
    "llama": Plain("LlamaForCausalLM"),
    "mistral": Plain("MistralForCausalLM", True),
    "olmo": Plain("OlmoForCausalLM", norms=0),
    "olmo2": Plain("Olmo2ForCausalLM", qk_norm="heads"),
    "phi3": Plain("Phi3ForCausalLM"),
    "qwen2": Plain("Qwen2ForCausalLM", True, biases="qkv"),
    "qwen3": Plain("Qwen3ForCausalLM", True, 128, qk_norm="head"),
    "smollm3": Plain("SmolLM3ForCausalLM", True, tied=True),
}
LLAMA_NAMES = ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size", "intermediate_size")
GPT2_NAMES = ("n_embd", "n_layer", "n_head", "vocab_size", "n_inner")
# options that add or take away parameters: where one is set, the model is built
UNUSUAL = ("attention_bias", "mlp_bias", "add_cross_attention", "is_encoder_decoder")
GPT2_POSITIONS = 1024  # of a config without n_positions


def plain_model(config: Mapping[str, Any], name: str, source: str) -> Model | None:
    """The model of a plain family by its formulas, as transformers builds it; None where that has to be built.

    Raises:
        UserError: its heads don't divide the width, or those of keys the heads.
    """
    family = str(config.get("model_type"))
    plain, is_gpt2 = PLAIN.get(family), family == "gpt2"
    if plain is None or (config.get("architectures") or [plain.builds]) != [plain.builds]:
        return None
    if any(config.get(option) for option in UNUSUAL) and family != "gpt_neox":
        return None
    width, depth, heads, vocab_size, ff_width = map(config.get, GPT2_NAMES if is_gpt2 else LLAMA_NAMES)
    positions = config.get("n_positions", GPT2_POSITIONS) if is_gpt2 else 0
    kv_heads, head_dim = heads, plain.head_dim
    if plain.biases != "all":
        own_kv_heads = config.get("num_key_value_heads")
        kv_heads = heads if own_kv_heads is None and not plain.needs_kv_heads else own_kv_heads
        head_dim = config.get("head_dim") or head_dim
    elif is_gpt2 and ff_width is None and isinstance(width, int):
        ff_width = 4 * width
    numbers: list[Any] = [width, depth, heads, vocab_size, ff_width, kv_heads, head_dim or 1]
    if not all(isinstance(number, int) and number > 0 for number in numbers) or not isinstance(
        positions, int
    ):
        return None
    width, depth, heads, vocab_size, ff_width, kv_heads, _ = numbers
    head_dim = head_dim or width // heads
    given = config.get("tie_word_embeddings")
    tied = plain.tied if given is None else bool(given)
    queries, keys = heads * head_dim, kv_heads * head_dim
    norm = {"": 0, "head": 2 * head_dim, "heads": queries + keys}[plain.qk_norm] + plain.norms * width
    biases = {"": 0, "qkv": queries + 2 * keys, "all": queries + 2 * keys + ff_width + 4 * width}[
        plain.biases
    ]
    block = width * (2 * queries + 2 * keys + plain.maps * ff_width) + norm + biases
    last = width * (plain.norms > 0) * (2 if plain.biases == "all" else 1)
    model = Model(
        Kind.DENSE_DECODER,
        name,
        source,
        family,
        params=depth * block + last + width * (vocab_size * (1 if tied else 2) + positions),
        block_params=depth * block,
        tied=tied,
        depth=depth,
        width=width,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        key_dim=head_dim,
        ff_width=ff_width,
        vocab_size=vocab_size,
        context=positions,
    )
    check_heads(model, config)
    return model


def check_heads(found: Model, config: Mapping[str, Any]) -> None:
    """Refuse what transformers rounds silently.

    Raises:
        UserError: the heads don't divide the width and no dimension is given, or those of keys the heads.
    """
    heads, width = found.heads, found.width
    if heads is None or width is None:
        return
    if width % heads and found.head_dim == width // heads and number_in(config, "head_dim") is None:
        raise UserError(
            f"{found.source}: {heads} heads do not divide a width of {width}; head_dim must be given, or one of them "
            "changed."
        )
    if found.kv_heads is not None and heads % found.kv_heads:
        raise UserError(
            f"{found.source}: {found.kv_heads} heads of keys can't be shared out among {heads} heads; their number "
            "must divide that of the heads."
        )


def by_fields(config: Mapping[str, Any], family: str, name: str, source: str) -> Model:
    """The model of a family that transformers doesn't know, by the names that families give to its numbers.

    Raises:
        UserError: the width, the depth or the vocabulary is missing, or the heads don't divide the width.
    """
    part = next((config[key] for key in NESTED if isinstance(config.get(key), dict)), config)
    what = f"transformers has no model type {family!r}" if family else "it names no model_type"
    numbers: dict[str, Any] = {field: number_in(part, field) for field in FIELDS}
    if missing := [field for field in ("width", "depth", "vocab_size") if numbers[field] is None]:
        raise UserError(
            f"{source} can't be read: {what}, and its fields have no {' and no '.join(missing)} under a usual name; "
            "give the numbers by options."
        )
    width, heads = numbers["width"] or 0, numbers["heads"]
    head_dim = None if heads is None else numbers["head_dim"] or width // heads
    numbers |= {"kv_heads": numbers["kv_heads"] or heads, "head_dim": head_dim, "key_dim": head_dim}
    if (numbers["embedding_rank"] or 0) >= width:
        numbers["embedding_rank"] = None
    mixes = (numbers["experts"] or 0) > 1
    if not mixes:
        numbers |= {"experts": None, "experts_per_token": None}
    ties = [one[key] for one in (part, config) for key in TIES if isinstance(one.get(key), bool)]
    kind, is_sure = _kind_by_fields(part, config, mixes)
    notes = [
        f"Read from the fields of config.json alone: {what}, code of its own is not run, and parameters are not "
        "counted."
    ]
    if not ties:
        notes.append("Whether its embeddings are tied is not said; untied is taken.")
    if not is_sure:
        notes.append("Nor does it say that it is a decoder, for which it is taken.")
    found = Model(kind, name, source, family, tied=any(ties), notes=tuple(notes), **numbers)
    check_heads(found, part)
    return found


_STATES = re.compile("ssm|mamba|rwkv|state_size|d_state|hyena|retnet|retention|linear_attn|linear_attention")


def _kind_by_fields(part: Mapping[str, Any], config: Mapping[str, Any], mixes: bool) -> tuple[Kind, bool]:
    """The kind that a config's names of fields and classes say, and whether they say it."""
    family = str(config.get("model_type")).lower()
    classes = " ".join([*map(str, config.get("architectures") or ()), *(config.get("auto_map") or {})])
    if mixes:
        return Kind.MIXTURE, True
    if config.get("is_encoder_decoder") is True:
        return Kind.ENCODER_DECODER, True
    if any(_STATES.search(name) for name in (family, *part)):
        return Kind.STATE_SPACE, True
    is_decoder = "CausalLM" in classes or "LMHead" in classes
    if "MaskedLM" in classes or ("bert" in family and not is_decoder):
        return Kind.ENCODER, True
    return Kind.DENSE_DECODER, is_decoder
