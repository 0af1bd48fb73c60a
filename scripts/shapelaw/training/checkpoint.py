"""Checkpoints: written whole or not at all, the last two kept, the newest readable one resumed from."""

from __future__ import annotations

import fcntl
import pickle
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from shapelaw.errors import UserError
from shapelaw.files import replacing

_NAME = re.compile(r"step-(\d+)\.pt")
KEPT = 2


def save_checkpoint(directory: Path, step: int, state: Mapping[str, Any]) -> Path:
    """Write `step-<step>.pt` atomically, then drop all but the newest two.

    Raises:
        OSError: the disk is full or gone; the checkpoints that were there are untouched.
    """
    path = directory / f"step-{step:010d}.pt"
    try:
        with replacing(path) as temporary, temporary.open("wb") as file:
            torch.save(dict(state), file)
    except RuntimeError as error:  # torch's zip writer turns a failed write into one
        raise OSError(str(error)) from error
    for old in checkpoint_paths(directory)[KEPT:]:
        old.unlink()
    return path


@contextmanager
def only_process(directory: Path) -> Iterator[None]:
    """Hold the directory's lock: one process at a time trains a run.

    Raises:
        UserError: another process holds it.
    """
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UserError(
                f"Another process is training the run of {directory} at this moment; wait for it to end, or stop it."
            ) from error
        yield


def checkpoint_paths(directory: Path) -> list[Path]:
    """The checkpoints of a directory, newest first."""
    if not directory.is_dir():
        return []
    return sorted((p for p in directory.iterdir() if _NAME.fullmatch(p.name)), reverse=True)


def load_newest(
    directory: Path, identity: str, device: torch.device, warn: Callable[[str], None]
) -> dict[str, Any] | None:
    """The newest checkpoint that can be read and whose `identity` is the run's; None where there is none.

    One that is cut short (power loss) is passed over, one of another spec or data set is deleted, each with a
    warning: a foreign one of a later step would make `save_checkpoint` drop ours.
    """
    for path in checkpoint_paths(directory):
        try:
            state: dict[str, Any] = torch.load(path, map_location=device, weights_only=True)
        except (OSError, EOFError, RuntimeError, pickle.UnpicklingError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            warn(f"checkpoint {path} can't be read ({reason}); trying the one before")
            continue
        if state.get("identity") != identity:
            warn(f"checkpoint {path} is of another spec or data set; deleted")
            path.unlink()
            continue
        return state
    return None


def delete_checkpoints(directory: Path) -> None:
    """Remove every checkpoint."""
    for path in checkpoint_paths(directory):
        path.unlink()
