"""A file is whole or absent, whatever happens."""

import errno
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from small import PYTHON, SCRIPTS

from shapelaw.storage.files import WriteFailed, check_writable, delete_leftovers, disk_errors, replacing

HOST = socket.gethostname()


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_file_is_replaced_and_its_folder_made(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "table.json"
    for written in ("one", "two"):
        with replacing(path) as temporary:
            assert temporary.parent == path.parent
            temporary.write_text(written)
        assert path.read_text() == written
    assert names(path.parent) == {"table.json"}


def test_a_block_that_fails_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "table.json"
    path.write_text("old")

    def fail() -> None:
        with replacing(path) as temporary:
            temporary.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert path.read_text() == "old"
    assert names(tmp_path) == {"table.json"}


def test_only_what_dead_processes_of_this_machine_left_of_the_same_file_is_deleted(tmp_path: Path) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    left = f".a.json.{HOST}.{dead.pid}.tmp"
    others = {
        f".a.json.{HOST}.{os.getppid()}.tmp",  # alive
        f".a.json.elsewhere.{dead.pid}.tmp",
        f".b.json.{HOST}.{dead.pid}.tmp",
        f".a.json.{HOST}.old.tmp",
    }
    for name in {left} | others:
        (tmp_path / name).touch()
    with replacing(tmp_path / "a.json") as temporary:
        temporary.write_text("{}")
    assert names(tmp_path) == others | {"a.json"}
    delete_leftovers(tmp_path)
    assert names(tmp_path) == {"a.json"}


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.ENOSPC, "free some space and start again"),
        (errno.EROFS, "make the disk writable and start again"),
        (errno.EIO, "check the disk and start again"),
    ],
)
def test_what_only_a_disk_says_is_a_sentence(tmp_path: Path, number: int, advice: str) -> None:
    path = tmp_path / "a.json"
    with pytest.raises(WriteFailed) as failed, disk_errors(path):
        raise OSError(number, os.strerror(number))
    assert str(failed.value) == f"{path} can't be written ({os.strerror(number)}); {advice}."
    assert (failed.value.reason, failed.value.advice) == (os.strerror(number), advice)


def test_what_cannot_be_written_is_told_before_it_is(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("a file")
    path, folder = tmp_path / "results" / "a.json", "make its folder one that you can write to"
    with pytest.raises(WriteFailed, match=rf"a\.json can't be written \(File exists\); {folder}"):
        check_writable(path)
    with pytest.raises(WriteFailed, match=folder), replacing(path) as temporary:
        temporary.write_text("{}")
    with pytest.raises(WriteFailed, match=r"\(Is a directory\); give the name of a file and start again\."):
        check_writable(tmp_path)
    check_writable(tmp_path / "results")
    check_writable(tmp_path / "new" / "b.json")
    assert (tmp_path / "results").read_text() == "a file"
    assert (names(tmp_path), names(tmp_path / "new")) == ({"results", "new"}, set())
    with pytest.raises(FileNotFoundError), replacing(tmp_path / "b.json") as temporary:  # about another file
        temporary.write_text((tmp_path / "deep" / "source.json").read_text())


def test_a_living_process_keeps_its_half_written_file(tmp_path: Path) -> None:
    other = (
        "import pathlib, sys; sys.path.insert(0, sys.argv[1]); from shapelaw.storage.files import replacing\n"
        "with replacing(pathlib.Path(sys.argv[2])) as temporary: temporary.write_bytes(b'theirs')"
    )
    with replacing(tmp_path / "file") as temporary:
        temporary.write_bytes(b"mine")
        done = subprocess.run([PYTHON, "-c", other, str(SCRIPTS), str(tmp_path / "file")], check=False)
        assert done.returncode == 0
        assert (tmp_path / "file").read_bytes() == b"theirs"
    assert (tmp_path / "file").read_bytes() == b"mine"
