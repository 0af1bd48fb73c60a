"""The record of a run while it trains, when it ends, and what the next attempt makes of it."""

import json
from pathlib import Path

import pytest
from small import small_run

from shapelaw.specs.runs import Run
from shapelaw.storage import records
from shapelaw.training import checkpoint
from shapelaw.training.journal import Ended, Journal

RUN = small_run()
ROWS = [(10, 5.0, 1e-3, 2.0, float("nan")), (20, 4.5, 2e-3, 1.0, 4.25)]


def journal_of(folder: Path, identity: str = "mine", run: Run = RUN) -> Journal:
    return Journal(run, identity, {}, folder / "record", folder / "checkpoints", {"job": "17"})


def live_of(folder: Path) -> dict[str, object]:
    return dict(json.loads((folder / "checkpoints" / "live.json").read_text()))


def test_progress_is_a_note_and_the_history_so_far(tmp_path: Path) -> None:
    journal = journal_of(tmp_path)
    assert not journal.is_finished()
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


def test_a_finished_run_has_a_record_of_its_spec_and_data_alone(tmp_path: Path) -> None:
    journal = journal_of(tmp_path)
    journal.start(0, [])
    journal.finish(Ended(RUN.key, ROWS, {"test_loss": 4.25}, {"more.npz": b"more"}))
    assert journal.is_finished()
    found = records.read_record(tmp_path / "record")
    assert (found.status, found.run, found.summary["test_loss"]) == ("FINISHED", RUN, 4.25)
    assert found.history["step"].to_pylist() == [10, 20]
    checkpoint.save_checkpoint(tmp_path / "checkpoints", 20, {"step": 20})
    for weights, left in ((1, ["spec.json", "step-0000000020.pt"]), (0, [])):
        journal.clear(weights)
        assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == left
    other = journal_of(tmp_path, "another's")
    assert not other.is_finished()
    other.start(0, [])
    assert not (tmp_path / "record").exists()


def test_a_damaged_note_is_as_none_and_one_of_another_version_is_not(tmp_path: Path) -> None:
    journal = journal_of(tmp_path)
    journal.start(0, [])
    journal.note(records.FAILED, 20, ROWS, "The disk is full.")
    live = tmp_path / "checkpoints" / "live.json"
    whole = live.read_text()
    live.write_text(whole[:-20])
    assert not journal.is_finished()
    live.write_text(whole.replace('"schema_version": 1', '"schema_version": 9'))
    with pytest.raises(records.OtherSchema, match="version 9"):
        journal.is_finished()
