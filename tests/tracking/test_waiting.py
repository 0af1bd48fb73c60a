"""A tracker that is down, a locked database and another importer are waited for."""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from job_server import warm_python
from made_records import make_run, write_finished
from places import SCRIPTS, Place, free_port, serve, wait_for
from stored import active_runs

from shapelaw.tracking.importer import import_study
from shapelaw.tracking.store import default_uri, open_store
from shapelaw.tracking.waiting import LOCK_NAME, Stopped, TrackerDown, one_writer, patiently


@pytest.mark.slow
def test_an_importer_waits_for_a_server_that_starts_late(place: Place, tmp_path: Path) -> None:
    write_finished(place.results, make_run())
    said: list[str] = []
    uri = f"http://127.0.0.1:{free_port()}"
    importing = threading.Thread(
        target=import_study, args=(place.results, place.study, uri, 600, said.append)
    )
    importing.start()
    wait_for(lambda: bool(said))
    with serve(place.uri, tmp_path, int(uri.rpartition(":")[2])):
        importing.join(600)
    assert set(active_runs(place.store(), place.study)) == {make_run().key}
    assert len([each for each in said if each.startswith("Waiting")]) == 1, "the same reason is said once"


def test_an_importer_waits_for_a_locked_database(place: Place) -> None:
    write_finished(place.results, make_run())
    holder = sqlite3.connect(place.results / "mlflow.db", check_same_thread=False)
    holder.execute("BEGIN EXCLUSIVE")
    said: list[str] = []
    importing = threading.Thread(
        target=import_study, args=(place.results, place.study, place.uri, 600, said.append)
    )
    importing.start()
    wait_for(lambda: bool(said))
    holder.rollback()
    holder.close()
    importing.join(600)
    assert "database is locked" in said[0]
    assert set(active_runs(place.store(), place.study)) == {make_run().key}


@pytest.mark.slow
def test_two_importers_of_a_new_store_wait_for_each_other(tmp_path: Path) -> None:
    studies = ("depth_width", "vocabulary")
    write_finished(tmp_path, make_run())
    command = [sys.executable, str(SCRIPTS / "import_runs.py"), "--results", str(tmp_path)]
    with (tmp_path / LOCK_NAME).open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        both = [
            subprocess.Popen(
                [*command, "--study", study, "--out", str(tmp_path / f"{study}.parquet")],
                stderr=subprocess.PIPE,
                text=True,
            )
            for study in studies
        ]
        for process in both:
            assert process.stderr
            assert "Another importer is writing" in process.stderr.readline()
        assert not (tmp_path / "mlflow.db").exists()
    for process in both:
        _, errors = process.communicate()
        assert process.returncode == 0, errors
    store = open_store(default_uri(tmp_path), tmp_path)
    assert [list(active_runs(store, study)) for study in studies] == 2 * [[make_run().key]]


def test_waiting_ends_when_the_user_says_so(tmp_path: Path) -> None:
    stop = threading.Event()

    def down() -> None:
        stop.set()
        raise TrackerDown("it is down")

    with pytest.raises(Stopped):
        patiently(down, 60, print, stop)
    with one_writer(tmp_path, print), pytest.raises(Stopped), one_writer(tmp_path, print, stop):
        pytest.fail("two writers at once")


def test_a_file_system_without_locks_is_told_and_the_import_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As some network file systems answer; training goes on there too."""

    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", no_locks)
    said: list[str] = []
    with one_writer(tmp_path, said.append):
        pass
    assert len(said) == 1
    assert "has no locks" in said[0]


@pytest.mark.slow
def test_the_importer_waits_where_its_log_can_not_be_written(tmp_path: Path) -> None:
    """The log is on the full disk that it waits for."""
    uri = f"http://127.0.0.1:{free_port()}"
    command = [
        str(warm_python()),
        str(SCRIPTS / "import_runs.py"),
        "--results",
        str(tmp_path),
        "--study",
        "recipe",
    ]
    write_finished(tmp_path, make_run(0))
    with open("/dev/full", "w") as log:
        done = subprocess.run(
            [*command, "--uri", uri, "--out", str(tmp_path / "runs.parquet"), "--patience", "1"],
            stderr=log,
            check=False,
        )
    assert done.returncode == 3
