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


def test_a_model_s_config_is_judged(tmp_path: Path) -> None:
    config = {"hidden_size": 4096, "vocab_size": 32000, "num_attention_heads": 32, "num_hidden_layers": 32}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    said = advise(tmp_path, "--params", 6.74e9, "--model", tmp_path)
    assert (said.returncode, said.stderr) == (0, "")
    assert "Budget: 6.74 billion parameters, vocabulary 32,000" in said.stdout
    assert "Your shape: 32 layers of width 4,096 is shallower than advised" in said.stdout
    assert "nothing binds" in said.stdout
