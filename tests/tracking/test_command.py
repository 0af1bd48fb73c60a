"""The commands' help, exit codes and sentences."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from made_records import make_run, write_finished
from places import SCRIPTS, Script, free_port


def test_a_tracker_that_is_down_costs_exit_code_3_and_nothing_else(
    tmp_path: Path, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "t0ps3cret")
    run = make_run()
    folder = write_finished(tmp_path, run)
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    arguments = ["--results", tmp_path, "--study", "depth_width", "--out", tmp_path / "runs.parquet"]
    uri = f"http://me:hush@127.0.0.1:{free_port()}"
    done = script("import_runs.py", *arguments, "--uri", uri, "--patience", 1)
    assert done.code == 3, done.errors
    waiting, gave_up = done.errors.splitlines()
    assert waiting.startswith("Waiting up to 1 seconds for the tracker: http://***@127.0.0.1")
    assert gave_up.startswith("Gave up after 1 seconds: http://***@127.0.0.1")
    assert not [word for word in ("hush", "t0ps3cret", "Traceback") if word in done.errors]
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
    assert not (tmp_path / "runs.parquet").exists()


@pytest.mark.parametrize("name", ["import_runs.py", "follow_runs.py", "log_study.py"])
def test_the_commands_explain_themselves_without_mlflow(name: str) -> None:
    command = [sys.executable, "-X", "importtime", str(SCRIPTS / name), "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "Exit codes: 0 done" in done.stdout
    assert "mlflow.entities" not in done.stderr


def test_no_results_folder_is_a_sentence(tmp_path: Path) -> None:
    command = [sys.executable, str(SCRIPTS / "follow_runs.py"), "--results", str(tmp_path / "resluts")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("There is no results folder")
