"""Numbers of published models as their config.json has them, under transformers' names of their families."""

import json
from pathlib import Path
from typing import Any

_HEADS = {"hidden_size": 768, "num_attention_heads": 12, "num_hidden_layers": 12}
_TINY_LLAMA = {"hidden_size": 2048, "num_attention_heads": 32, "num_hidden_layers": 22, "vocab_size": 32000}
_GEMMA_2_9B = {
    "hidden_size": 3584,
    "num_attention_heads": 16,
    "num_hidden_layers": 42,
    "intermediate_size": 14336,
    "num_key_value_heads": 8,
    "vocab_size": 256000,
}
CONFIGS: dict[str, dict[str, Any]] = {
    "gpt2": {"n_embd": 768, "n_head": 12, "n_layer": 12, "vocab_size": 50257},
    "llama": {**_TINY_LLAMA, "num_key_value_heads": 4, "intermediate_size": 5632},
    "gemma2": _GEMMA_2_9B,
    "mixtral": {**_HEADS, "num_key_value_heads": 12},
    "bert": _HEADS,
    "vit": _HEADS,
}

# what of a Llama no formula counts
NOT_COUNTED: list[dict[str, Any]] = [
    {"architectures": ["LlamaForSequenceClassification"]},
    {"attention_bias": True},
    {"intermediate_size": None},
    {"num_hidden_layers": [1, 1]},
]


def config_of(family: str) -> dict[str, Any]:
    """The config of a model of a family."""
    return {"model_type": family, **CONFIGS[family]}


def written(folder: Path, config: dict[str, Any] | str) -> Path:
    """A folder with a config.json, of a config or of a text."""
    folder.mkdir(exist_ok=True)
    text = config if isinstance(config, str) else json.dumps(config)
    (folder / "config.json").write_text(text, encoding="utf-8")
    return folder


def folder_of(family: str, place: Path) -> Path:
    """A folder in `place` with that config."""
    return written(place / family, config_of(family))
