"""A model's config.json as transformers writes it: found, checked, told from the files of other libraries, and read.

Its fields say all of a plain family's model, and some of an unknown family's. Light: neither torch nor transformers is
imported, which build the network that it describes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from shapelaw.advice.models.described import Kind, Model
from shapelaw.errors import UserError, refuse_stand_in

FIELDS = {  # the names that model families give to one number
    "width": ("hidden_size", "d_model", "n_embd", "n_embed", "dim", "emb_dim", "model_dim"),
    "vocab_size": ("vocab_size", "padded_vocab_size"),
    "embedding_rank": ("embedding_size", "word_embed_proj_dim", "d_embed"),
    "heads": (
        *("num_attention_heads", "num_heads", "n_head", "n_heads"),
        *("encoder_attention_heads", "num_query_heads"),
    ),
    "kv_heads": ("num_key_value_heads", "n_head_kv", "num_kv_heads", "n_kv_heads", "multi_query_group_num"),
    "head_dim": ("v_head_dim", "head_dim", "d_kv", "d_head", "attention_head_size", "kv_channels"),
    "depth": (
        *("num_hidden_layers", "num_layers", "n_layer", "n_layers"),
        *("encoder_layers", "num_transformer_layers"),
    ),
    "ff_width": ("intermediate_size", "d_ff", "ffn_dim", "n_inner", "encoder_ffn_dim", "ffn_hidden_size"),
    "experts": ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts", "num_moe_experts"),
    "experts_per_token": (
        *("num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_top_k", "moe_k"),
        *("num_selected_experts", "topk", "top_k_experts"),
    ),
}
TIES = ("tie_word_embeddings", "weight_tying", "share_embedding", "tie_embeddings", "tied_embeddings")
NESTED = ("text_config", "llm_config", "language_config")  # a decoder inside of a model of several parts
_AT_LEAST_ONE = ("width", "vocab_size", "heads", "depth")
_MOST = {"depth": 2048, "experts": 16_384}  # what is built in seconds; no network that is known comes near
_MOST_LABELS = 1_000_000
# names of further numbers of modules
_COUNTS = re.compile("(layers?|blocks?|depths?|stages|groups?|group_num)$")
_FOREIGN = {  # a key of a config.json that is not of a model of transformers: whose it is
    "peft_type": "an adapter, not of a model; give the folder of the model that it adapts",
    "_class_name": "diffusers, which has models of other kinds",
    "_diffusers_version": "diffusers, which has models of other kinds",
    "pretrained_cfg": "timm; give one that transformers wrote",
    "model_cfg": "open_clip; give one that transformers wrote",
    "image_processor_type": "an image processor, not of a model",
    "feature_extractor_type": "a feature extractor, not of a model",
    "added_tokens_decoder": "a tokenizer, not of a model",
    "similarity_fn_name": "sentence-transformers; give the folder of the Transformer in it",
    "word_embedding_dimension": "a layer of sentence-transformers; give the folder of the Transformer beside it",
}
_INSTEAD = {  # a file of a folder without a config.json: what the folder is
    "adapter_config.json": "an adapter's folder; give the folder of the model that it adapts",
    "model_index.json": "a pipeline of diffusers; give the folder of one of its parts that transformers wrote",
    "modules.json": "a folder of sentence-transformers; give the folder of the Transformer in it",
    "config_sentence_transformers.json": "a folder of sentence-transformers; give the folder of the Transformer in it",
    "open_clip_config.json": "a folder of open_clip; give one that transformers wrote",
    "params.json": "weights in Meta's or Mistral's own format; give the folder of their conversion to transformers",
    "tokenizer_config.json": "a tokenizer's folder; give the folder of a model",
    "tokenizer.json": "a tokenizer's folder; give the folder of a model",
}


def local_path(model: str) -> Path | None:
    """The path that a `--model FOLDER_OR_NAME` is, whether it is there or not; None for a name to fetch."""
    is_path = Path(model).exists() or model.startswith((".", "/", "~"))
    return Path(model).expanduser() if is_path else None


def config_file(path: Path) -> Path:
    """The config.json of a model: the path itself, or in it where it is a folder.

    Raises:
        UserError: it is missing; the sentence says what the folder is instead, where that can be seen.
    """
    path = path.expanduser()
    file = path / "config.json" if path.is_dir() else path
    if file.is_file():
        return file
    if path.is_dir():
        for name, what in _INSTEAD.items():
            if (path / name).is_file():
                raise UserError(f"{path} has {name} and no config.json: it is {what}.")
        if found := next(path.glob("*.gguf"), None):
            raise UserError(
                f"{path} has {found.name} and no config.json; give the folder of the model that transformers reads."
            )
    raise UserError(f"There is no {file}; --model needs a folder with a config.json.")


def read_config(path: Path) -> tuple[dict[str, Any], Path]:
    """A model's config.json with its path, the numbers in it checked.

    Raises:
        UserError: the file is missing, can't be read, is no JSON object, is another library's, or has numbers that make
            no model.
    """
    try:
        refuse_stand_in(file := config_file(path))
        config = json.loads(file.read_text(encoding="utf-8"), object_hook=_infinite)
    except OSError as error:
        raise UserError(f"{path} can't be read ({error.strerror}).") from error
    except (ValueError, TypeError, RecursionError) as error:
        raise UserError(f"{file} is not JSON ({error}).") from error
    if not isinstance(config, dict):
        raise UserError(f"{file} must be a JSON object, as transformers writes it.")
    if "model_type" not in config and "architectures" not in config:
        whose = next((what for key, what in _FOREIGN.items() if key in config), None)
        if whose is not None:
            raise UserError(f"{file} is a config of {whose}.")
    if problems := list(_problems(config)):
        raise UserError(f"{file}: {'; '.join(problems)}.")
    return config, file


def _infinite(value: dict[str, Any]) -> Any:
    """`{"__float__": "Infinity"}`, as transformers writes an infinite number, as a number."""
    return float(value["__float__"]) if set(value) == {"__float__"} else value


def _problems(config: Mapping[str, Any], place: str = "") -> Iterator[str]:
    """What is wrong with the numbers of a config and of the configs inside it."""
    family = config.get("model_type")
    if family is not None and not isinstance(family, str):
        yield f"{place}model_type is {_said(family)}; it must be a text, such as gpt2"
    for name, kind, example in (("architectures", list, '["GPT2LMHeadModel"]'), ("auto_map", dict, "{}")):
        if config.get(name) is not None and not isinstance(config[name], kind):
            yield f"{place}{name} is {_said(config[name])}; it must be like {example}"
    for field, names in FIELDS.items():
        for name in names:
            if problem := _problem(field, config.get(name)):
                yield f"{place}{name} is {_said(config[name])}; {problem}"
    for name, value in config.items():
        counts = value if isinstance(value, list) else [value]
        if _COUNTS.search(name) and any(isinstance(one, int) and one > _MOST["depth"] for one in counts):
            yield f"{place}{name} is {_said(value)}; a network with more than {_MOST['depth']:,} is not built here"
    labels = config.get("num_labels")
    if isinstance(labels, int) and labels > _MOST_LABELS:
        yield f"{place}num_labels is {labels}; no model has more than {_MOST_LABELS:,}"
    for name, inner in config.items():
        if isinstance(inner, dict) and (name.endswith("_config") or name in ("encoder", "decoder")):
            yield from _problems(inner, f"{place}{name}.")


def _problem(field: str, value: Any) -> str | None:
    least = 1 if field in _AT_LEAST_ONE else 0
    for one in value if isinstance(value, list) else [value]:
        if one is None or isinstance(one, list | dict):
            continue  # a family's own way to say it, which transformers checks
        if not isinstance(one, int) or isinstance(one, bool) or one < least:
            return f"it must be a whole number of at least {least}"
        if field == "experts" and one > _MOST[field]:
            return f"a network with more than {_MOST[field]:,} is not built here"
    return None


def _said(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def number_in(config: Mapping[str, Any], field: str) -> int | None:
    """A number of `FIELDS` under whichever name a config has it; None where there is none, or one for each layer."""
    return whole_number(next((config[name] for name in FIELDS[field] if config.get(name) is not None), None))


def whole_number(value: Any) -> int | None:
    """A whole number above zero, of a list of the same one for each layer too; None of anything else."""
    if isinstance(value, list | tuple) and value and all(one == value[0] for one in value):
        value = value[0]
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def without(config: Mapping[str, Any], names: frozenset[str]) -> dict[str, Any]:
    """A config without some keys, in the configs inside it too."""
    return {
        key: without(value, names) if isinstance(value, dict) else value
        for key, value in config.items()
        if key not in names
    }


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
_COUNTED = ("width", "depth", "heads", "vocab_size", "ff_width")  # under these names
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
    named = zip(_COUNTED, GPT2_NAMES if is_gpt2 else LLAMA_NAMES, strict=True)
    numbers: dict[str, Any] = {field: config.get(key) for field, key in named}
    positions = config.get("n_positions", GPT2_POSITIONS) if is_gpt2 else 0
    kv_heads, head_dim = numbers["heads"], plain.head_dim
    if plain.biases != "all":
        own_kv_heads = config.get("num_key_value_heads")
        kv_heads = kv_heads if own_kv_heads is None and not plain.needs_kv_heads else own_kv_heads
        head_dim = config.get("head_dim") or head_dim
    elif is_gpt2 and numbers["ff_width"] is None and isinstance(numbers["width"], int):
        numbers["ff_width"] = 4 * numbers["width"]
    counts = [*numbers.values(), kv_heads, head_dim or 1]
    if not (all(isinstance(one, int) and one > 0 for one in counts) and isinstance(positions, int)):
        return None
    width, depth, heads, vocab_size, ff_width = numbers.values()
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
        kv_heads=kv_heads,
        head_dim=head_dim,
        key_dim=head_dim,
        context=positions,
        **numbers,
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
