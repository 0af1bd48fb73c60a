"""The mistakes of a command line that Snakemake answers with a traceback."""

import os
from pathlib import Path

import pytest
from project import copy_code
from small import REPOSITORY
from snakemake_server import run_snakemake

from shapelaw.settings.command_line import command_line_problems


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (
            "--config grids={mine: {widths: {1: [16]}}} --cores 1",
            "--config has spaces; put quotes around them: --config grids='{mine: {widths: {1: [16]}}}'",
        ),
        ("--config scale", "--config has scale, which is not KEY=VALUE"),
        ("--config scale=", "--config has scale= without a value: --config scale=VALUE"),
        ("--config=scale=", "--config has scale= without a value"),
        (
            "-C training.steps=2000",
            "a key inside of a section goes into braces: --config training='{steps: 2000}'",
        ),
        ("--config a.b.c=2", "--config a='{b: {c: 2}}'"),
        ("--config sc-ale=demo", "a key is a name such as scale"),
        ("--config s=demo", "a key is a name such as scale"),
        (
            "--config scale=demo results/depth_width/fit.json",
            "a target goes before --config: snakemake results/",
        ),
        ("--config training={steps:5", "which is not YAML (expected ',' or '}', but got '<stream end>')"),
        ("--config scale=demo scale=gpu", "--config has scale twice; leave one out."),
        (
            "--configfile nowhere.yaml -n",
            "The config nowhere.yaml can't be read (No such file or directory).",
        ),
        *(
            (
                f"--cores 2 --configfile {REPOSITORY}/config.yaml {targets}",
                f"a target goes before it: snakemake {targets} --configfile {REPOSITORY}/config.yaml",
            )
            for targets in ("results/x.csv", "plan results/depth_width/fit.json")
        ),
    ],
)
def test_a_mistake_is_one_sentence(line: str, sentence: str) -> None:
    (told,) = command_line_problems(line.split(" "))
    assert sentence in told


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


def test_another_file_with_the_config_that_is_not_text(tmp_path: Path) -> None:
    path = tmp_path / "more.yaml"
    path.write_bytes("scale: demo".encode("utf-16"))
    assert command_line_problems(["--configfile", str(path)])[0].startswith(
        f"The config {path} is not text in UTF-8"
    )


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
