"""Checkpoints and the lock; the record of a run while it trains, when it ends, and for the next attempt."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small import small_run

from shapelaw.corpora.token_store import TokenStore
from shapelaw.errors import UserError
from shapelaw.storage import records
from shapelaw.training import checkpoint
from shapelaw.training.hardware import Ranks
from shapelaw.training.journal import Ended, Journal, UnderWay
from shapelaw.training.trainer import Runtime, Trainer


@pytest.fixture(scope="module")
def written(stores: tuple[TokenStore, TokenStore], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoint of a real run after two steps."""
    folder = tmp_path_factory.mktemp("written")
    run, ranks = small_run(dropout=0.1), Ranks(0, 1, torch.device("cpu"))
    trainer = Trainer(run, stores, folder, Runtime("cpu", threads=1), ranks)
    for _ in range(2):
        trainer.step()
    return checkpoint.save_checkpoint(folder, 2, trainer.state())


def same(one: Any, other: Any) -> bool:
    """True if two states are equal to the last bit."""
    if isinstance(one, torch.Tensor):
        return one.dtype == other.dtype and torch.equal(one.nan_to_num(7.0), other.nan_to_num(7.0))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and bool(one == other)


# what befalls a file, at a place in its content and with some noise


def cut_short(content: bytes, at: int, noise: bytes) -> bytes:
    return content[:at]


def zero_filled(content: bytes, at: int, noise: bytes) -> bytes:
    return content[:at] + bytes(len(content) - at)


def flipped_bit(content: bytes, at: int, noise: bytes) -> bytes:
    return content[:at] + bytes([content[at] ^ 1 << noise[0] % 8]) + content[at + 1 :]


def overwritten(content: bytes, at: int, noise: bytes) -> bytes:
    return (content[:at] + noise + content[at + len(noise) :])[: len(content)]


def longer(content: bytes, at: int, noise: bytes) -> bytes:
    return content + noise


@pytest.mark.slow
@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    damage=st.sampled_from([cut_short, zero_filled, flipped_bit, overwritten, longer]),
    part=st.floats(0, 1, exclude_max=True),
    from_end=st.booleans(),
    noise=st.binary(min_size=1, max_size=64),
)
def test_a_checkpoint_with_any_damage_is_noticed_or_is_what_was_written(
    written: Path, damage: Callable[[bytes, int, bytes], bytes], part: float, from_end: bool, noise: bytes
) -> None:
    """Anywhere in the file, and mostly in its last 8 KiB, where the directory and the sum are."""
    content = written.read_bytes()
    state = torch.load(written, weights_only=True)
    at = len(content) - 1 - int(part * 8192) if from_end else int(part * len(content))
    damaged = written.with_name("damaged.pt")
    damaged.write_bytes(damage(content, at, noise))
    try:
        found = checkpoint.read_checkpoint(damaged)
    except checkpoint.Damaged:
        assert damaged.read_bytes() != content
    else:
        assert same(found, state)


def saved(folder: Path, *steps: int) -> None:
    for step in steps:
        checkpoint.save_checkpoint(folder, step, {"identity": "mine", "step": step})


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_two_newest_are_kept(tmp_path: Path) -> None:
    assert checkpoint.newest_step(tmp_path / "none") == 0
    saved(tmp_path, 3, 12, 100)
    assert names(tmp_path) == ["step-0000000012.pt", "step-0000000100.pt"]
    assert [path.stem[-3:] for path in checkpoint.checkpoint_paths(tmp_path)] == ["100", "012"]
    assert checkpoint.newest_step(tmp_path) == 100
    assert checkpoint.where_to_resume(tmp_path) == "the run resumes at step 100"
    assert checkpoint.keep_newest(tmp_path, 1)
    assert not checkpoint.keep_newest(tmp_path, 1)
    assert names(tmp_path) == ["step-0000000100.pt"]
    checkpoint.keep_newest(tmp_path, 0)
    assert names(tmp_path) == []
    assert checkpoint.where_to_resume(tmp_path) == "the run begins at its first step"


def test_one_process_at_a_time_has_the_lock(tmp_path: Path) -> None:
    said: list[str] = []
    (tmp_path / ".step-0000000007.pt.half.tmp").touch()  # of a process that was killed
    with checkpoint.only_process(tmp_path, 0, said.append, lambda: None):
        assert not list(tmp_path.glob(".*.tmp"))
        refused = checkpoint.only_process(tmp_path, 0, said.append, lambda: None)
        with pytest.raises(UserError, match=rf"Another process .* \(process {os.getpid()} on "), refused:
            pass
        assert said == []
        stopped = checkpoint.only_process(tmp_path, 60, said.append, lambda: sys.exit("stop"))
        with pytest.raises(SystemExit, match="stop"), stopped:
            pass
        assert len(said) == 1
        assert f"waiting for another process that trains the run of {tmp_path}" in said[0]
    with checkpoint.only_process(tmp_path, 0, said.append, lambda: None):
        pass


def test_a_file_system_without_locks_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Lustre mounted without `flock` answers so; none can be mounted here, so the call is made to."""

    def no_locks(file: object, operation: int) -> None:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(checkpoint.fcntl, "flock", no_locks)
    with checkpoint.only_process(tmp_path, 0, print, lambda: None):
        pass
    assert "has no locks ([Errno 38] Function not implemented)" in capsys.readouterr().out


RUN = small_run()
ROWS = [(10, 5.0, 1e-3, 2.0, float("nan")), (20, 4.5, 2e-3, 1.0, 4.25)]


def journal_of(folder: Path, identity: str = "mine") -> Journal:
    return Journal(RUN, identity, {}, folder / "record", folder / "checkpoints", {"job": "17"})


def at(step: int, rows: list[tuple[float, ...]]) -> UnderWay:
    return UnderWay(RUN.key, step, RUN.steps, rows)


def live_of(folder: Path) -> dict[str, object]:
    return dict(json.loads((folder / "checkpoints" / "live.json").read_text()))


def test_progress_is_a_note_and_the_history_so_far(tmp_path: Path) -> None:
    journal = journal_of(tmp_path)
    assert not journal.is_finished()
    journal.start(at(0, []))
    assert (live_of(tmp_path)["status"], live_of(tmp_path)["step"]) == ("RUNNING", 0)
    journal.note(records.KILLED, at(20, ROWS), "was stopped")
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
    journal.start(at(0, []))
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
    other.start(at(0, []))
    assert not (tmp_path / "record").exists()


def test_a_damaged_note_is_as_none_and_one_of_another_version_is_not(tmp_path: Path) -> None:
    journal = journal_of(tmp_path)
    journal.start(at(0, []))
    journal.note(records.FAILED, at(20, ROWS), "The disk is full.")
    live = tmp_path / "checkpoints" / "live.json"
    whole = live.read_text()
    live.write_text(whole[:-20])
    assert not journal.is_finished()
    live.write_text(whole.replace('"schema_version": 1', '"schema_version": 9'))
    with pytest.raises(records.OtherSchema, match="version 9"):
        journal.is_finished()
