"""Commands of the workflow that read what was submitted: how far runs are, the report's first page."""

import json
import os
from pathlib import Path

from commands import output_of, script
from made_records import write_finished
from shipped import SCALES, shipped
from small import REPOSITORY

from shapelaw.campaign.config import load_config
from shapelaw.campaign.submission import Submission, submission_of, write_submission
from shapelaw.specs.runs import Run
from shapelaw.storage import records


def submitted(folder: Path, **config: object) -> Submission:
    """What a workflow was started for in a folder."""
    submission = submission_of(load_config(shipped(**config), SCALES, REPOSITORY), REPOSITORY, REPOSITORY)
    write_submission(submission, folder)
    return submission


def test_status_tells_of_every_study_and_fails_where_a_run_failed(tmp_path: Path) -> None:
    submission = submitted(tmp_path, studies=["depth_width", "memorization_heads"])
    said = output_of("status", cwd=tmp_path)
    for study, runs in submission.runs.items():
        assert f"{study}: 0 of {len(runs)} runs done" in said
    run = next(iter(submission.runs["depth_width"].values()))
    folder = tmp_path / "results" / "checkpoints" / run.key
    records.write_spec(folder, run)
    live = {"status": "FAILED", "message": "It diverged.", "spec_digest": run.digest, "step": 0}
    records.write_live(folder, live)
    failed = script("status", cwd=tmp_path)
    assert (failed.returncode, failed.stderr) == (1, "")
    assert "  failed: It diverged." in failed.stdout


def test_status_counts_no_record_of_another_text(tmp_path: Path) -> None:
    runs = submitted(tmp_path, studies=["depth_width"]).runs["depth_width"]
    run, results = next(iter(runs.values())), tmp_path / "results"
    assert isinstance(run, Run)
    record = write_finished(results, run, identity="another text's")
    assert f"depth_width: 1 of {len(runs)} runs done" in output_of("status", cwd=tmp_path)
    for split in ("train", "test"):
        header = results / "corpora" / run.corpus / f"V{run.shape.vocab_size}" / f"{split}.json"
        records.write_json(header, {"sha256": "a" * 64})
        os.utime(header, ns=(0, 1 + (record / "summary.json").stat().st_mtime_ns))
    said = output_of("status", cwd=tmp_path)
    assert f"{len(runs)} runs to train." in said
    assert (
        f"depth_width: 0 of {len(runs)} runs done, 0 running, 0 stopped, 0 failed, {len(runs)} waiting"
        in said
    )


def test_before_a_workflow_was_started_that_is_said(tmp_path: Path) -> None:
    done = script("status", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "No workflow was started here" in done.stderr


def answered(folder: Path, study: str) -> None:
    said = {"sentence": f"Answer of {study}.", "decided": False, "published": ""}
    (folder / study).mkdir()
    (folder / study / "fit.json").write_text(json.dumps({"answer": said}))


def test_the_first_page_has_studies_in_the_order_of_the_registry_and_names_those_of_other_starts(
    tmp_path: Path,
) -> None:
    for study in ("vocabulary", "depth_width", "mine", "block_degree"):
        answered(tmp_path, study)
    options = ("--results", ".", "--out", "findings.html", "--studies", "vocabulary")
    output_of("write_findings", *options, "depth_width", cwd=tmp_path)
    text = (tmp_path / "findings.html").read_text(encoding="utf-8")
    assert text.index("Answer of depth_width.") < text.index("Answer of vocabulary.")
    assert "<p>This page is of one start; results of others are in block_degree, mine.</p>" in text
    done = script("write_findings", *options, "relu", cwd=tmp_path)
    assert (done.returncode, "relu/fit.json is missing" in done.stderr) == (2, True)


def test_a_grid_s_question_comes_from_what_was_submitted(tmp_path: Path) -> None:
    answered(tmp_path, "mine")
    grid = {"axes": {"depth": [1, 2], "width": [16, 32], "heads": [1, 2]}}
    submission = submitted(tmp_path, studies=["mine"], grids={"mine": grid})
    options = ("--results", tmp_path, "--out", "findings.html", "--submitted", submission.path, "--studies")
    output_of("write_findings", *options, "mine", cwd=tmp_path)
    text = (tmp_path / "findings.html").read_text(encoding="utf-8")
    assert "Grid: mine" in text
    assert "depend on heads?" in text
    done = script("write_findings", *options, "relo", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == "There is no study relo (did you mean relu?); a grid needs --submitted FILE.\n"
