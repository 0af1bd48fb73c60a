"""The runs of a study as import_runs.py takes them: a file with their keys."""

from pathlib import Path

import pytest
from commands import run_here
from shipped import SCALES, shipped
from small import REPOSITORY, SCRIPTS

from shapelaw.campaign.config import load_config
from shapelaw.campaign.submission import submission_of, write_submission
from shapelaw.storage.pool import read_keys


def test_each_run_of_a_study_is_listed(tmp_path: Path) -> None:
    config = load_config(shipped(scale="demo"), SCALES, REPOSITORY)
    submission = submission_of(config, REPOSITORY, REPOSITORY)
    write_submission(submission, tmp_path)
    for study, runs in submission.runs.items():
        arguments = ("--submitted", submission.path, "--study", study, "--out", "keys.txt")
        assert run_here(SCRIPTS / "list_runs.py", *arguments, cwd=tmp_path).returncode == 0
        assert read_keys(tmp_path / "keys.txt") == list(runs)


@pytest.mark.parametrize(("file", "study"), [("none.json", "depth_width"), ("submitted.json", "nothing")])
def test_what_it_cannot_list_is_told(tmp_path: Path, file: str, study: str) -> None:
    (tmp_path / "submitted.json").write_text('{"runs": {"depth_width": {}}}')
    arguments = ("--submitted", file, "--study", study, "--out", "keys.txt")
    done = run_here(SCRIPTS / "list_runs.py", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"{file} doesn't list the runs of {study} (")
    assert not (tmp_path / "keys.txt").exists()
