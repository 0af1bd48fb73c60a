"""The command of every study's analysis."""

import argparse
import json
from importlib import import_module
from pathlib import Path

import pandas as pd
import pytest
from commands import script
from small import REPOSITORY

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


def test_a_diverged_run_of_a_study_is_left_out_and_told_with_the_findings(tmp_path: Path) -> None:
    runs = pd.read_parquet(REPOSITORY / "docs" / "results" / "laptop_depth_width.parquet")
    runs.loc[7, "test_loss"] = 9.87
    runs.to_parquet(tmp_path / "runs.parquet")
    given = ("--input", "runs.parquet", "--out", "out", "--draws", 100)
    said = script("analyse", "depth_width", *given, cwd=tmp_path).stdout
    first = json.loads((tmp_path / "out" / "fit.json").read_text())["findings"][0]
    assert f"\n{first}\n" in said
    told = "1 run far off every surface through the losses of the other shapes is left out"
    assert first.startswith(f"Read from runs.parquet: {told}")
    assert runs["key"][7] in first
