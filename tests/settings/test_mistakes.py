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


SECRET = "hunter2"


@pytest.mark.parametrize(
    "uri",
    [
        f"http://ada:{SECRET}@example.org",
        f"https://{SECRET}@example.org",
        f"postgresql://ada:{SECRET}@example.org/mlflow",
        f"postgresql://ada:x@{SECRET}@example.org/mlflow",
        f"mysql+pymysql://ada:'{SECRET}@example.org/mlflow",
        f"postgresql://example.org/mlflow?user=ada&password={SECRET}",
        f"postgresql://example.org/mlflow?sslpassword={SECRET}",
        f"https://example.org/?token={SECRET}",
    ],
)
def test_a_secret_in_the_tracking_uri_is_refused_and_not_shown(uri: str) -> None:
    said = problems_of(tracking={"uri": uri})
    assert "tracking.uri holds a password or a token" in said
    assert "MLFLOW_TRACKING_PASSWORD" in said
    assert "in the environment" in said
    assert SECRET not in said


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


@pytest.mark.parametrize(
    "tracking",
    [
        {"uri": f"HTTP://ada:{SECRET}@example.org"},
        {"uri": f"ada:{SECRET}@example.org"},
        {"uri": f"http://ada:{SECRET}@[::1"},
        {"uri": f"http://ada:{SECRET}℀@example.org"},  # a letter that Python refuses with the whole address
        {"uri": [f"http://ada:{SECRET}@example.org"]},
        {"uri": {"http": f"//ada:{SECRET}@example.org"}},
        f"http://ada:{SECRET}@example.org",
        f"http://example.org?token={SECRET}",
        {"password": SECRET},
    ],
)
def test_no_other_mistake_shows_a_secret(tracking: object) -> None:
    said = problems_of(tracking=tracking)
    assert said.startswith("The config has 1 problem:\n  - tracking")
    assert SECRET not in said
