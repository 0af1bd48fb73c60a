"""Whatever happens while an importer writes, the store is in the end that of an undisturbed import.

With FULL_LENGTH=1 in the environment each fault lasts as long as a cluster must survive.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from disks import fill, may_mount, small_disk
from faults import (
    BACK,
    DELAY,
    FULL_LENGTH,
    NOTICE,
    OUTAGE,
    RUNS,
    SLOW,
    WAITING,
    Import,
    Weather,
    held_by_another_process,
    importing,
    proxy,
    undisturbed,
    with_runs,
)
from job_server import warm_python
from made_records import ask, finish, make_rows, make_run, write_finished, write_live
from places import SCRIPTS, Place, Script, Server, serve, serving, wait_for
from postgres import Cluster
from small import small_run
from sqlalchemy import event
from sqlalchemy.engine import Connection, Engine
from stored import active_runs, content

from shapelaw.corpora.token_store import TokenStore
from shapelaw.errors import UserError
from shapelaw.specs.runs import run_to_dict
from shapelaw.tracking.command import LOCK_NAME, ImportProgress, Stopped, TrackerDown, one_writer, patiently
from shapelaw.tracking.store import default_uri, open_store
from shapelaw.tracking.table import read_runs, write_runs

Check = Callable[[Import], None]


@pytest.fixture
def check(tmp_path: Path, empty_store: Path) -> Check:
    """Compare what is stored with an undisturbed import."""

    def compare(work: Import) -> None:
        place = work.place
        assert content(place.store(), place.study) == undisturbed(place, tmp_path / "alone", empty_store)
        assert place.import_all().written == []

    return compare


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    if not FULL_LENGTH:
        monkeypatch.setattr("shapelaw.tracking.command.FIRST_PAUSE", 0.1)


@dataclass(frozen=True)
class Tracker:
    """A tracking server that tests may ill-treat, and the disk of its SQLite store, if it has one of its own."""

    server: Server
    disk: Path | None


@pytest.fixture(scope="module")
def tracker(tmp_path_factory: pytest.TempPathFactory, empty_store: Path) -> Iterator[Tracker]:
    folder = tmp_path_factory.mktemp("tracker")
    with ExitStack() as stack:
        disk = stack.enter_context(small_disk(folder / "disk", "8m")) if may_mount() else None
        place = disk or folder
        shutil.copy(empty_store, place / "mlflow.db")
        yield Tracker(stack.enter_context(serving(default_uri(place), folder)), disk)


@pytest.fixture
def weather(tracker: Tracker) -> Iterator[Weather]:
    with proxy(tracker.server.uri) as running:
        yield running


@pytest.fixture
def remote(tmp_path: Path, tracker: Tracker, study_names: Iterator[str]) -> Place:
    """Records to import into the server."""
    return with_runs(Place(tmp_path / "records", tracker.server.uri, next(study_names)))


@pytest.fixture
def behind(remote: Place, weather: Weather) -> Place:
    """The same, through the proxy."""
    return Place(remote.results, weather.uri, remote.study)


def test_a_server_that_stops_and_goes_on(remote: Place, tracker: Tracker, check: Check) -> None:
    with importing(remote, hold_after=1) as work:
        with work.held():
            tracker.server.signal(signal.SIGSTOP)
        work.wait_for_word(SLOW)
        time.sleep(OUTAGE)
        tracker.server.signal(signal.SIGCONT)
    check(work)


@pytest.mark.slow
def test_a_server_that_stops_for_longer_than_a_request_waits(
    remote: Place, tracker: Tracker, check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it does with the requests that nobody waits for any more, when it goes on, must not double a run."""
    if not FULL_LENGTH:
        monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "5")
    with importing(remote, hold_after=1) as work:
        with work.held():
            tracker.server.signal(signal.SIGSTOP)
        sentence = work.wait_for_word(WAITING)
        time.sleep(OUTAGE)
        tracker.server.signal(signal.SIGCONT)
    assert (
        sentence
        == f"{WAITING}600 seconds for the tracker: {tracker.server.uri} is not available (no answer in time)."
    )
    assert work.sentences(BACK)
    check(work)


@pytest.mark.slow
def test_a_server_that_is_killed_and_comes_back(remote: Place, tracker: Tracker, check: Check) -> None:
    with importing(remote, hold_after=1) as work:
        with work.held():
            tracker.server.kill()
        sentence = work.wait_for_word(WAITING)
        time.sleep(OUTAGE if FULL_LENGTH else 0)
        tracker.server.start()
    assert sentence.startswith(
        f"{WAITING}600 seconds for the tracker: {tracker.server.uri} is not available ("
    )
    check(work)


