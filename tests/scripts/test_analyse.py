"""The command of every study's analysis."""

import argparse
from importlib import import_module
from pathlib import Path

import pytest
from commands import run_here
from small import SCRIPTS

from shapelaw.errors import UserError
from shapelaw.studies.registry import STUDIES

SCRIPT = SCRIPTS / "analyse.py"


@pytest.mark.parametrize("study", STUDIES)
def test_a_missing_file_is_one_sentence(study: str) -> None:
    room, parser = import_module(STUDIES[study].results), argparse.ArgumentParser()
    if hasattr(room, "add_options"):
        room.add_options(parser)
    arguments = parser.parse_args([], argparse.Namespace(study=study, input=Path("none.csv")))
    with pytest.raises(UserError, match=r"none\.csv"):
        room.results(arguments)


def test_without_input_it_says_what_is_missing(tmp_path: Path) -> None:
    done = run_here(SCRIPT, "depth_width", "--out", "out", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == "depth_width needs --input FILE; analyse.py depth_width --help says of what.\n"
    assert not (tmp_path / "out").exists()


def test_help_says_what_the_input_has_to_have(tmp_path: Path) -> None:
    done = run_here(SCRIPT, "vocabulary", "--help", cwd=tmp_path)
    assert done.returncode == 0
    assert "`vocab_size, embedding_rank, depth, width, seed, test_loss`" in done.stdout
    assert "--size {block,total,flops}" in done.stdout


def test_an_unknown_study_is_named(tmp_path: Path) -> None:
    done = run_here(SCRIPT, "vocabularies", "--input", "a.csv", "--out", "out", cwd=tmp_path)
    assert done.returncode == 2
    assert "invalid choice: 'vocabularies'" in done.stderr
