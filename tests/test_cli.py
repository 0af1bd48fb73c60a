"""The command `shapelaw`: its names, its arguments, and an installation without the clone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from small import PYTHON, REPOSITORY, SCRIPTS

from shapelaw.cli import COMMANDS, SNAKEMAKE, arguments_of, help_text, main


def test_every_command_is_a_script_and_stands_in_the_help() -> None:
    for name, command in COMMANDS.items():
        assert command.script == SNAKEMAKE or (SCRIPTS / f"{command.script}.py").is_file()
        assert f"  {name} " in help_text()


@pytest.mark.parametrize(
    ("name", "given", "arguments"),
    [
        ("shape", ["1.3B", "--vocab", "257"], ["1.3B", "--vocab", "257"]),
        ("shape", ["--params", "1.3B"], ["--params", "1.3B"]),
        ("fit", ["a/runs.csv"], ["--runs", "a/runs.csv", "--out", "runs_fit"]),
        ("fit", ["runs.csv", "--out", "x"], ["--runs", "runs.csv", "--out", "x"]),
        ("plan", ["--config", "scale=gpu"], ["plan", "--config", "scale=gpu"]),
        ("rank", ["--depth", "2"], ["--depth", "2"]),
    ],
)
def test_a_first_argument_is_what_the_command_is_about(
    name: str, given: list[str], arguments: list[str]
) -> None:
    assert arguments_of(COMMANDS[name], given) == arguments


def test_a_command_runs_its_script_and_returns_its_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["shape", "1.3B"]) == 0
    assert "Best depth: 36 layers" in capsys.readouterr().out
    assert main(["shape", "none"]) == 2
    assert "SIZE is none" in capsys.readouterr().err


def test_what_is_no_command_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert (main([]), main(["--help"])) == (2, 0)
    assert main(["shapes"]) == 2
    assert (
        "'shapes' is not a command of shapelaw; it has shape, advisor, speed, fit" in capsys.readouterr().err
    )


def test_studies_want_a_clone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["run"]) == 2
    assert "There is no Snakefile in" in capsys.readouterr().err


def test_a_wrong_config_is_told_before_snakemake_starts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(REPOSITORY)
    assert main(["plan", "--config", "training.steps=2000"]) == 2
    assert "--config training='{steps: 2000}'" in capsys.readouterr().err


def test_help_imports_nothing_heavy() -> None:
    code = "import sys; from shapelaw.cli import main; main(['--help']); print(sorted(sys.modules), file=sys.stderr)"
    done = subprocess.run([PYTHON, "-c", code], cwd=SCRIPTS, capture_output=True, text=True, check=True)
    assert not any(
        f"'{name}'" in done.stderr for name in ("torch", "numpy", "pandas", "pydantic", "snakemake")
    )


@pytest.mark.slow
def test_an_installation_answers_without_the_clone(tmp_path: Path) -> None:
    """Built and installed as by `pip install .`, with the packages of this environment."""
    source = tmp_path / "source"
    names = subprocess.run(
        ["git", "ls-files"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    ).stdout
    for name in names.splitlines():
        if name.startswith(("scripts/", "workflow/reference/")) or "/" not in name:
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((REPOSITORY / name).read_bytes())
    target = tmp_path / "site"
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
    ]
    subprocess.run([*pip, "--target", str(target), str(source)], check=True)
    environment = {**os.environ, "PYTHONPATH": str(target)}
    for asked, said in (
        (["shape", "1.3B"], "Best depth: 36 layers"),
        (["bottlenecks", "ESM-1b"], "the vocabulary binds"),
        (["capacity", "--heads", "20", "--context", "32", "--head-dim", "64"], "theorem 1"),
    ):
        done = subprocess.run(
            [str(PYTHON), "-m", "shapelaw.cli", *asked],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert said in done.stdout
