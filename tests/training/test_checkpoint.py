"""Checkpoints: damage is noticed, two are kept, and one process at a time has the lock."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from damages import cut_short, flipped_bit, longer, overwritten, zero_filled
from hypothesis import given, settings
from hypothesis import strategies as st
from small import small_run

from shapelaw.corpora.token_store import TokenStore
from shapelaw.errors import UserError
from shapelaw.training import checkpoint
from shapelaw.training.hardware import Ranks
from shapelaw.training.trainer import Runtime, Trainer


@pytest.fixture(scope="module")
def written(stores: tuple[TokenStore, TokenStore], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoint of a real run after two steps."""
    folder = tmp_path_factory.mktemp("written")
    run, ranks = small_run(dropout=0.1), Ranks(0, 1, torch.device("cpu"))
    trainer = Trainer(run, *stores, folder, Runtime("cpu", threads=1), ranks)
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


def saved(folder: Path, *steps: int, identity: str = "mine") -> None:
    for step in steps:
        checkpoint.save_checkpoint(folder, step, {"identity": identity, "step": step})


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
    with checkpoint.only_process(tmp_path, 0, said.append, lambda: False) as mine:
        assert mine
        refused = checkpoint.only_process(tmp_path, 0, said.append, lambda: False)
        with pytest.raises(UserError, match=rf"Another process .* \(process {os.getpid()} on "), refused:
            pass
        assert said == []
        with checkpoint.only_process(tmp_path, 60, said.append, lambda: True) as other:
            assert not other  # it was told to stop while it waited
        assert len(said) == 1
        assert f"waiting for another process that trains the run of {tmp_path}" in said[0]
    with checkpoint.only_process(tmp_path, 0, said.append, lambda: False) as mine:
        assert mine


def test_a_file_system_without_locks_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Lustre mounted without `flock` answers so; none can be mounted here, so the call is made to."""

    def no_locks(file: object, operation: int) -> None:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(checkpoint.fcntl, "flock", no_locks)
    with checkpoint.only_process(tmp_path, 0, print, lambda: False):
        pass
    assert "has no locks ([Errno 38] Function not implemented)" in capsys.readouterr().out
