"""A config.json: where it is, and what a folder without one is; architectures out of numbers, rows and flags."""

import math
from pathlib import Path

import pytest
from model_configs import written
from small import listed

from shapelaw.advice.models.architectures import Architecture, architecture_of_row, make_architecture
from shapelaw.advice.models.config_json import config_file, local_path, number_in, read_config
from shapelaw.errors import UserError


@pytest.mark.parametrize(("name", "words"), listed("advice/architectures.yaml", "folders"))
def test_a_folder_without_a_config_is_named_for_what_it_is(name: str, words: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("{}")
    with pytest.raises(UserError) as caught:
        config_file(tmp_path)
    assert f"has {name} and no config.json" in str(caught.value)
    assert words in str(caught.value)


def test_a_folder_without_a_config_that_is_a_text_is_a_sentence(tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(
            UserError, match=r"^There is no .*config\.json; --model needs a folder with a config"
        ):
            read_config(tmp_path)
        (tmp_path / "config.json").mkdir(exist_ok=True)
    (tmp_path / "bytes").mkdir()
    (tmp_path / "bytes" / "config.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="is not JSON"):
        read_config(tmp_path / "bytes")


def test_a_path_is_told_from_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    written(tmp_path / "mine", {})
    assert local_path("mine") == Path("mine")
    assert local_path("~/mine") == tmp_path / "mine"
    assert local_path("/no/where") == Path("/no/where")
    assert local_path("openai-community/gpt2") is None
    assert config_file(Path("mine")) == config_file(Path("mine/config.json")) == Path("mine/config.json")


def test_a_number_has_many_names_and_is_one() -> None:
    assert number_in({"n_embd": 8}, "width") == 8
    assert number_in({"num_heads": [4, 4]}, "heads") == 4
    assert number_in({"num_heads": [4, 8]}, "heads") is None
    assert number_in({"n_embd": None, "d_model": "8"}, "width") is None


def test_a_row_of_a_table_has_texts_floats_and_gaps() -> None:
    row = {
        "name": "x",
        "width": "64",
        "vocab_size": 257.0,
        "patch": math.nan,
        "heads": None,
        "depth": "",
        "note": "y",
    }
    assert architecture_of_row(row) == Architecture("x", 64, 257)


@pytest.mark.parametrize(("numbers", "sentence"), listed("advice/architectures.yaml", "architectures"))
def test_what_is_not_an_architecture_gets_one_sentence(numbers: dict[str, object], sentence: str) -> None:
    with pytest.raises(UserError) as caught:
        make_architecture("mine", **numbers)
    assert str(caught.value) == f"mine: {sentence}"
