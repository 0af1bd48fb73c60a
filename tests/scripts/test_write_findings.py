"""The command that writes the report's first page."""

import json

from commands import run_here
from shipped import SCALES, shipped
from small import REPOSITORY, SCRIPTS

from shapelaw.campaign.config import load_config
from shapelaw.campaign.submission import submission_of, write_submission


def test_the_page_of_two_studies_in_the_order_of_the_registry(tmp_path):
    for study in ("vocabulary", "depth_width"):
        (tmp_path / study).mkdir()
        said = {"sentence": f"Answer of {study}.", "decided": False, "published": ""}
        (tmp_path / study / "fit.json").write_text(json.dumps({"answer": said}))
    out = tmp_path / "findings.html"
    options = ["--results", tmp_path, "--studies", "vocabulary", "depth_width", "--out", out]
    done = run_here(SCRIPTS / "write_findings.py", *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    text = out.read_text(encoding="utf-8")
    assert text.index("Answer of depth_width.") < text.index("Answer of vocabulary.")
    done = run_here(SCRIPTS / "write_findings.py", *options[:3], "relu", *options[-2:], cwd=tmp_path)
    assert (done.returncode, "relu/fit.json is missing" in done.stderr) == (2, True)


def test_a_grid_s_question_comes_from_what_was_submitted(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "fit.json").write_text(json.dumps({}))
    grid = {"axes": {"depth": [1, 2], "width": [16, 32], "heads": [1, 2]}}
    config = load_config(shipped(studies=["mine"], grids={"mine": grid}), SCALES)
    submission = submission_of(config, REPOSITORY, REPOSITORY)
    write_submission(submission, tmp_path)
    out, submitted = tmp_path / "findings.html", tmp_path / submission.path
    options = ["--results", tmp_path, "--out", out, "--submitted", submitted, "--studies"]
    done = run_here(SCRIPTS / "write_findings.py", *options, "mine", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    text = out.read_text(encoding="utf-8")
    assert "Grid: mine" in text
    assert "What do heads change: the loss at equal size" in text
    done = run_here(SCRIPTS / "write_findings.py", *options, "relo", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == "There is no study relo (did you mean relu?); a grid needs --submitted FILE.\n"
