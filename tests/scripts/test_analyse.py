"""The command of every study's analysis."""

import argparse
import json
from importlib import import_module
from pathlib import Path

import pandas as pd
import pytest
from commands import run_here
from small import SCRIPTS

from shapelaw.errors import UserError
from shapelaw.studies.registry import STUDIES

SCRIPT = SCRIPTS / "analyse.py"


@pytest.mark.parametrize("study", STUDIES)
def test_a_missing_file_is_one_sentence(study: str) -> None:
    room, parser = import_module(STUDIES[study].results), argparse.ArgumentParser()
    getattr(room, "add_options", lambda _: None)(parser)
    arguments = parser.parse_args([], argparse.Namespace(study=study, input=Path("none.csv"), keep=False))
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


@pytest.mark.parametrize("keep", [False, True])
def test_a_diverged_run_of_a_study_is_left_out_and_told_with_the_findings(tmp_path: Path, keep: bool) -> None:
    runs = pd.read_parquet(SCRIPTS.parent / "docs" / "results" / "laptop_depth_width.parquet")
    runs.loc[7, "test_loss"] = 9.87
    runs.to_parquet(tmp_path / "runs.parquet")
    words = ["--draws", "100", *(["--keep"] if keep else [])]
    done = run_here(SCRIPT, "depth_width", "--input", "runs.parquet", "--out", "out", *words, cwd=tmp_path)
    first = json.loads((tmp_path / "out" / "fit.json").read_text())["findings"][0]
    assert done.stdout.startswith(first)
    told = (
        "kept, although"
        if keep
        else "1 run more than 6 robust deviations off other seeds of their shape is left out"
    )
    assert first.startswith(f"Read from runs.parquet: {told}")
    assert runs["key"][7] in first
