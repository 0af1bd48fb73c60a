"""What is wrong with a command line is one sentence, and nothing is made (mistakes.yaml)."""

import shlex
from pathlib import Path

import pytest
import yaml
from commands import sentence_of
from memorizing_networks import simulate
from shipped import shipped
from small import listed


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the command lines name."""
    made = tmp_path_factory.mktemp("mistakes")
    (made / "config.yaml").write_text(yaml.safe_dump(shipped(scale="gpu")))
    simulate((4, 8, 12)).to_csv(made / "good.csv", index=False)
    simulate((4, 8, 12)).drop(columns="seed").to_csv(made / "bad.csv", index=False)
    return made


@pytest.mark.parametrize(("line", "says"), listed("scripts/mistakes.yaml", "commands"))
def test_a_mistake_is_one_sentence(line: str, says: str, folder: Path) -> None:
    before = set(folder.iterdir())
    assert says in sentence_of(*shlex.split(line), cwd=folder)
    assert set(folder.iterdir()) == before
