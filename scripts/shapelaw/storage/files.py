"""Files that are whole or absent: every file that something else relies on is written through here.

This module imports the standard library only.
"""

from __future__ import annotations

import errno
import glob
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from shapelaw.errors import UserError

FILES = ("spec.json", "history.parquet", "summary.json")  # the last one makes a record whole
STEPS = f"step-{10 * '[0-9]'}.pt"  # the pattern of checkpoints; a user's file beside them is none
_ADVICE = {
    errno.ENOSPC: "free some space and start again",
    errno.EDQUOT: "free some of your quota and start again",
    errno.EFBIG: "raise the limit on the size of files and start again",
    errno.EROFS: "make the disk writable and start again",
    errno.EIO: "check the disk and start again",
}  # errors that only a disk raises; others count where they name the file that is written


class WriteFailed(UserError):
    """A file can't be written: the disk is full, read-only or broken. What was there before is untouched.

    Attributes:
        reason: the error of the disk.
        advice: what to do, a clause.
    """

    def __init__(self, path: Path, number: int) -> None:
        self.reason = os.strerror(number)
        self.advice = {**_ADVICE, errno.EISDIR: "give the name of a file and start again"}.get(
            number, "make its folder one that you can write to and start again"
        )
        super().__init__(f"{path} can't be written ({self.reason}); {self.advice}.")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; once the block has written it, flush it to the disk and rename it.

    Whatever happens, `path` is whole or as it was before; once the block is left, a power cut can't undo it.
    Temporary files that killed processes of this machine left at the same path are deleted.

    Raises:
        WriteFailed: the disk is full, read-only or broken, or the folder can't be written.
    """
    temporary = _temporary(path)
    with disk_errors(path):
        _make_folder(path.parent)
        _delete_dead(path)
        try:
            yield temporary
            _flush(temporary)
            temporary.replace(path)
            _flush_folder(path.parent)
        finally:
            with suppress(OSError):  # the disk became read-only; the error at hand says so
                temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a file of text, atomically.

    Raises:
        WriteFailed: the disk is full, read-only or broken, or the folder can't be written.
    """
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def check_writable(path: Path) -> None:
    """Check that a file can be written, before the work whose result it takes; its folder is made.

    Raises:
        WriteFailed: it is a folder, or the disk is full, read-only or broken, or its folder can't be written.
    """
    if path.is_dir():
        raise WriteFailed(path, errno.EISDIR)
    temporary = _temporary(path)
    with disk_errors(path):
        _make_folder(path.parent)
        temporary.touch()
        temporary.unlink()


def _temporary(path: Path) -> Path:
    return path.with_name(f".{path.name}.{socket.gethostname()}.{os.getpid()}.tmp")


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn a disk's error while `path` is written into a sentence.

    Raises:
        WriteFailed: the disk is full, read-only or broken, or `path` or a folder above it can't be written.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _ADVICE and not _is_about(error, path):
            raise
        raise WriteFailed(path, error.errno or 0) from error


def _is_about(error: OSError, path: Path) -> bool:
    """True where an error names the path, its temporary file or a folder above it."""
    if not isinstance(error.filename, str | bytes):
        return False
    named = Path(os.fsdecode(error.filename))
    beside = named.parent == path.parent and named.name.startswith((path.name, f".{path.name}."))
    return beside or named in path.parents


def follow_folder(path: Path) -> None:
    """Let whoever may read or write a file's folder do the same with the file: SQLite makes files for one user alone.

    Another user's file stays as it is.
    """
    with suppress(PermissionError):
        path.chmod(0o600 | path.parent.stat().st_mode & 0o666)


def delete_leftovers(folder: Path) -> None:
    """Delete temporary files that killed processes left; call it where no other process writes into the folder."""
    for path in folder.glob(".*.tmp"):
        path.unlink(missing_ok=True)


def _delete_dead(path: Path) -> None:
    """Delete the temporary files of `path` whose processes ran on this machine and are gone."""
    start = f".{path.name}.{socket.gethostname()}."
    for other in path.parent.glob(f"{glob.escape(start)}*.tmp"):
        number = other.name.removeprefix(start).removesuffix(".tmp")
        if number.isdecimal() and int(number) != os.getpid() and not is_alive(int(number)):
            other.unlink(missing_ok=True)


def is_alive(process: int) -> bool:
    """True where a process of this machine exists, another user's too."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # the process is another user's
        return True
    return True


def _make_folder(folder: Path) -> None:
    """Make a folder and its parents, flushed to the disk: a power cut can't undo it."""
    if not folder.is_dir():
        _make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        _flush_folder(folder.parent)


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _flush_folder(folder: Path) -> None:
    try:
        _flush(folder)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some network file systems can't flush a folder, and needn't
            raise


def written(path: str | Path) -> float:
    """When a file was written, in seconds since 1970; 0 where there is none, such as an older checkpoint by now."""
    try:
        return Path(path).stat().st_mtime
    except OSError:
        return 0.0
