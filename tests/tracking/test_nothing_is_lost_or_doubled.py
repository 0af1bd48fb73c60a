"""Whatever happens while an importer writes, the store is in the end that of an undisturbed import."""

import errno
import fcntl
import http.client
import os
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from disks import fill, small_disk
from made_records import make_rows, make_run, write_finished, write_live
from places import Place, QuietHandler, content, listening, wait_for
from sqlalchemy import event
from sqlalchemy.engine import Connection, Engine

from shapelaw.errors import UserError
from shapelaw.storage.records import table_bytes, write_bytes
from shapelaw.tracking.command import (
    LOCK_NAME,
    ImportProgress,
    Stopped,
    TrackerDown,
    default_uri,
    one_writer,
    patiently,
)
from shapelaw.tracking.entities import read_runs
from shapelaw.tracking.importer import Outcome

HOP = {"transfer-encoding", "connection", "content-length", "host"}  # of one connection, not of the message


@dataclass
class Weather:
    """What a proxy does to the requests that pass it; changed while it runs.

    Attributes:
        fault: for the number of a request, from 0: "" (none), "refuse" (500, not passed on), "lose" (passed on,
            the answer is a 500), "cut" (passed on, the connection breaks), "stop" (passed on, answered seconds later).
        requests: how many came in.
    """

    uri: str = ""
    fault: Callable[[int], str] = lambda _: ""
    requests: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


@contextmanager
def proxy(target: str) -> Iterator[Weather]:
    """A real HTTP proxy before a server."""
    weather, place = Weather(), urlsplit(target)

    class Handler(QuietHandler):
        protocol_version = "HTTP/1.1"

        def forward(self) -> None:
            with weather.lock:
                fault = weather.fault(weather.requests)
                weather.requests += 1
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = [("Content-Type", "text/html")]
            status, answer = 500, b"<html>Internal Server Error</html>"
            if fault != "refuse":
                upstream = http.client.HTTPConnection(place.hostname or "", place.port, timeout=600)
                sent = {k: v for k, v in self.headers.items() if k.lower() not in HOP}
                upstream.request(self.command, self.path, body, sent)
                got = upstream.getresponse()
                content = got.read()
                upstream.close()
                if fault in ("", "stop"):
                    status, answer = got.status, content
                    headers = [(k, v) for k, v in got.getheaders() if k.lower() not in HOP]
            time.sleep(5 if fault == "stop" else 0)
            if fault == "cut":
                self.close_connection = True
                return
            with suppress(BrokenPipeError, ConnectionResetError):  # the client may have given up waiting
                self.send_response(status)
                for name, value in headers:
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = forward

    with listening(Handler) as weather.uri:
        yield weather


RUNS = 3
WAITING, BACK = "Waiting up to ", "The tracker is back."


def with_runs(place: Place) -> Place:
    """The place, with so many finished records in it."""
    for seed in range(RUNS):
        write_finished(place.results, make_run(seed))
    return place


class HeldProgress(ImportProgress):
    """Holds the import after so many runs until it may go on: a fault then comes between two runs, not too late."""

    def __init__(self, say: Callable[[str], None], hold_after: int | None) -> None:
        super().__init__(say)
        self.hold_after, self.held, self.go_on = hold_after, threading.Event(), threading.Event()

    def advance(self, report: str) -> None:
        super().advance(report)
        if self.done == self.hold_after:
            self.held.set()
            self.go_on.wait()


@dataclass
class Import:
    """An import that goes on beside the test."""

    place: Place
    progress: HeldProgress
    said: list[str] = field(default_factory=list)
    outcome: Outcome | None = None

    def sentences(self, start: str) -> list[str]:
        """What was said with that beginning."""
        return [each for each in self.said if each.startswith(start)]

    def wait_for_word(self, start: str) -> str:
        """The first sentence with that beginning, when it is said."""
        wait_for(lambda: bool(self.sentences(start)))
        return self.sentences(start)[0]

    @contextmanager
    def held(self) -> Iterator[None]:
        """The import stands still after the run that `importing` was told."""
        wait_for(self.progress.held.is_set)
        yield
        self.progress.go_on.set()