@pytest.mark.slow
def test_a_server_that_is_slow(behind: Place, weather: Weather, check: Check) -> None:
    with importing(behind, hold_after=RUNS - 1) as work:
        with work.held():
            weather.delay = DELAY
        sentence = work.wait_for_word(SLOW)
        if not FULL_LENGTH:
            weather.delay = 0.0
    weather.delay = 0.0
    assert weather.uri in sentence
    assert not work.sentences(WAITING), "it is slow, not down"
    check(work)


@pytest.mark.slow
def test_a_server_that_answers_500(behind: Place, weather: Weather, check: Check) -> None:
    with importing(behind, hold_after=1) as work:
        with work.held():
            weather.fault = lambda _: "refuse"
        sentence = work.wait_for_word(WAITING)
        time.sleep(OUTAGE if FULL_LENGTH else 0)
        weather.fault = lambda _: ""
    assert (
        sentence
        == f"{WAITING}600 seconds for the tracker: {weather.uri} is not available (HTTP status 500; its log says why)."
    )
    assert work.sentences(BACK)
    check(work)


@pytest.mark.slow
def test_answers_that_fail_or_get_lost_now_and_then(behind: Place, weather: Weather, check: Check) -> None:
    """Requests that were carried out, and whose answers never came, are the ones that could double a run."""
    faults = {7: "lose", 18: "cut", 29: "refuse"}
    weather.fault = lambda number: faults.get(number % 33, "")
    with importing(behind) as work:
        pass
    weather.fault = lambda _: ""
    assert weather.requests > max(faults), "each fault came"
    assert len(work.sentences(WAITING)) == 2, "a reason is said once, not at every failure"
    check(work)


def test_a_database_that_another_process_holds(place: Place, check: Check) -> None:
    with_runs(place)
    with importing(place, hold_after=1) as work, ExitStack() as held:
        with work.held():
            held.enter_context(held_by_another_process(place.results / "mlflow.db"))
        work.wait_for_word(SLOW)
        time.sleep(OUTAGE)
    check(work)


def test_a_full_disk_under_the_store(tmp_path: Path, place: Place, check: Check) -> None:
    with_runs(place)
    with small_disk(tmp_path / "disk", "4m") as disk:
        shutil.copy(place.results / "mlflow.db", disk / "mlflow.db")
        full = Place(place.results, f"sqlite:///{disk}/mlflow.db", place.study)
        ballast = fill(disk)
        with importing(full) as work:
            sentence = work.wait_for_word(WAITING)
            time.sleep(OUTAGE if FULL_LENGTH else 0)
            ballast.unlink()
        assert sentence.endswith("/disk/mlflow.db is not available (database or disk is full).")
        check(work)


def test_a_full_disk_where_the_store_is_to_be_made(tmp_path: Path, check: Check) -> None:
    results = tmp_path / "results"
    with small_disk(tmp_path / "disk", "4m") as disk:
        place = with_runs(Place(results, f"sqlite:///{disk}/mlflow.db", "depth_width"))
        ballast = fill(disk, leave=300_000)
        with importing(place) as work:
            sentence = work.wait_for_word(WAITING)
            assert not (disk / "mlflow.db").exists(), "half a store"
            ballast.unlink()
        assert "disk is full" in sentence
        check(work)


def test_a_full_disk_under_the_server(remote: Place, tracker: Tracker, check: Check) -> None:
    if tracker.disk is None:
        pytest.skip("this machine lets nobody mount a small disk")
    with importing(remote, hold_after=1) as work:
        with work.held():
            ballast = fill(tracker.disk)
        sentence = work.wait_for_word(WAITING)
        time.sleep(OUTAGE if FULL_LENGTH else 0)
        ballast.unlink()
    assert f"{remote.uri} is not available (HTTP status 503; its log says why)" in sentence
    assert "database or disk is full" in (tracker.server.folder / "server.log").read_text()
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
            write_runs(disk / "runs.parquet", table)
        assert not (disk / "runs.parquet").exists()
        assert LOCK_NAME not in os.listdir(disk)


