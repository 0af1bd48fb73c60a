"""The sentences at the end of a workflow, while other jobs still write and delete."""

import json
from pathlib import Path

from shapelaw.storage.failures import failures


def note(folder: Path, key: str, **live: str) -> Path:
    path = folder / "depth_width" / key / "live.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"spec_digest": key, "status": "FAILED", "message": f"{key} fell.", **live}))
    return path


def test_runs_that_failed_are_told_and_no_others(tmp_path: Path) -> None:
    note(tmp_path, "a")
    note(tmp_path, "b", status="RUNNING")
    note(tmp_path, "c", spec_digest="of another config")
    note(tmp_path, "d")
    assert list(failures(tmp_path, {"a", "b", "d"})) == ["a fell.", "d fell."]
    assert list(failures(tmp_path / "nowhere", {"a"})) == []


def test_a_note_that_goes_away_meanwhile_is_passed_over(tmp_path: Path) -> None:
    note(tmp_path, "a")
    gone = note(tmp_path, "b")
    note(tmp_path, "c")
    sentences = failures(tmp_path, {"a", "b", "c"})
    assert next(sentences) == "a fell."
    gone.unlink()  # after it was listed
    assert list(sentences) == ["c fell."]


def test_a_note_that_is_not_whole_is_told(tmp_path: Path) -> None:
    note(tmp_path, "a").write_text("{")
    (sentence,) = failures(tmp_path, {"a"})
    assert sentence.startswith(f"{tmp_path}/depth_width/a/live.json can't be read")
