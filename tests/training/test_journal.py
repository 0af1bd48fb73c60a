"""The record of a run while it trains, when it ends, and what the next attempt makes of it."""

import json
from pathlib import Path

import pytest
from small import small_run

from shapelaw.specs.runs import Run
from shapelaw.storage import records
from shapelaw.training.journal import Journal

RUN = small_run()
ROWS = [(10, 5.0, 1e-3, 2.0, float("nan")), (20, 4.5, 2e-3, 1.0, 4.25)]


def journal_of(folder: Path, identity: str = "mine", run: Run = RUN) -> Journal:
    return Journal(run, identity, {}, folder / "record", folder / "checkpoints", {"job": "17"})


def live_of(folder: Path) -> dict[str, object]:
    return dict(json.loads((folder / "checkpoints" / "live.json").read_text()))


def test_progress_is_a_note_and_the_history_so_far(tmp_path: Path) -> None:
    journal = journal_of(tmp_path)
    assert not journal.restore_finished()
    journal.start(0, [])
    assert (live_of(tmp_path)["status"], live_of(tmp_path)["step"]) == ("RUNNING", 0)
    journal.note(records.KILLED, 20, ROWS, "was stopped")
    found = records.read_record(tmp_path / "checkpoints")
    assert (found.status, found.run, found.summary) == ("KILLED", RUN, {})
    assert found.history["step"].to_pylist() == [10, 20]
    assert found.history["test_loss"].to_pylist() == [None, 4.25]
    wanted = {"key": RUN.key, "identity": "mine", "step": 20, "steps": 60, "message": "was stopped"}
    assert wanted.items() <= found.live.items()
    assert (found.live["attempts"], found.live["tags"]) == (1, {"job": "17"})
    assert not (tmp_path / "record").exists()


def test_only_what_would_fail_again_is_not_tried_again(tmp_path: Path) -> None:
    journal = journal_of(tmp_path)
    assert journal.failure_for_good() is None
    journal.start(0, [])
    journal.note(records.FAILED, 20, ROWS, "The disk is full.")
    assert journal.failure_for_good() is None
    journal.note(records.FAILED, 20, ROWS, "The loss is nan.", for_good=True)
    said = journal.failure_for_good()
    assert said is not None
    assert said.startswith("The loss is nan. It is not tried again")
    assert said.endswith(f"rm -r {tmp_path / 'checkpoints'}")
    assert journal_of(tmp_path, "another's").failure_for_good() is None


def test_a_damaged_note_is_as_none_and_one_of_another_version_is_not(tmp_path: Path) -> None:
    journal = journal_of(tmp_path)
    journal.start(0, [])
    journal.note(records.FAILED, 20, ROWS, "The loss is nan.", for_good=True)
    live = tmp_path / "checkpoints" / "live.json"
    whole = live.read_text()
    live.write_text(whole[:-20])
    assert journal.failure_for_good() is None
    assert not journal.restore_finished()
    live.write_text(whole.replace('"schema_version": 1', '"schema_version": 9'))
    with pytest.raises(records.OtherSchema, match="version 9"):
        journal.restore_finished()
