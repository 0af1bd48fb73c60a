"""The tracker fails in every way that it can while an importer writes: nothing is lost, nothing is doubled.

`FULL_LENGTH=1 pytest tests/tracking/test_faults.py` has each fault last as long as a cluster must survive.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from disks import fill, may_mount, small_disk
from disturbed import (
    BACK,
    DELAY,
    FULL_LENGTH,
    NOTICE,
    OUTAGE,
    RUNS,
    SLOW,
    WAITING,
    Import,
    importing,
    undisturbed,
    with_runs,
)
from faults import Weather, held_by_another_process, proxy
from job_server import warm_python
from made_records import ask, make_run, write_finished
from places import SCRIPTS, Place, Script, Server, serving, wait_for
from small import small_run
from stored import content

from shapelaw.corpora.token_store import TokenStore
from shapelaw.errors import UserError
from shapelaw.specs.runs import run_to_dict
from shapelaw.tracking.store import default_uri, open_store
from shapelaw.tracking.table import read_runs, write_runs
from shapelaw.tracking.waiting import LOCK_NAME, TrackerDown, one_writer, patiently

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
        monkeypatch.setattr("shapelaw.tracking.waiting.FIRST_PAUSE", 0.1)


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
        == f"{WAITING}600 seconds for the tracker: {tracker.server.uri} does not answer (no answer in time)."
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
        f"{WAITING}600 seconds for the tracker: {tracker.server.uri} does not answer ("
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
        == f"{WAITING}600 seconds for the tracker: {weather.uri} is in trouble (HTTP status 500; its log says why)."
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
    assert f"{remote.uri} is in trouble (HTTP status 503; its log says why)" in sentence
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


@contextmanager
def trouble(
    kind: str, tracker: Tracker, weather: Weather, disk: Path, store: Path
) -> Iterator[tuple[str, Callable[[], object]]]:
    """A tracker in trouble: its URI, and what ends the trouble."""
    server, local = tracker.server, f"sqlite:///{disk}/mlflow.db"
    disk.mkdir()
    with ExitStack() as stack:
        if kind == "stopped":
            server.signal(signal.SIGSTOP)
            stack.callback(server.signal, signal.SIGCONT)
            yield server.uri, lambda: server.signal(signal.SIGCONT)
        elif kind == "killed":
            server.kill()
            yield server.uri, server.start
        elif kind == "slow":
            weather.delay = DELAY
            yield weather.uri, lambda: setattr(weather, "delay", 0.0)
        elif kind == "answers 500":
            weather.fault = lambda _: "refuse"
            yield weather.uri, lambda: setattr(weather, "fault", lambda _: "")
        elif kind == "locked":
            shutil.copy(store, disk)
            held = ExitStack()
            stack.enter_context(held)
            held.enter_context(held_by_another_process(disk / "mlflow.db"))
            yield local, held.close
        else:
            stack.enter_context(small_disk(disk, "8m"))
            shutil.copy(store, disk)
            ballast = fill(disk)
            yield local, ballast.unlink


KINDS = ["stopped", "killed", "slow", "answers 500", "locked", "full disk"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS if FULL_LENGTH else KINDS[:1])
def test_training_never_notices_and_its_run_arrives_later(
    kind: str,
    tmp_path: Path,
    stores: tuple[TokenStore, TokenStore],
    tracker: Tracker,
    weather: Weather,
    empty_store: Path,
    study_names: Iterator[str],
    script: Script,
) -> None:
    run, study = small_run(), next(study_names)
    results = tmp_path / "results"

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
    command = [sys.executable, str(SCRIPTS / "follow_runs.py"), "--results", str(results), "--every", "0.1"]
    with trouble(kind, tracker, weather, tmp_path / "disk", empty_store) as (uri, end):
        began = time.monotonic()
        follower = subprocess.Popen(
            [*command, "--uri", uri, "--notice", str(NOTICE)], stderr=subprocess.PIPE, text=True
        )
        assert follower.stderr
        sentences = [follower.stderr.readline() for _ in range(2)]
        disturbed = train(results, uri)
        assert follower.poll() is None
        if FULL_LENGTH:
            time.sleep(max(0.0, began + OUTAGE - time.monotonic()))
        end()
        assert sentences[1].startswith(("Waiting for the tracker: ", SLOW))
        assert (disturbed.stdout, disturbed.stderr) == (alone.stdout, alone.stderr)
        assert history(results) == history(tmp_path / "alone")
        store = patiently(
            lambda: open_store(uri, results), 60.0, print
        )  # a server that goes on may drop connections first
        wait_for(lambda: store.client.get_experiment_by_name(study) is not None)
        wait_for(lambda: run.key in content(store, study))
        follower.send_signal(signal.SIGTERM)
        sentences.append(follower.communicate()[1])
        assert follower.returncode == 0
        arguments = ["--results", results, "--uri", uri, "--study", study]
        done = script("import_runs.py", *arguments, "--out", tmp_path / "runs.parquet")
        assert "0 runs written to MLflow, 1 were up to date; 1 rows" in done.errors
        print(kind, "".join(sentences), done.errors, sep="\n")
