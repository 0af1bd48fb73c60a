"""The mistakes of a command line that Snakemake answers with a traceback."""

import os
from pathlib import Path

import pytest
from job_server import run_snakemake
from project import copy_code
from small import REPOSITORY, listed

from shapelaw.settings.command_line import command_line_problems


@pytest.mark.parametrize(("line", "sentence"), listed("settings/command_lines.yaml", "mistakes"))
def test_a_mistake_is_one_sentence(line: str, sentence: str) -> None:
    (told,) = command_line_problems(line.replace("PROJECT", str(REPOSITORY)).split(" "))
    assert sentence in told.replace(str(REPOSITORY), "PROJECT")


@pytest.mark.parametrize(
    "line",
    [
        ["--config", "scale=demo", "training={steps: 5, optimizer: adam}", "--cores", "2", "plan"],
        ["results/depth_width/fit.json", "-n", "--configfile", str(REPOSITORY / "config.yaml")],
        ["--config", "studies=[depth_width]", "tracking={uri: sqlite:///x.db}"],
        ["--set-resources", "train_large:runtime=5", "--quiet", "rules"],
    ],
)
def test_what_is_right_is_left_to_snakemake(line: list[str]) -> None:
    assert command_line_problems(line) == []


@pytest.mark.parametrize(
    "line",
    ["--config training.steps=2000", "--config scale", "--config s=3", "--configfile nowhere.yaml"],
)
def test_snakemake_says_so_too_where_it_is_not_started_by_our_command(tmp_path: Path, line: str) -> None:
    """profiles/default asks before Snakemake reads the options."""
    copy_code(tmp_path)
    done = run_snakemake(("-n", *line.split(" ")), tmp_path, os.environ)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    said = done.stderr.splitlines()
    (problem,) = command_line_problems(line.split(" "))
    assert said[-1] == problem
