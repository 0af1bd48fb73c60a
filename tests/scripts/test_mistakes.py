"""What is wrong with a command line is one sentence, and nothing is made (mistakes.yaml); every study is a command."""

import argparse
import shlex
from importlib import import_module
from pathlib import Path

import pytest
import yaml
from commands import script, sentence_of
from memorizing_networks import simulate
from shipped import shipped
from small import listed

from shapelaw.errors import UserError
from shapelaw.studies.registry import STUDIES


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


@pytest.mark.parametrize("study", STUDIES)
def test_a_missing_file_is_one_sentence(study: str) -> None:
    room, parser = import_module(STUDIES[study].results), argparse.ArgumentParser()
    getattr(room, "add_options", lambda _: None)(parser)
    arguments = parser.parse_args([], argparse.Namespace(study=study, input=Path("none.csv"), keep=False))
    with pytest.raises(UserError, match=r"none\.csv"):
        room.results(arguments)


def test_an_unknown_study_is_said(tmp_path: Path) -> None:
    unknown = script("analyse", "vocabularies", "--input", "a.csv", "--out", "out", cwd=tmp_path)
    assert (unknown.returncode, "invalid choice: 'vocabularies'" in unknown.stderr) == (2, True)
