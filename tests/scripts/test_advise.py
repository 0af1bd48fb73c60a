"""The command line of the advisor."""

import json
import subprocess
from pathlib import Path

import pytest
from commands import run_here
from small import SCRIPTS


def advise(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    return run_here(SCRIPTS / "advise.py", *arguments, cwd=folder)


def test_a_budget_gives_a_shape_in_words_and_as_json(tmp_path: Path) -> None:
    asked = ("--params", 1.3e9, "--vocab", 50257, "--tied", "--depth", 24, "--width", 2048)
    said = advise(tmp_path, *asked)
    assert (said.returncode, said.stderr) == (0, "")
    assert "Best depth: 42 layers (68%: 41 to 42)" in said.stdout
    assert "Your shape: 24 layers of width 2,048 is shallower than advised" in said.stdout
    values = json.loads(advise(tmp_path, *asked, "--json").stdout)
    assert values["given"]["depth"] == 24


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--params", 0, "--vocab", 257), "--params is 0; give a number of parameters"),
        (("--params", "nan", "--vocab", 257), "--params is nan"),
        (("--params=-1B", "--vocab", 257), "--params is -1B"),
        (("--params", 1e9, "--vocab", 1), "--vocab is 1; it must be at least 2"),
        (("--params", 1e9, "--vocab", 257, "--rank", 0), "--rank is 0; it must be at least 1"),
        (("--params", 1e9, "--vocab", 257, "--context", -1), "--context is -1; it must be at least 0"),
        (("--params", 1e9, "--vocab", 257, "--rank", 8, "--tied"), "--rank and --tied exclude each other"),
        (("--params", 1e9, "--vocab", 257, "--depth", 8), "give both, or neither"),
        (
            ("--params", 1e9, "--vocab", 257, "--depth", 0, "--width", 8),
            "depth is 0; it must be at least 1",
        ),
        (("--params", 1e5, "--vocab", 50257, "--rank", 8), "The embedding's first factor"),
        (("--params", 1e9, "--vocab", 257, "--fit", "nowhere"), "--fit nowhere has no transitions.csv"),
    ],
)
def test_wrong_input_is_one_sentence(tmp_path: Path, arguments: tuple[object, ...], sentence: str) -> None:
    done = advise(tmp_path, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


CONFIGS: dict[str, dict[str, object]] = {
    "gpt2": {"n_embd": 768, "n_head": 12, "n_layer": 12, "vocab_size": 50257},
    "llama": {"hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 32, "vocab_size": 32000},
    "mixtral": {
        "hidden_size": 320,
        "num_attention_heads": 20,
        "num_hidden_layers": 6,
        "num_key_value_heads": 20,
    },
    "bert": {"hidden_size": 768, "num_attention_heads": 12, "num_hidden_layers": 12},
    "vit": {"hidden_size": 768, "num_attention_heads": 12, "num_hidden_layers": 12},
}


def folder_of(family: str, place: Path) -> Path:
    (place / family).mkdir()
    config = {"model_type": family, **CONFIGS[family]}
    (place / family / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return place / family


def test_a_model_s_config_is_judged(tmp_path: Path) -> None:
    said = advise(tmp_path, "--params", 6.74e9, "--model", folder_of("llama", tmp_path))
    assert (said.returncode, said.stderr) == (0, "")
    assert "llama is a dense decoder (llama): 6,738,415,616 parameters" in said.stdout
    assert "Budget: 6.74 billion parameters, vocabulary 32,000, untied classifier" in said.stdout
    assert "Your shape: 32 layers of width 4,096 is shallower than advised" in said.stdout
    assert "nothing binds" in said.stdout


def test_a_model_s_ties_and_positions_are_the_budget_s(tmp_path: Path) -> None:
    """GPT-2 was taken for untied and without positions: 22 layers of width 522 in place of 24 of 577."""
    asked = ("--params", "124M", "--model", folder_of("gpt2", tmp_path))
    values = json.loads(advise(tmp_path, *asked, "--json").stdout)
    assert (round(values["depth"]), round(values["width"])) == (24, 576)
    without = json.loads(advise(tmp_path, *asked, "--context", 0, "--json").stdout)
    assert (round(without["depth"]), round(without["width"])) == (24, 577)
    model = values["model"]
    assert (model["kind"], model["params"], model["tied"]) == ("dense-decoder", 124_439_808, True)
    assert (model["embedding_rank"], model["heads"], model["head_dim"]) == (None, 12, 64)
    assert values["given"]["depth"] == 12


@pytest.mark.parametrize(
    ("family", "kind"), [("mixtral", "mixture-of-experts"), ("bert", "encoder"), ("vit", "image")]
)
def test_what_is_no_dense_decoder_is_named_and_not_judged(tmp_path: Path, family: str, kind: str) -> None:
    asked = ("--params", "120M", "--model", folder_of(family, tmp_path))
    values = json.loads(advise(tmp_path, *asked, "--json").stdout)
    assert (values["model"]["kind"], values["given"]) == (kind, None)
    said = advise(tmp_path, *asked)
    assert (said.returncode, said.stderr) == (0, "")
    assert values["not_judged"] in said.stdout
    assert "Best depth" not in said.stdout
    assert "was measured for dense decoders: it is not judged." in said.stdout
