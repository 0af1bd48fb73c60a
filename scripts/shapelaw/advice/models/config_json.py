"""A model's config.json as transformers writes it: found, checked, and told from the files of other libraries.

Light: neither torch nor transformers is imported, which build the network that it describes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from shapelaw.errors import UserError, refuse_stand_in

FIELDS = {  # the names that model families give to one number
    "width": ("hidden_size", "d_model", "n_embd", "n_embed", "dim", "emb_dim", "model_dim"),
    "vocab_size": ("vocab_size", "padded_vocab_size"),
    "embedding_rank": ("embedding_size", "word_embed_proj_dim", "d_embed"),
    "heads": (
        "num_attention_heads",
        "num_heads",
        "n_head",
        "n_heads",
        "encoder_attention_heads",
        "num_query_heads",
    ),
    "kv_heads": ("num_key_value_heads", "n_head_kv", "num_kv_heads", "n_kv_heads", "multi_query_group_num"),
    "head_dim": ("v_head_dim", "head_dim", "d_kv", "d_head", "attention_head_size", "kv_channels"),
    "depth": (
        "num_hidden_layers",
        "num_layers",
        "n_layer",
        "n_layers",
        "encoder_layers",
        "num_transformer_layers",
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
