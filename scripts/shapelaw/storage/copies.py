"""The copy of a finished record in its checkpoint folder: one file, since file systems of clusters count files.

Its members are stored as they are. Where the copy and single files of a record lie side by side, the copy is whole and
wins. This module imports the standard library only: a process for each record reads it.
"""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path

from shapelaw.storage.files import replacing

COPY = "record.zip"
FILES = ("spec.json", "history.parquet", "summary.json")  # the last one makes a record whole


def fold(folder: Path) -> None:
    """Put a finished record's files into the one copy, and delete them; nothing where it is not finished.

    Raises:
        WriteFailed: the disk is full, read-only or broken; the files are still there.
    """
    if not (folder / FILES[-1]).exists():
        return
    with replacing(folder / COPY) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        for name in FILES:
            archive.writestr(zipfile.ZipInfo(name), (folder / name).read_bytes())
    for name in reversed(FILES):
        (folder / name).unlink(missing_ok=True)


def has(folder: Path, name: str) -> bool:
    """True where a record's folder has a file, by itself or in its copy."""
    return (folder / name).exists() or (name in FILES and (folder / COPY).exists())


def content(folder: Path, name: str) -> bytes:
    """A file of a record's folder, from the copy where there is one.

    Raises:
        OSError: it is missing or can't be read.
        ValueError: the copy is damaged.
    """
    if name in FILES and (folder / COPY).exists():
        try:
            with zipfile.ZipFile(folder / COPY) as archive:
                return archive.read(name)
        except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, NotImplementedError) as error:
            raise ValueError(f"{COPY} is damaged: {error}") from error
    return (folder / name).read_bytes()


def forget(folder: Path) -> None:
    """Delete the copy."""
    (folder / COPY).unlink(missing_ok=True)