@pytest.mark.slow
def test_training_never_notices_and_its_run_arrives_later(
    tmp_path: Path,
    stores: tuple[TokenStore, TokenStore],
    tracker: Tracker,
    study_names: Iterator[str],
    script: Script,
) -> None:
    """It never talks to the tracker, so one fault of it stands for all."""
    run, study, results = small_run(), next(study_names), tmp_path / "results"

    def train(folder: Path, uri: str) -> subprocess.CompletedProcess[str]:
        command = [str(warm_python()), str(SCRIPTS / "train.py"), "--spec", json.dumps(run_to_dict(run))]
        command += ["--device", "cpu", "--threads", "1"]
        command += ["--train-store", str(stores[0].path), "--test-store", str(stores[1].path)]
        command += ["--out", str(folder / "runs" / run.key)]
        command += ["--checkpoints", str(folder / "checkpoints" / run.key)]
        environment = {**os.environ, "MLFLOW_TRACKING_URI": uri}
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True)

    def history(folder: Path) -> bytes:
        return (folder / "runs" / run.key / "history.parquet").read_bytes()

    alone = train(tmp_path / "alone", "")
    write_finished(results, make_run())  # so that the importer has something to do at once
    ask(results, next(study_names), make_run())
    ask(results, study, run)
    uri = tracker.server.uri
    command = [sys.executable, str(SCRIPTS / "follow_runs.py"), "--results", str(results), "--every", "0.1"]
    command += ["--uri", uri, "--notice", str(NOTICE)]
    tracker.server.signal(signal.SIGSTOP)
    with ExitStack() as stack:
        stack.callback(tracker.server.signal, signal.SIGCONT)
        follower = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert follower.stderr
        sentences = [follower.stderr.readline() for _ in range(2)]
        disturbed = train(results, uri)
        assert follower.poll() is None
    assert sentences[1].startswith(("Waiting for the tracker: ", SLOW))
    assert (disturbed.stdout, disturbed.stderr) == (alone.stdout, alone.stderr)
    assert history(results) == history(tmp_path / "alone")
    # a server that goes on may drop connections first
    store = patiently(lambda: open_store(uri, results), 60.0, ImportProgress(print))
    wait_for(lambda: store.client.get_experiment_by_name(study) is not None)
    wait_for(lambda: run.key in content(store, study))
    follower.send_signal(signal.SIGTERM)
    sentences.append(follower.communicate()[1])
    assert follower.returncode == 0
    arguments = ["--results", results, "--uri", uri, "--study", study]
    done = script("import_runs.py", *arguments, "--out", tmp_path / "runs.parquet")
    assert "0 runs written to MLflow, 1 were up to date; 1 rows" in done.errors
    print("".join(sentences), done.errors, sep="\n")


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


def died(results: Path) -> None:
    write_live(results, RUN, "FAILED", last=50, message="The disk is full.")


def finished(results: Path) -> None:
    if (results / "checkpoints").exists():
        finish(results, RUN)
    else:
        write_finished(results, RUN)


def retrained(results: Path) -> None:
    write_finished(results, RUN, make_rows(RUN, shift=0.1))


@pytest.mark.parametrize(
    ("before", "after", "at_least"),
    [
        (nothing, finished, 6),
        (nothing, live, 3),
        (live, grown, 2),
        (live, finished, 4),
        (grown, died, 3),
        (finished, retrained, 7),
    ],
)
def test_whenever_it_dies_the_next_import_completes_it(
    place: Place, before: Callable[[Path], None], after: Callable[[Path], None], at_least: int
) -> None:
    before(place.results)
    place.import_all()
    saved = (place.results / "mlflow.db").read_bytes()
    after(place.results)
    place.import_all()
    expected = content(place.store(), place.study)
    deaths = 0
    while dies(place, saved, deaths):
        place.import_all()
        assert content(place.store(), place.study) == expected, f"died before write {deaths}"
        assert place.import_all().written == []
        deaths += 1
    assert deaths >= at_least


def test_final_numbers_of_a_half_finished_run_do_not_survive_a_new_training(place: Place) -> None:
    live(place.results)
    place.import_all()
    saved = (place.results / "mlflow.db").read_bytes()
    finished(place.results)
    deaths = 0
    while dies(place, saved, deaths):
        write_finished(place.results, RUN, bits_per_byte=1.25)
        place.import_all()
        run = active_runs(place.store(), place.study)[RUN.key]
        points = place.store().client.get_metric_history(run.info.run_id, "result/bits_per_byte")
        assert [point.value for point in points] == [1.25], f"died before write {deaths}"
        write_finished(place.results, RUN)
        deaths += 1
    assert deaths >= 4


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


@pytest.mark.slow
@pytest.mark.parametrize("through", ["server", "directly"])
def test_a_postgresql_that_crashes_and_recovers(
    through: str, postgres: Cluster, tmp_path: Path, empty_store: Path, study_names: Iterator[str]
) -> None:
    database = postgres.new_database()
    with ExitStack() as stack:
        uri = stack.enter_context(serve(database, tmp_path)) if through == "server" else database
        place = with_runs(Place(tmp_path / "results", uri, next(study_names)))
        with importing(place, hold_after=1) as work:
            with work.held():
                postgres.stop()
            work.wait_for_word(WAITING)
            time.sleep(OUTAGE if FULL_LENGTH else 0)
            postgres.start()
        assert postgres.password not in "".join(work.said)
        assert content(place.store(), place.study) == undisturbed(place, tmp_path / "alone", empty_store)
        assert place.import_all().written == []
