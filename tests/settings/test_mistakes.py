"""Configs and command lines that are wrong: each problem is told once, by its key, with what would be right."""

import os
from pathlib import Path
from typing import Any

import pytest
from job_server import run_snakemake
from project import copy_code
from shipped import SCALES, cases_of, check_told, problems_of, shipped
from small import REPOSITORY, listed

from shapelaw.campaign.config import load_config
from shapelaw.settings.command_line import command_line_problems
from shapelaw.settings.problems import ordinal


@pytest.mark.parametrize(
    ("config", "says"), cases_of("settings/mistakes.yaml"), ids=lambda value: str(value)[:60]
)
def test_all_that_is_wrong_with_a_config_is_told(config: dict[str, Any], says: list[str]) -> None:
    first, *lines = problems_of(**config).replace(str(REPOSITORY), "PROJECT").splitlines()
    assert first == f"The config has {len(says)} problem{'s' if len(says) > 1 else ''}:"
    check_told([line.removeprefix("  - ") for line in lines], says)


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
    ["--config training.steps=2000", "--configfile nowhere.yaml"],
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


@pytest.mark.parametrize(
    "uri",
    [None, "sqlite:///results/mlflow.db", "http://example.org:5000", "postgresql://ada@example.org/mlflow"],
)
def test_a_tracking_uri_without_a_secret_is_taken(uri: str | None) -> None:
    assert load_config(shipped(tracking={"uri": uri}), SCALES).tracking.uri == uri


def test_places_are_counted_as_people_do() -> None:
    assert [ordinal(place) for place in (0, 1, 2, 3, 10, 11, 12, 20, 110)] == [
        *("1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "111th")
    ]
