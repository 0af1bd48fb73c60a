"""The architecture of a network of the library transformers, from its config.json and without the library."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shapelaw.errors import UserError
from shapelaw.specs.architectures import Architecture, make_architecture

_KEYS = {  # the names that model families give to one number
    "width": ("hidden_size", "d_model", "n_embd", "n_embed", "dim", "emb_dim"),
    "vocab_size": ("vocab_size",),
    "embedding_rank": ("embedding_size", "word_embed_proj_dim", "d_embed"),
    "patch": ("patch_size",),
    "channels": ("num_channels",),
    "image": ("image_size",),
    "heads": ("num_attention_heads", "num_heads", "n_head", "n_heads", "encoder_attention_heads"),
    "attention_dim": ("head_dim", "d_kv", "d_head", "attention_head_size"),
    "depth": ("num_hidden_layers", "num_layers", "n_layer", "n_layers", "encoder_layers"),
    "ff_width": ("intermediate_size", "d_ff", "ffn_dim", "n_inner", "encoder_ffn_dim"),
}
_NESTED = ("text_config", "vision_config")  # of a network with several parts; the text's part comes first


def local_path(model: str) -> Path | None:
    """The path that a `--model FOLDER_OR_NAME` is, whether it is there or not; None for a name to fetch."""
    is_path = Path(model).exists() or model.startswith((".", "/", "~"))
    return Path(model).expanduser() if is_path else None


def config_file(path: Path) -> Path:
    """The config.json of a model: the path itself, or in it where it is a folder.

    Raises:
        UserError: it is missing.
    """
    file = path / "config.json" if path.is_dir() else path
    if not file.is_file():
        raise UserError(f"There is no {file}; --model needs a folder with a config.json.")
    return file


def read_config(path: Path) -> Architecture:
    """The architecture of a config.json, or of a folder that has one; its name is the folder's.

    Raises:
        UserError: the file is missing, is not a JSON object, or lacks a number.
    """
    file = config_file(path)
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserError(f"{file} is not JSON ({error}).") from error
    if not isinstance(config, dict):
        raise UserError(f"{file} must be a JSON object, as transformers writes it.")
    return architecture_of_config(config, file.resolve().parent.name, str(file))


def architecture_of_config(config: Mapping[str, Any], name: str, source: str) -> Architecture:
    """The architecture of a config as a dict.

    Raises:
        UserError: the config lacks the width or the input's size, or its numbers contradict each other.
    """
    part = config
    if _first(config, "width") is None:
        part = next((config[key] for key in _NESTED if isinstance(config.get(key), dict)), config)
    numbers = {field: _first(part, field) for field in _KEYS}
    if numbers["width"] is None:
        raise UserError(
            f"{source} has no width: none of {', '.join(_KEYS['width'])}; give the numbers by flags."
        )
    if numbers["vocab_size"] is not None:
        numbers["patch"] = numbers["channels"] = numbers["image"] = None
    elif numbers["patch"] is None:
        raise UserError(f"{source} has neither a vocab_size nor a patch_size; give the numbers by flags.")
    return make_architecture(name, source, **numbers)


def _first(config: Mapping[str, Any], field: str) -> Any:
    value = next((config[key] for key in _KEYS[field] if config.get(key) is not None), None)
    if isinstance(value, list) and value and all(one == value[0] for one in value):
        return value[0]  # a square as [side, side]
    return value