@contextmanager
def importing(place: Place, hold_after: int | None = None) -> Iterator[Import]:
    """Import in a thread; at the end of the block wait until it is done.

    Args:
        hold_after: after so many runs it waits for `Import.held`.
    """
    said: list[str] = []
    work = Import(place, HeldProgress(said.append, hold_after), said)

    def run() -> None:
        importer = place.importer(patience=600, progress=work.progress)
        work.outcome = importer.import_study(place.study)[1]

    thread = threading.Thread(target=run, daemon=True)  # a test that fails does not wait for it
    thread.start()
    yield work
    thread.join(900)
    assert work.outcome is not None, said
    for sentence in said:
        print(sentence)  # for the table of faults: pytest -rP


def undisturbed(place: Place, folder: Path, empty_store: Path) -> dict[str, Any]:
    """What one importer leaves in a store of its own, where nothing happens."""
    folder.mkdir()
    shutil.copy(empty_store, folder / "mlflow.db")
    for name in ("runs", "checkpoints"):
        (folder / name).symlink_to((place.results / name).resolve())
    alone = Place(folder, default_uri(folder), place.study)
    alone.import_all()
    return content(alone.store(), place.study)


Check = Callable[[Import], None]


@pytest.fixture
def check(tmp_path: Path, empty_store: Path) -> Check:
    """Compare what is stored, after the next import, with an undisturbed import."""

    def compare(work: Import) -> None:
        place = work.place
        place.import_all()  # takes away what a server did with a request that nobody waited for any more
        assert content(place.store(), place.study) == undisturbed(place, tmp_path / "alone", empty_store)
        assert place.import_all().written == []

    return compare


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shapelaw.tracking.command.FIRST_PAUSE", 0.1)


@pytest.fixture
def weather(server: str) -> Iterator[Weather]:
    with proxy(server) as running:
        yield running


