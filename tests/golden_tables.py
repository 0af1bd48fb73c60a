"""The tables (CSV) that every study's analysis writes, and its fit.json as a table of places and values, kept in
tests/golden/tables.tar.xz, what changed in them, and archives that the same files give the same bytes.

`python tests/promises.py tables` makes them afresh and rewrites the archive on purpose. It has a folder of tables for
each command of `COMMANDS`, and in inputs/ runs that are in no other place of the repository, tiny or made, which a
rewriting keeps. Committed runs are read where they are.
"""

import csv
import difflib
import io
import json
import math
import os
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from commands import script  # noqa: E402

ARCHIVE = ROOT / "tests" / "golden" / "tables.tar.xz"
INPUTS, FIT = "inputs", "fit.json"
# to which numbers are the same: last digits depend on the CPU, by up to 3e-8 of a number
RELATIVE, ABSOLUTE = 1e-6, 1e-12
SHOWN = 20  # lines of a difference
# folders of tables, and the command that makes each, but for --out FOLDER
COMMANDS: dict[str, tuple[str, ...]] = {
    name: tuple(words.split())
    for name, words in yaml.safe_load(ARCHIVE.with_name("tables.yaml").read_text(encoding="utf-8")).items()
}

ONE_TIME = 1_767_225_600  # 2026-01-01: of every file, so that none is newer than another

Tables = Mapping[str, str]  # the name of a table, and its CSV


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


@cache
def kept() -> dict[str, bytes]:
    """The files of the archive."""
    return read_archive(ARCHIVE)


def golden(name: str) -> Tables:
    """The tables that were kept of a command."""
    begins = f"{name}/"
    return {
        file.removeprefix(begins).removesuffix(".csv"): content.decode()
        for file, content in kept().items()
        if file.startswith(begins)
    }


def unpack_inputs(folder: Path) -> Path:
    """Fill a folder from which all commands run as they are written: the kept inputs, and links to committed ones."""
    for name, content in kept().items():
        if name.startswith(f"{INPUTS}/"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
    return link_committed(folder)


def link_committed(folder: Path) -> Path:
    """Link to the committed runs and the published numbers."""
    for name in ("docs", "workflow"):
        (folder / name).symlink_to(ROOT / name)
    return folder


def made(name: str, folder: Path) -> Tables:
    """The tables that a command writes today, run in a folder of `unpack_inputs`."""
    return tables_of(COMMANDS[name], folder / "made" / name, folder)


def words_of(command: Iterable[str | Path]) -> tuple[str, ...]:
    """A command whose files are named from the project's folder, as those of `COMMANDS` are."""
    return tuple(str(word.relative_to(ROOT)) if isinstance(word, Path) else word for word in command)


def tables_of(command: Sequence[str], out: Path, folder: Path) -> Tables:
    """The tables that a command writes into `out`, run in a folder."""
    name, *arguments = command
    done = script(name.removesuffix(".py"), *arguments, "--out", out, cwd=folder)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed: {done.stderr}")
    tables = {
        path.relative_to(out).with_suffix("").as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(out.rglob("*.csv"))
    }
    if (fit := out / FIT).exists():
        tables[FIT] = as_table(json.loads(fit.read_text(encoding="utf-8")))
    return tables


def as_table(content: object) -> str:
    """A JSON value as CSV: a row for each number, text, truth value or null, with its place: `answer.sentence`."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([("place", "value"), *_leaves("", content)])
    return text.getvalue()


def _leaves(place: str, content: object) -> Iterator[tuple[str, object]]:
    if not isinstance(content, dict | list):
        yield place.removeprefix("."), content
        return
    for name, value in content.items() if isinstance(content, dict) else enumerate(content):
        yield from _leaves(f"{place}.{name}", value)


def same(old: str, new: str) -> bool:
    """Whether two fields are the same, but for the last digits of fractions."""
    if old == new:
        return True
    try:
        close = math.isclose(float(old), float(new), rel_tol=RELATIVE, abs_tol=ABSOLUTE)
    except ValueError:
        return False
    return close and _fraction(old) and _fraction(new)


def _fraction(text: str) -> bool:
    return not text.lstrip("-").isdigit()


def differences(name: str, old: Tables, new: Tables) -> list[str]:
    """Lines that say which tables and rows of a command changed; empty where they are the same."""
    lines = []
    for what, tables in (("went", old.keys() - new.keys()), ("came", new.keys() - old.keys())):
        if tables:
            lines.append(f"{name}: {', '.join(sorted(tables))} {what}")
    for table in old.keys() & new.keys():
        before, after = old[table].splitlines(), new[table].splitlines()
        if len(before) == len(after):
            after = [a if _same_row(a, b) else b for a, b in zip(before, after, strict=True)]
        if changes := changed_lines(before, after):
            lines += [f"{name}, {table} ({before[0]}):", *changes]
    return lines


def _same_row(old: str, new: str) -> bool:
    fields = [next(csv.reader([row])) for row in (old, new)]
    return len(fields[0]) == len(fields[1]) and all(map(same, *fields))


def changed_lines(old: Sequence[str], new: Sequence[str]) -> list[str]:
    """The first of the lines that went, behind a -, and came, behind a +."""
    lines = list(difflib.unified_diff(old, new, lineterm="", n=0))
    changes = [f"  {line}" for line in lines[2:] if not line.startswith("@@")]
    return changes[:SHOWN] + [f"  and {len(changes) - SHOWN} more"] * (len(changes) > SHOWN)


def rewrite() -> None:
    """Make all tables, say what changed, and write the archive where something did."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        unpack_inputs(folder)
        files = {name: content for name, content in kept().items() if name.startswith(f"{INPUTS}/")}
        lines, tables, last = list[str](), 0, 0
        for command in COMMANDS:
            old, new = golden(command), made(command, folder)
            tables += len(new)
            if said := differences(command, old, new):
                lines += said
            else:
                last += sum(new[table] != old[table] for table in new)
                new = old
            files |= {f"{command}/{table}.csv": text.encode() for table, text in new.items()}
    gone = {file.split("/")[0] for file in kept()} - {*COMMANDS, INPUTS}
    lines += [f"{command} went" for command in sorted(gone)]
    if lines:
        write_archive(ARCHIVE, files.items())
    print(f"{tables} tables of {len(COMMANDS)} commands", *(lines or ["nothing changed"]), sep="\n  ")
    if last:
        print(f"  {last} tables differ in last digits alone and stay as they were")
    elif not lines:
        print("  byte for byte")
