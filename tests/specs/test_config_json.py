"""Architectures out of config.json files that the library transformers itself wrote."""

import json
from pathlib import Path
from typing import Any

import pytest

from shapelaw.errors import UserError
from shapelaw.specs.architectures import Architecture
from shapelaw.specs.transformers_config import architecture_of_config, config_file, local_path, read_config

WRITTEN = [  # model type, changes of its defaults, numbers of the architecture
    ("gpt2", {}, {"vocab_size": 50257, "width": 768, "heads": 12, "depth": 12}),
    (
        "albert",
        {},
        {
            "vocab_size": 30000,
            "embedding_rank": 128,
            "width": 4096,
            "heads": 64,
            "depth": 12,
            "ff_width": 16384,
        },
    ),
    (
        "t5",
        {"d_model": 1024, "d_kv": 128, "num_heads": 128, "num_layers": 24, "d_ff": 65536},
        {
            "vocab_size": 32128,
            "width": 1024,
            "heads": 128,
            "attention_dim": 128,
            "depth": 24,
            "ff_width": 65536,
        },
    ),
    (
        "vit",
        {},
        {
            "width": 768,
            "patch": 16,
            "channels": 3,
            "image": 224,
            "heads": 12,
            "depth": 12,
            "ff_width": 3072,
        },
    ),
    (
        "opt",
        {"word_embed_proj_dim": 512, "hidden_size": 1024, "num_attention_heads": 16},
        {
            "vocab_size": 50272,
            "embedding_rank": 512,
            "width": 1024,
            "heads": 16,
            "depth": 12,
            "ff_width": 3072,
        },
    ),
    (
        "gemma",
        {},
        {
            "vocab_size": 256000,
            "width": 3072,
            "heads": 16,
            "attention_dim": 256,
            "depth": 28,
            "ff_width": 24576,
        },
    ),
    (
        "distilbert",
        {},
        {"vocab_size": 30522, "width": 768, "heads": 12, "depth": 6},
    ),
]


@pytest.mark.parametrize(("kind", "changes", "numbers"), WRITTEN, ids=[kind for kind, _, _ in WRITTEN])
def test_a_config_that_transformers_wrote(
    kind: str, changes: dict[str, int], numbers: dict[str, int], tmp_path: Path
) -> None:
    transformers = pytest.importorskip("transformers")
    transformers.CONFIG_MAPPING[kind](**changes).save_pretrained(tmp_path / "mine")
    source = str(tmp_path / "mine" / "config.json")
    assert read_config(tmp_path / "mine") == Architecture("mine", **numbers, source=source)


def test_of_a_network_with_two_parts_the_text_s_is_read() -> None:
    config = {
        "vision_config": {"hidden_size": 9, "patch_size": 3},
        "text_config": {"d_model": 8, "vocab_size": 5},
    }
    assert architecture_of_config(config, "x", "y") == Architecture("x", 8, 5, source="y")


def test_a_patch_can_be_a_pair() -> None:
    assert architecture_of_config({"hidden_size": 8, "patch_size": [3, 3]}, "x", "y").patch == 3


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"vocab_size": 5}, "has no width: none of hidden_size, d_model"),
        ({"hidden_size": 8}, "has neither a vocab_size nor a patch_size"),
        ({"hidden_size": 8, "patch_size": [3, 4]}, "patch is [3, 4]; it must be a whole number"),
        ([1], "must be a JSON object"),
        ("{", "is not JSON"),
    ],
)
def test_a_config_that_is_none_gets_one_sentence(config: Any, words: str, tmp_path: Path) -> None:
    text = config if isinstance(config, str) else json.dumps(config)
    (tmp_path / "config.json").write_text(text, encoding="utf-8")
    with pytest.raises(UserError) as caught:
        read_config(tmp_path)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_without_a_config_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"There is no .*config\.json"):
        read_config(tmp_path)


def test_a_path_is_told_from_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "config.json").write_text("{}")
    assert local_path("mine") == Path("mine")
    assert local_path("~/mine") == tmp_path / "mine"
    assert local_path("/no/where") == Path("/no/where")
    assert local_path("openai-community/gpt2") is None
    assert config_file(Path("mine")) == config_file(Path("mine/config.json")) == Path("mine/config.json")
    with pytest.raises(
        UserError, match=r"^There is no /no/where; --model needs a folder with a config.json\.$"
    ):
        config_file(Path("/no/where"))
