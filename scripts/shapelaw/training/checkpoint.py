"""Checkpoints: written whole or not at all; the last two are kept, and a run resumes from the newest undamaged one."""

from __future__ import annotations

import fcntl
import io
import os
import socket
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from pickle import UnpicklingError
from typing import IO, Any

import torch

from shapelaw.errors import UserError
from shapelaw.specs.runs import Run
from shapelaw.storage.files import STEPS, delete_leftovers, disk_errors, replacing
from shapelaw.storage.records import read_spec

SCHEMA_VERSION = 2
KEPT = 2
DAMAGED = ".damaged"  # suffix of an unreadable checkpoint, kept for people to look at
_SUM = b"shapelaw crc32 %08x\n"  # follows PyTorch's zip archive, whose readers skip it
_SUM_BYTES = len(_SUM % 0)
_BLOCK_BYTES = 2**20
_BUSY_POLL = 0.5  # seconds between two attempts at a lock


def save_checkpoint(directory: Path, step: int, state: Mapping[str, Any]) -> Path:
    """Write `step-<step>.pt` atomically, then drop all but the newest two.

    Raises:
        WriteFailed: the disk is full or gone; the checkpoints that were there are untouched.
    """
    path = checkpoint_path(directory, step)
    with replacing(path) as temporary, _SummingFile(temporary.open("wb", buffering=0)) as file:
        try:
            torch.save({"schema_version": SCHEMA_VERSION, **state}, file)
        except RuntimeError as error:  # torch's zip writer hides the disk's error behind its own
            if isinstance(error.__context__, OSError):
                raise error.__context__ from None
            raise
        file.write(_SUM % file.crc)
    keep_newest(directory, KEPT)
    return path


def checkpoint_path(directory: Path, step: int) -> Path:
    """The path of the checkpoint of a step."""
    return directory / f"step-{step:010d}.pt"


def checkpoint_paths(directory: Path) -> list[Path]:
    """The checkpoints of a directory, newest first."""
    return sorted(directory.glob(STEPS), reverse=True)


def newest_step(directory: Path) -> int:
    """The step of the newest checkpoint of a directory; 0 without one."""
    paths = checkpoint_paths(directory)
    return int(paths[0].stem[5:]) if paths else 0


def keep_newest(directory: Path, number: int) -> bool:
    """Delete all but the newest checkpoints; True if there was one to delete."""
    old = checkpoint_paths(directory)[number:]
    for path in old:
        path.unlink()
    return bool(old)


def load_newest(directory: Path, identity: str, warn: Callable[[str], None]) -> dict[str, Any] | None:
    """The newest undamaged checkpoint with the run's `identity`; None without one.

    A damaged checkpoint (cut short, zeros, a flipped bit) is set aside and the one before is tried; one of another spec
    or data set is deleted; each with a warning. Neither may keep its name: `save_checkpoint` would count it among the
    newest and drop a good one.

    Raises:
        UserError: a checkpoint has another schema version, or can't be used here.
    """
    damaged = 0
    for path in checkpoint_paths(directory):
        try:
            state = read_checkpoint(path)
        except Damaged as error:
            damaged += 1
            aside = path.with_name(path.name + DAMAGED)
            with suppress(FileNotFoundError):  # deleted between listing and reading
                path.replace(aside)
            warn(f"{error}; set aside as {aside.name}, trying the one before")
            continue
        if state.get("identity") != identity:
            warn(f"checkpoint {path} belongs to another spec or data set; deleted")
            path.unlink()
            continue
        return state
    if damaged:
        warn(f"no checkpoint in {directory} can be read; training begins again at the first step")
    return None


def where_to_resume(directory: Path) -> str:
    """A clause for messages: the step at which a new start would resume."""
    step = newest_step(directory)
    return f"the run resumes at step {step}" if step else "the run begins at its first step"


class Damaged(UserError):
    """A checkpoint can't be read; the message says why."""

    def __init__(self, path: Path, reason: str | Exception) -> None:
        said = str(reason) or type(reason).__name__
        super().__init__(f"checkpoint {path} can't be read ({said.splitlines()[0]})")


