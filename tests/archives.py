"""Archives that are kept in the repository: the same files give the same bytes."""

import io
import os
import tarfile
from collections.abc import Iterable
from pathlib import Path

ONE_TIME = 1_767_225_600  # 2026-01-01: of every file, so that none is newer than another


def write_archive(path: Path, files: Iterable[tuple[str, bytes]]) -> None:
    """A .tar.xz of these names and contents, in this order."""
    with tarfile.open(path, "w:xz", preset=9) as archive:
        for name, content in files:
            member = tarfile.TarInfo(name)
            member.size, member.mtime = len(content), ONE_TIME
            archive.addfile(member, io.BytesIO(content))


def read_archive(path: Path) -> dict[str, bytes]:
    """Its files by name."""
    with tarfile.open(path) as archive:
        files = ((member.name, archive.extractfile(member)) for member in archive)
        return {name: file.read() for name, file in files if file is not None}


def unpack_archive(path: Path, folder: Path) -> None:
    """Write its files into a folder, with their one time."""
    for name, content in read_archive(path).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
        os.utime(folder / name, (ONE_TIME, ONE_TIME))
