"""The command `shapelaw`: its names, its arguments, and an installation without the clone."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from small import PYTHON, REPOSITORY, command_path

from shapelaw.cli import COMMANDS, SNAKEMAKE, help_text, main


def test_every_command_is_a_script_and_stands_in_the_help() -> None:
    for name, command in COMMANDS.items():
        assert command.script == SNAKEMAKE or command_path(command.script).is_file()
        assert f"  {name} " in help_text()


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_s_help_shows_the_command_and_no_script(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([name, "--help"]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"usage: shapelaw {name}")
    assert f"python scripts/{COMMANDS[name].script}.py" not in said
    assert " --runs" not in said
    shown = re.findall(r"shapelaw ([a-z]+)\b", said)
    assert set(shown) <= set(COMMANDS)


TABLE = REPOSITORY / "docs" / "results" / "laptop_depth_width.parquet"


def test_the_first_argument_is_what_a_command_is_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["transitions", str(TABLE), "--draws", "100", "--size", "total"]) == 0
    assert (tmp_path / "laptop_depth_width_transitions" / "fit.json").is_file()


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("shape 1.3B", 0, "Best depth: "),
        ("shape none", 2, "SIZE is none"),
        ("transitions none.csv", 2, "There is no file none.csv."),
        ("transitions --runs none.csv", 2, "There is no file none.csv."),
        ("--help", 0, "usage: shapelaw COMMAND"),
        ("", 2, "usage: shapelaw COMMAND"),
        (
            "shapes",
            2,
            "'shapes' is not a command of shapelaw; did you mean shape? It has shape, advisor, speed, fit",
        ),
        # of an unknown option argparse alone says that it is none
        ("shape 100M --vocb 3", 2, "unrecognized arguments: --vocb 3 (did you mean --vocab?)\n"),
        ("fit runs.csv --size=total --kep=1", 2, "unrecognized arguments: --kep=1 (did you mean --keep?)\n"),
        ("shape 1.3B --zzz", 2, "unrecognized arguments: --zzz\n"),
        ("run", 2, "There is no Snakefile in"),  # studies want a clone
    ],
)
def test_a_command_ends_with_its_code_and_says_why(
    line: str, code: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(line.split()) == code
    told = capsys.readouterr()
    assert said in (told.err or told.out)


def test_a_wrong_config_is_told_before_snakemake_starts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(REPOSITORY)
    assert main(["plan", "--config", "training.steps=2000"]) == 2
    assert "--config training='{steps: 2000}'" in capsys.readouterr().err


@pytest.mark.slow
def test_an_installation_answers_without_the_clone(tmp_path: Path) -> None:
    """Built and installed as by `pip install .`, with the packages of this environment."""
    source = tmp_path / "source"
    listed = subprocess.run(["git", "ls-files"], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    for name in listed.stdout.splitlines():
        if name.startswith(("scripts/", "workflow/reference/")) or "/" not in name:
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((REPOSITORY / name).read_bytes())
    target = tmp_path / "site"
    pip = ["-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--target"]
    subprocess.run([PYTHON, *pip, str(target), str(source)], check=True)
    environment = {**os.environ, "PYTHONPATH": str(target)}
    for asked, said in (
        (["shape", "1.3B"], "Best depth: "),
        (["advisor"], ""),
        (["bottlenecks", "ESM-1b"], "the vocabulary binds"),
        (["capacity", "--heads", "20", "--context", "32", "--head-dim", "64"], "theorem 1"),
    ):
        command = [PYTHON, "-m", "shapelaw.cli", *asked]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert said in done.stdout