def read_checkpoint(path: Path) -> dict[str, Any]:
    """A checkpoint, its tensors in main memory. Its content is checked against its sum first.

    Raises:
        Damaged: the file is cut short or changed, or holds more than tensors and numbers. Code in it is never run.
        UserError: the file is whole but can't be used here; the sentence says why.
    """
    try:
        _check(path)
    except PermissionError as error:
        raise UserError(
            f"The checkpoint {path} can't be opened ({error.strerror}); let this user read it."
        ) from error
    except OSError as error:
        raise Damaged(path, error) from error
    try:
        state: object = torch.load(path, map_location="cpu", weights_only=True)
    except UnpicklingError as error:
        raise Damaged(path, error) from error
    except (RuntimeError, TypeError, ValueError, LookupError, AttributeError) as error:
        raise UserError(
            f"The checkpoint {path} is undamaged, but PyTorch {torch.__version__} can't load it "
            f"({str(error).splitlines()[0]}); give it more memory, or train the run from its first step: "
            f"rm -r {path.parent}"
        ) from error
    version = state.get("schema_version") if isinstance(state, dict) else None
    if not isinstance(state, dict) or version != SCHEMA_VERSION:
        raise UserError(
            f"The checkpoint {path} has schema version {version}, and this shapelaw reads version {SCHEMA_VERSION}; "
            f"check out the version that wrote it, or train the run from its first step: rm -r {path.parent}"
        )
    return state


def newest_of_decoder(folder: Path) -> tuple[Run, dict[str, Any]]:
    """A decoder's run, and its newest checkpoint, from the folder that has its spec and its checkpoints.

    Raises:
        UserError: there is none, or it can't be read.
    """
    run, paths = read_spec(folder), checkpoint_paths(folder)
    if not isinstance(run, Run) or not paths:
        raise UserError(
            f"{folder} has no checkpoint of a decoder; a finished run keeps its weights only where scripts/train.py "
            "--keep-weights-of named it, or while the config's perplexity.of named its study; it can be trained "
            f"afresh: rm -r results/{{runs,checkpoints}}/{folder.absolute().name}."
        )
    return run, read_checkpoint(paths[0])


class _SummingFile(io.BufferedWriter):
    """A file that sums (CRC-32) everything written to it."""

    crc = 0

    def write(self, content: Any, /) -> int:
        self.crc = zlib.crc32(content, self.crc)
        return super().write(content)


def _check(path: Path) -> None:
    """Compare a file with the sum at its end; torch.load alone would accept a flipped bit.

    Raises:
        Damaged: they differ, or the sum is missing.
        OSError: the file can't be read.
    """
    left, crc = path.stat().st_size - _SUM_BYTES, 0
    with path.open("rb") as file:
        while left > 0 and (block := file.read(min(left, _BLOCK_BYTES))):
            crc, left = zlib.crc32(block, crc), left - len(block)
        found = file.read()
    if found != _SUM % crc:
        summed = found.startswith(_SUM[: _SUM.index(b"%")])
        raise Damaged(path, "its content is not what was written" if summed else "it is not whole")


@contextmanager
def only_process(
    directory: Path, wait_seconds: float, warn: Callable[[str], None], waiting: Callable[[], None]
) -> Iterator[None]:
    """Hold the directory's lock: one process at a time trains a run. The system releases it when the process dies.

    Args:
        wait_seconds: how long to wait for another process.
        warn: receives a sentence on a process that is waited for, and on a file system without locks.
        waiting: called while waiting; what it raises ends the wait.

    Raises:
        UserError: another process still holds the lock after that time.
        WriteFailed: the directory can't be written.
    """
    path = directory / "lock"
    while True:
        with disk_errors(path):
            directory.mkdir(parents=True, exist_ok=True)
            try:
                file = path.open("a+")
            except FileNotFoundError:  # the process before deleted the folder
                continue
        with file:
            _lock(file, wait_seconds, warn, waiting)
            if not _is_at(path, file):  # the process before deleted it, and another one may hold a new one
                continue
            with disk_errors(path):
                file.truncate(0)
                os.write(file.fileno(), f"process {os.getpid()} on {socket.gethostname()}\n".encode())
            delete_leftovers(directory)
            try:
                yield
            finally:
                with suppress(OSError):
                    path.unlink()  # while it is held
                    directory.rmdir()  # nothing but the lock is left of a run that has its record
            return


def _is_at(path: Path, file: IO[str]) -> bool:
    """True where an open file is still the one at a path."""
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except OSError:  # deleted, here or by another node
        return False


def _lock(
    file: IO[str], wait_seconds: float, warn: Callable[[str], None], waiting: Callable[[], None]
) -> None:
    """Take the lock of an open file."""
    directory, ends, told = Path(file.name).parent, time.monotonic() + wait_seconds, False
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError as error:
            file.seek(0)
            holder = file.read().strip() or "another process"
            if time.monotonic() >= ends:
                raise UserError(
                    f"Another process is training the run of {directory} at this moment ({holder}); "
                    "wait for it to end, or stop it."
                ) from error
            if not told:
                warn(f"waiting for another process that trains the run of {directory} ({holder})")
                told = True
            waiting()
            time.sleep(_BUSY_POLL)
        except OSError as error:  # some network file systems
            warn(
                f"the file system of {directory} has no locks ({error}); make sure that no other process trains the run"
            )
            return
