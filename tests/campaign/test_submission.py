"""What a workflow was started with goes into a file and comes back as it was, or not at all."""

import hashlib
import json
import os
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from shipped import SCALE_NAMES, SCALES, shipped
from small import REPOSITORY

from shapelaw.campaign import submission as submissions
from shapelaw.campaign.config import load_config
from shapelaw.errors import UserError
from shapelaw.specs.cost import CostModel
from shapelaw.storage.pool import read_asked
from shapelaw.studies.registry import STUDIES

ASKED = [name for name, study in STUDIES.items() if not study.extra]
MODEL = CostModel(1.0, 0.1, 1e-9, 1e-11, 2.5, 1.2)


@cache
def submitted(scale: str = "demo") -> submissions.Submission:
    config = load_config(shipped(scale=scale, studies=ASKED), SCALES, REPOSITORY)
    return submissions.submission_of(config, REPOSITORY, REPOSITORY)


def started(folder: Path, scale: str = "demo") -> tuple[submissions.Submission, Path]:
    """What was written into a folder, and its file."""
    submissions.write_submission(submitted(scale), folder)
    return submitted(scale), folder / submitted(scale).path


@pytest.mark.parametrize("scale", SCALE_NAMES)
def test_what_is_read_back_is_what_was_written(tmp_path: Path, scale: str) -> None:
    """Every kind of run of every study."""
    submission = submitted(scale)
    submission = replace(submission, speed=MODEL) if scale == "laptop" else submission
    submissions.write_submission(submission, tmp_path)
    read = submissions.read_submission(tmp_path / submission.path)
    assert read == submission
    assert submissions.read_config(tmp_path / submission.path) == (submission.config, submission.speed)
    assert [list(runs) for runs in read.runs.values()] == [list(runs) for runs in submission.runs.values()]
    assert read.digest == submission.digest == submission.path.stem
    assert read.results_digest == submission.results_digest


def test_results_are_those_of_another_start_that_asks_for_the_same() -> None:
    def changed(**sections: object) -> submissions.Submission:
        config = load_config(shipped(studies=ASKED, **sections), SCALES, REPOSITORY)
        return submissions.submission_of(config, REPOSITORY, REPOSITORY)

    same = changed(execution={"threads": 3}, tracking={"uri": "http://host:5000"})
    assert same.digest != submitted().digest
    assert same.results_digest == submitted().results_digest
    widths = {"widths": {1: [16], 2: [16]}}
    others = [changed(depth_width={**widths, **one}) for one in ({}, {"size_axis": "total"}, {"seeds": 3})]
    assert len({one.results_digest for one in (submitted(), *others)}) == 4


def test_what_was_started_last_has_the_newest_file(tmp_path: Path) -> None:
    """Also where an earlier config is started again: `make status` tells of the newest."""
    submission, path = started(tmp_path)
    content = path.read_bytes()
    os.utime(path, (1.0, 1.0))
    submissions.write_submission(submission, tmp_path)
    assert path.stat().st_mtime > 1.0
    assert path.read_bytes() == content
    assert sorted(one.name for one in path.parent.iterdir()) == sorted([path.name, "runs"])
    older = path.with_name("0123456789abcdef.json")
    older.touch()
    os.utime(older, (1.0, 1.0))
    assert submissions.latest_submission(tmp_path / "results") == path
    assert submissions.latest_submission(tmp_path) is None


def test_a_start_is_repeated_alone(tmp_path: Path) -> None:
    path = tmp_path / "1.json"
    path.touch()
    assert submissions.repeated_submission({}) is None
    assert submissions.repeated_submission({"submitted": str(path)}) == path
    with pytest.raises(UserError, match=r"nothing can be set beside it; leave out scale, seeds\.$"):
        submissions.repeated_submission({"submitted": str(path), "seeds": 2, "scale": "demo"})
    with pytest.raises(UserError, match=r"2.json names no file; results/submitted/ has one of each start\.$"):
        submissions.repeated_submission({"submitted": f"{tmp_path}/2.json"})


def test_the_runs_of_every_study_are_noted_beside_those_of_earlier_starts(tmp_path: Path) -> None:
    first, _ = started(tmp_path)
    assert read_asked(tmp_path / "results") == {study: sorted(runs) for study, runs in first.runs.items()}
    second, _ = started(tmp_path, "laptop")
    assert read_asked(tmp_path / "results") == {
        study: sorted({*runs, *second.runs[study]}) for study, runs in first.runs.items()
    }


def test_studies_of_a_second_results_folder_have_experiments_of_their_own(tmp_path: Path) -> None:
    """Over the one pool, so that their summary replaces no other."""
    first = submitted()
    second = replace(first, config=first.config.model_copy(update={"results": "results-mine"}))
    for submission in (first, second):
        submissions.write_submission(submission, tmp_path)
    names = [*first.runs, *(f"{study} (results-mine)" for study in first.runs)]
    assert set(read_asked(tmp_path / "results")) == set(names)
    assert submissions.latest_experiments(tmp_path / "results") == names[len(first.runs) :]
    study = next(iter(first.runs))
    path = tmp_path / second.path
    known = STUDIES[study]
    assert submissions.submitted_study(path, study) == (f"{study} (results-mine)", known)
    for other in (tmp_path / first.path, None):
        assert submissions.submitted_study(other, study) == (study, known)


def test_a_changed_grid_file_makes_another_submission(tmp_path: Path) -> None:
    """The config says the same: it names a file."""
    grid = tmp_path / "grid.csv"
    values = shipped(depth_width={"grid_file": str(grid)})
    digests = set()
    for width in (64, 128):
        grid.write_text(f"depth,width\n2,{width}\n")
        digests.add(
            submissions.submission_of(load_config(values, SCALES, tmp_path), tmp_path, tmp_path).digest
        )
    assert len(digests) == 2


def test_a_file_that_is_not_what_was_submitted_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match=r"can't be read .*; stop the workflow \(Ctrl-C\) and start it again\.$"
    ):
        submissions.read_submission(tmp_path / submitted().path)
    _, path = started(tmp_path)
    path.write_text(path.read_text().replace('"steps"', '"step"', 1))
    with pytest.raises(UserError, match=f"was changed since: rm {path}, then stop the workflow"):
        submissions.read_submission(path)


@pytest.mark.parametrize(
    "change", ["a key of the config", "how runs are trained", "a field of runs", "no runs"]
)
def test_a_file_of_another_version_is_refused(tmp_path: Path, change: str) -> None:
    """As of a job that was submitted before the code was brought up to date."""
    _, path = started(tmp_path)
    values = json.loads(path.read_text())
    runs = submissions.runs_file(path, values["runs"])
    specs = json.loads(runs.read_text())
    (spec, *_) = specs["depth_width"].values()
    match change:
        case "a key of the config":
            values["config"]["colour"] = "red"
        case "how runs are trained":
            spec["training_version"] -= 1
        case "a field of runs":
            spec["training"]["momentum"] = 0.9
        case _:
            del values["runs"]
    content = json.dumps(values)
    other = path.with_name(f"{hashlib.sha256(content.encode()).hexdigest()[:16]}.json")
    other.write_text(content)
    runs.write_text(json.dumps(specs))
    with pytest.raises(UserError, match="is of another version of shapelaw"):
        submissions.read_submission(other)
