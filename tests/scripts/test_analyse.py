"""The command of every study's analysis."""

import argparse
from importlib import import_module
from pathlib import Path

import pytest
from commands import script

from shapelaw.errors import UserError
from shapelaw.studies.registry import STUDIES


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
