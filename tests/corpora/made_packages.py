"""Packages made for a test, in each format that a registry has; where fetched ones are; and what is read of both."""

import hashlib
import io
import lzma
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from small import REPOSITORY

from shapelaw.corpora.packages import PACKAGED
from shapelaw.corpora.sources import read_source
from shapelaw.settings.sections import Packaged

DOWNLOADS = REPOSITORY / "results" / "corpora" / "downloads"  # where a workflow has put what it fetched
Files = Mapping[str, bytes]


def packed(filename: str, files: Files) -> bytes:
    """The bytes of a package with these files, of the format that its name says."""
    buffer = io.BytesIO()
    if filename.endswith(".whl"):
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in files.items():
                archive.writestr(name, content)
        return buffer.getvalue()
    if filename.endswith(".deb"):
        data = lzma.compress(_tar(files))
        return b"!<arch>\n" + b"".join(
            f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n".encode()
            + content
            + b"\n" * (len(content) % 2)
            for name, content in (
                ("debian-binary", b"2.0\n"),
                ("control.tar.xz", lzma.compress(_tar({"./control": b"Package: made"}))),
                ("data.tar.xz", data),
            )
        )
    return _tar(files, "gz")


def _tar(files: Files, compression: str = "") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=f"w:{compression}") as archive:
        for name, content in files.items():
            if "/" in name:
                folder = tarfile.TarInfo(name.rpartition("/")[0])
                folder.type = tarfile.DIRTYPE
                archive.addfile(folder)
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def put_package(monkeypatch: pytest.MonkeyPatch, source: str, files: Files, cache: Path) -> None:
    """Put a made package into `cache` in place of the one of a source."""
    text = PACKAGED[source]
    content = packed(text.package.filename, files)
    (cache / text.package.filename).write_bytes(content)
    package = replace(text.package, sha256=hashlib.sha256(content).hexdigest())
    monkeypatch.setitem(PACKAGED, source, text._replace(package=package))


def sword_files(entries: Sequence[bytes], per_block: int = 3) -> dict[str, bytes]:
    """The three files of a testament in zCom4, with so many entries a block; by the last letters of their names."""
    verses, index, blocks = b"", b"", b""
    for number, first in enumerate(range(0, len(entries), per_block)):
        inside = entries[first : first + per_block]
        block, place = zlib.compress(b"".join(inside)), 0
        index += struct.pack("<III", len(blocks), len(block), sum(map(len, inside)))
        blocks += block
        for entry in inside:
            verses += struct.pack("<III", number, place, len(entry)) if entry else bytes(12)
            place += len(entry)
    return {"v": verses, "s": index, "z": blocks}


def read(name: str, cache: Path) -> list[tuple[str, str | None, str]]:
    """Source, title and text of each document of a packaged source."""
    return [(one.source, one.title, one.text) for one in read_source(Packaged(name), cache)]
