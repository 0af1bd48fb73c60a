"""The command that tells how far a workflow is."""

import subprocess
from pathlib import Path

from commands import run_here
from shipped import SCALES, shipped
from small import REPOSITORY, SCRIPTS

from shapelaw.campaign.config import load_config
from shapelaw.campaign.submission import submission_of, write_submission
from shapelaw.storage import records


def status(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    return run_here(SCRIPTS / "status.py", *arguments, cwd=folder)


def test_it_tells_of_every_study_that_was_submitted_and_fails_where_a_run_failed(tmp_path: Path) -> None:
    config = load_config(shipped(studies=["depth_width", "memorization_heads"]), SCALES, REPOSITORY)
    submission = submission_of(config, REPOSITORY, REPOSITORY)
    write_submission(submission, tmp_path)
    said = status(tmp_path)
    assert (said.returncode, said.stderr) == (0, "")
    for study, runs in submission.runs.items():
        assert f"{study}: 0 of {len(runs)} runs done" in said.stdout
    run = next(iter(submission.runs["depth_width"].values()))
    folder = tmp_path / "results" / "checkpoints" / run.key
    records.write_spec(folder, run)
    records.write_live(
        folder, {"status": "FAILED", "message": "It diverged.", "spec_digest": run.digest, "step": 0}
    )
    said = status(tmp_path)
    assert (said.returncode, said.stderr) == (1, "")
    assert "  failed: It diverged." in said.stdout


def test_before_a_workflow_was_started_that_is_said(tmp_path: Path) -> None:
    done = status(tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "No workflow was started here" in done.stderr