@pytest.mark.slow
def test_answers_that_fail_come_late_or_get_lost_now_and_then(
    tmp_path: Path,
    weather: Weather,
    study_names: Iterator[str],
    check: Check,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Requests that were carried out, and whose answers never came, are the ones that could double a run."""
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "3")
    place = with_runs(Place(tmp_path / "records", weather.uri, next(study_names)))
    faults = {7: "lose", 18: "cut", 29: "refuse", 40: "stop"}
    weather.fault = lambda number: faults.get(number % 44, "")
    with importing(place) as work:
        pass
    weather.fault = lambda _: ""
    assert weather.requests > max(faults), "each fault came"
    said = work.sentences(WAITING)
    assert [reason for reason in ("500", "timed out") if not any(reason in one for one in said)] == []
    assert len(said) == 3, "a reason is said once, not at every failure"
    assert work.sentences(BACK)
    check(work)


def test_a_database_that_somebody_else_holds(place: Place, check: Check) -> None:
    with_runs(place)
    with (
        importing(place, hold_after=1) as work,
        closing(sqlite3.connect(place.results / "mlflow.db")) as other,
    ):
        with work.held():
            other.execute("BEGIN EXCLUSIVE")
        work.wait_for_word(WAITING)
    check(work)


def test_a_full_disk_under_the_store(tmp_path: Path, place: Place, check: Check) -> None:
    with_runs(place)
    with small_disk(tmp_path / "disk", "4m") as disk:
        shutil.copy(place.results / "mlflow.db", disk / "mlflow.db")
        ballast = fill(disk)
        with importing(Place(place.results, f"sqlite:///{disk}/mlflow.db", place.study)) as work:
            sentence = work.wait_for_word(WAITING)
            ballast.unlink()
        assert sentence.endswith("/disk/mlflow.db is not available (database or disk is full).")
        check(work)


def test_a_full_disk_under_the_results(tmp_path: Path, place: Place) -> None:
    """The lock and the table are written there."""
    with_runs(place)
    place.import_all()
    table = read_runs(place.store(), place.study)
    with small_disk(tmp_path / "disk", "64k", files=4) as disk:
        (disk / "first").touch()
        fill(disk)
        (disk / "last").touch()
        with (
            pytest.raises(TrackerDown, match=r"mlflow\.lock can't be written \(No space"),
            one_writer(disk, print),
        ):
            pytest.fail("there is no room for a lock")
        (disk / "last").unlink()
        with pytest.raises(UserError, match=r"runs\.parquet can't be written \(No space"):
            write_bytes(disk / "runs.parquet", table_bytes(table))
        assert not {"runs.parquet", LOCK_NAME} & set(os.listdir(disk))


RUN = make_run()


class Killed(BaseException):
    """The process dies here."""


@contextmanager
def killed_at_commit(number: int) -> Iterator[None]:
    """Die when the database is about to make a write lasting for the `number`-th time from here, from 0."""
    writes: dict[Connection, bool] = {}
    seen = 0

    def note(connection: Connection, _cursor: object, statement: str, *_: object) -> None:
        if statement.lstrip().upper().startswith(("INSERT", "UPDATE", "DELETE")):
            writes[connection] = True

    def die(connection: Connection) -> None:
        nonlocal seen
        if writes.pop(connection, False):
            seen += 1
            if seen > number:
                raise Killed

    event.listen(Engine, "before_cursor_execute", note)
    event.listen(Engine, "commit", die)
    try:
        yield
    finally:
        event.remove(Engine, "before_cursor_execute", note)
        event.remove(Engine, "commit", die)


def nothing(results: Path) -> None:
    """No record yet."""


def live(results: Path) -> None:
    write_live(results, RUN, last=20)


def grown(results: Path) -> None:
    write_live(results, RUN, last=50)


def finished(results: Path) -> None:
    shutil.rmtree(results / "checkpoints", ignore_errors=True)
    write_finished(results, RUN)


def retrained(results: Path) -> None:
    write_finished(results, RUN, make_rows(RUN, shift=0.1))


def other_numbers(results: Path) -> None:
    """Of a new training, after the import of the first one died."""
    write_finished(results, RUN, bits_per_byte=1.25)


@pytest.mark.parametrize(
    ("before", "after", "then", "at_least"),
    [
        (nothing, finished, finished, 6),
        (live, grown, grown, 2),
        (live, finished, finished, 4),
        (finished, retrained, retrained, 7),
        (live, finished, other_numbers, 4),
    ],
)
def test_whenever_it_dies_the_next_import_completes_it(
    place: Place,
    before: Callable[[Path], None],
    after: Callable[[Path], None],
    then: Callable[[Path], None],
    at_least: int,
) -> None:
    before(place.results)
    place.import_all()
    saved = (place.results / "mlflow.db").read_bytes()
    after(place.results)
    then(place.results)
    place.import_all()
    expected = content(place.store(), place.study)
    for deaths in count():
        after(place.results)
        if not dies(place, saved, deaths):
            break
        then(place.results)
        place.import_all()
        assert content(place.store(), place.study) == expected, f"died before write {deaths}"
        assert place.import_all().written == []
    assert deaths >= at_least


def dies(place: Place, saved: bytes, number: int) -> bool:
    """Go back to the saved store and import; whether that died, which it does before its `number`-th write."""
    with (place.results / "mlflow.db").open("r+b") as file:  # the same file, as the database is kept open
        file.truncate(0)
        file.write(saved)
    try:
        with killed_at_commit(number):
            place.import_all()
    except Killed:
        return True
    return False


def test_a_second_importer_waits_for_the_first(place: Place) -> None:
    with_runs(place)
    with importing(place, hold_after=1) as first, first.held(), importing(place) as second:
        second.wait_for_word("Another importer is writing to MLflow; waiting until it releases ")
        assert second.outcome is None
        first.progress.go_on.set()
    assert first.outcome is not None
    assert second.outcome is not None
    assert (len(first.outcome.written), second.outcome.unchanged) == (RUNS, RUNS)


def test_waiting_ends_when_the_user_says_so(tmp_path: Path) -> None:
    stop = threading.Event()

    def down() -> None:
        stop.set()
        raise TrackerDown("it is down")

    with pytest.raises(Stopped):
        patiently(down, 60, ImportProgress(print), stop)
    with (tmp_path / LOCK_NAME).open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(Stopped), one_writer(tmp_path, print, stop):
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
