"""A store is opened by its URI, or a sentence says why not; one that is half made is none."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from disks import may_mount
from places import SCRIPTS, wait_for

from shapelaw.errors import UserError
from shapelaw.tracking.store import default_uri, open_store
from shapelaw.tracking.waiting import LOCK_NAME, one_writer


@pytest.mark.parametrize(
    ("uri", "sentence"),
    [
        ("results/mlflow.db", "sqlite:///PATH.db"),
        ("file:///tmp/mlruns", "sqlite:///PATH.db"),
        ("ftp://somewhere/x", "no tracking store for"),
        ("http://", "names no host"),
        ("sqlite://", "names no file"),
        ("sqlite:///:memory:", "names no file"),
        ("mysql+pymysql://nobody:hush@127.0.0.1:1/x", "needs the Python package pymysql"),
        ("sqlite:////proc/nothing/mlflow.db", "can't be opened"),
    ],
)
def test_a_wrong_uri_is_a_sentence(results: Path, uri: str, sentence: str) -> None:
    with pytest.raises(UserError) as caught:
        open_store(uri, results)
    assert sentence in str(caught.value)
    assert "hush" not in str(caught.value)


def test_a_store_is_its_folder_s_users_and_is_where_the_uri_says(tmp_path: Path) -> None:
    """SQLite makes files 0644 whatever the umask; in a URI nothing is decoded, and # ends nothing."""
    for mode in (0o770, 0o755, 0o700):
        folder = tmp_path / f"#{mode:o} %41;&"
        folder.mkdir()
        folder.chmod(mode)
        before = os.umask(0o022)
        try:
            with one_writer(folder, print):
                open_store(default_uri(folder), folder)
        finally:
            os.umask(before)
        files = {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}
        assert files == {"mlflow.db": mode & 0o666, LOCK_NAME: mode & 0o666}


@pytest.mark.skipif(not may_mount(), reason="needs root and the right to mount")
def test_a_store_that_cannot_be_written_to_is_told_at_once(tmp_path: Path) -> None:
    written, seen = tmp_path / "written", tmp_path / "seen"
    for folder in (written, seen):
        folder.mkdir()
    open_store(default_uri(written), written)
    subprocess.run(["mount", "--bind", "-o", "ro", str(written), str(seen)], check=True)
    try:
        start = time.monotonic()
        with pytest.raises(
            UserError, match=rf"mlflow\.db can't be written to: .* is {seen.owner()}'s, .* chmod g\+w"
        ):
            open_store(default_uri(seen), seen)
        assert time.monotonic() - start < 2
    finally:
        subprocess.run(["umount", str(seen)], check=True)


@pytest.mark.slow
def test_a_creation_that_was_killed_leaves_no_store_and_the_next_one_is_whole(tmp_path: Path) -> None:
    command = [sys.executable, str(SCRIPTS / "follow_runs.py"), "--once", "--notice", "600"]
    command += ["--results", str(tmp_path)]
    for _ in range(20):  # where the test gets no time of the machine it kills too late, and tries again
        (tmp_path / "mlflow.db").unlink(missing_ok=True)
        process = subprocess.Popen(command)
        wait_for(lambda process=process: begun(tmp_path) or process.poll() is not None)  # type: ignore[misc]
        process.kill()
        assert process.wait() in (0, -signal.SIGKILL)
        if killed := begun(tmp_path) and not (tmp_path / "mlflow.db").exists():
            break
    assert killed, "always too late"
    again = subprocess.run(command, capture_output=True, text=True, check=True)
    assert again.stdout + again.stderr == ""
    store = open_store(default_uri(tmp_path), tmp_path)
    assert store.client.search_experiments() == []  # no empty "Default" either
    assert sorted(os.listdir(tmp_path)) == ["mlflow.db", LOCK_NAME]


def begun(folder: Path) -> bool:
    """Whether a store is being made."""
    return bool([*folder.glob(".mlflow.db.*.new")])
