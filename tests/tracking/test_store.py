"""What can go wrong with a tracking store, said in a sentence; what is merely down is waited for."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from made_records import make_run, write_finished
from places import SCRIPTS, Place, Script, free_port, serve, wait_for, web_server
from sqlalchemy import create_engine
from stored import active_runs

from shapelaw.errors import UserError
from shapelaw.tracking.importer import import_study
from shapelaw.tracking.store import default_uri, open_store
from shapelaw.tracking.waiting import LOCK_NAME, Stopped, TrackerDown, one_writer, patiently


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


@pytest.mark.parametrize(
    ("status", "body", "sentence"),
    [
        (404, b"<html>no</html>", "no MLflow tracking server"),
        (200, b"<html>hello</html>", "no MLflow tracking server"),
        (401, b"no", "refuses the credentials"),
        (403, b'{"error_code": "PERMISSION_DENIED", "message": "no"}', "refuses the credentials"),
    ],
)
def test_a_server_that_is_no_tracker_or_refuses_us(
    results: Path, status: int, body: bytes, sentence: str
) -> None:
    with web_server(status, body) as uri, pytest.raises(UserError, match=sentence):
        open_store(uri, results)


@pytest.mark.parametrize("status", [500, 502, 503, 429])
def test_a_server_in_trouble_is_down(results: Path, status: int) -> None:
    with web_server(status) as uri, pytest.raises(TrackerDown, match=uri):
        open_store(uri, results)


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "mlflow.db").write_text("These are the notes of the last meeting. " * 100)
    with pytest.raises(UserError, match=r"not a whole MLflow store"):
        open_store(default_uri(tmp_path), tmp_path)


def test_a_store_that_others_left_half_migrated(results: Path) -> None:
    connection = sqlite3.connect(results / "mlflow.db")
    with connection:
        connection.execute("DELETE FROM alembic_version")
        connection.execute("DROP TABLE trace_info")
    connection.close()
    with pytest.raises(UserError, match=r"not a whole MLflow store .*duplicate column.*import again"):
        open_store(default_uri(results), results)


def test_a_store_of_another_version(results: Path) -> None:
    engine = create_engine(default_uri(results))
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = 'feedface'")
    engine.dispose()
    with pytest.raises(UserError, match="mlflow db upgrade"):
        open_store(default_uri(results), results)


def test_a_tracker_that_is_down_costs_exit_code_3_and_nothing_else(
    tmp_path: Path, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "t0ps3cret")
    run = make_run("depth_width")
    folder = write_finished(tmp_path, run)
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    arguments = ["--results", tmp_path, "--study", run.study, "--out", tmp_path / "runs.parquet"]
    uri = f"http://me:hush@127.0.0.1:{free_port()}"
    done = script("import_runs.py", *arguments, "--uri", uri, "--patience", 1)
    assert done.code == 3, done.errors
    waiting, gave_up = done.errors.splitlines()
    assert waiting.startswith("Waiting up to 1 seconds for the tracker: http://***@127.0.0.1")
    assert gave_up.startswith("Gave up after 1 seconds: http://***@127.0.0.1")
    assert not [word for word in ("hush", "t0ps3cret", "Traceback") if word in done.errors]
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
    assert not (tmp_path / "runs.parquet").exists()


def test_an_importer_waits_for_a_server_that_starts_late(place: Place, tmp_path: Path) -> None:
    write_finished(place.results, make_run(place.study))
    said: list[str] = []
    uri = f"http://127.0.0.1:{free_port()}"
    importing = threading.Thread(
        target=import_study, args=(place.results, place.study, uri, 600, said.append)
    )
    importing.start()
    wait_for(lambda: bool(said))
    with serve(place.uri, tmp_path, int(uri.rpartition(":")[2])):
        importing.join(600)
    assert set(active_runs(place.store(), place.study)) == {make_run(place.study).key}
    assert len([each for each in said if each.startswith("Waiting")]) == 1, "the same reason is said once"


def test_an_importer_waits_for_a_locked_database(place: Place) -> None:
    write_finished(place.results, make_run(place.study))
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
    assert set(active_runs(place.store(), place.study)) == {make_run(place.study).key}


@pytest.mark.slow
def test_two_importers_of_a_new_store_wait_for_each_other(tmp_path: Path) -> None:
    studies = ("depth_width", "vocabulary")
    for study in studies:
        write_finished(tmp_path, make_run(study))
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
    assert [list(active_runs(store, study)) for study in studies] == [
        [make_run(study).key] for study in studies
    ]


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
    assert [e.name for e in store.client.search_experiments()] == ["Default"]
    assert sorted(os.listdir(tmp_path)) == ["mlflow.db", LOCK_NAME]


def begun(folder: Path) -> bool:
    """Whether a store is being made."""
    return bool([*folder.glob(".mlflow.db.*.new")])


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


def test_the_importer_waits_where_its_log_can_not_be_written(tmp_path: Path) -> None:
    """The log is on the full disk that it waits for."""
    uri = f"http://127.0.0.1:{free_port()}"
    command = [sys.executable, str(SCRIPTS / "import_runs.py"), "--results", str(tmp_path), "--study", "s"]
    (tmp_path / "runs" / "s").mkdir(parents=True)
    with open("/dev/full", "w") as log:
        done = subprocess.run(
            [*command, "--uri", uri, "--out", str(tmp_path / "runs.parquet"), "--patience", "1"],
            stderr=log,
            check=False,
        )
    assert done.returncode == 3
