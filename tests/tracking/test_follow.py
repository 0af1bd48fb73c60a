"""Follow mode: what happens on disk shows in MLflow soon, and nothing is written without cause."""

from __future__ import annotations

import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest
from job_server import warm_python
from made_records import ask, finish, make_run, write_finished, write_live
from places import SCRIPTS, Place, silent, wait_for
from stored import active_runs, curves, dump, recorded_curves

from shapelaw.tracking.disk import Liveness
from shapelaw.tracking.follow import Seen, follow, look


@contextmanager
def following(place: Place) -> Iterator[list[str]]:
    """Follow mode in a thread; yields what it says."""
    stop = threading.Event()
    said: list[str] = []
    thread = threading.Thread(target=follow, args=(place.results, place.uri, 0.05, 600, said.append, stop))
    thread.start()
    try:
        yield said
    finally:
        stop.set()
        thread.join(600)
        assert not thread.is_alive()


def status(place: Place, key: str, study: str | None = None) -> str | None:
    experiment = place.store().client.get_experiment_by_name(study or place.study)
    run = active_runs(place.store(), study or place.study).get(key) if experiment else None
    return run.info.status if run else None


def test_a_run_is_followed_from_its_start_to_its_end(any_place: Place) -> None:
    done, run = make_run(0), make_run(1)
    write_finished(any_place.results, done)
    write_live(any_place.results, run, last=0)
    ask(any_place.results, any_place.study, done, run)
    with following(any_place):
        wait_for(lambda: status(any_place, run.key) == "RUNNING")
        started = active_runs(any_place.store(), any_place.study)[run.key]
        for last in (10, 30, 40):
            folder = write_live(any_place.results, run, last=last)
            expected = recorded_curves(folder)
            wait_for(lambda expected=expected: curves(any_place.store(), started) == expected)  # type: ignore[misc]
        folder = finish(any_place.results, run)
        wait_for(lambda: status(any_place, run.key) == "FINISHED")
    runs = active_runs(any_place.store(), any_place.study)
    assert set(runs) == {done.key, run.key}
    assert runs[run.key].info.run_id == started.info.run_id
    assert curves(any_place.store(), runs[run.key]) == recorded_curves(folder)


def test_studies_that_begin_later_and_records_that_vanish(place: Place) -> None:
    late = make_run()
    with following(place):
        ask(place.results, "vocabulary", late)
        write_live(place.results, late)
        wait_for(lambda: status(place, late.key, "vocabulary") == "RUNNING")
        shutil.rmtree(place.results / "checkpoints")
        wait_for(lambda: status(place, late.key, "vocabulary") == "KILLED")


def test_a_run_that_a_second_study_asks_for_later_appears_there_too(place: Place) -> None:
    """Both copies then say so."""
    shared, own = make_run(0), make_run(1)
    for run in (shared, own):
        write_finished(place.results, run)
    ask(place.results, place.study, shared, own)
    seen, stop = Seen(), threading.Event()
    look(place.results, place.uri, seen, Liveness(), silent, stop)
    before = active_runs(place.store(), place.study)
    assert not [run for run in before.values() if "studies" in run.data.tags]
    ask(place.results, "vocabulary", shared)
    look(place.results, place.uri, seen, Liveness(), silent, stop)
    runs = {study: active_runs(place.store(), study) for study in (place.study, "vocabulary")}
    assert [set(found) for found in runs.values()] == [{shared.key, own.key}, {shared.key}]
    assert {key: run.info.run_id for key, run in runs[place.study].items()} == {
        key: run.info.run_id for key, run in before.items()
    }
    for study, found in runs.items():
        tags = found[shared.key].data.tags
        assert (tags["study"], tags["studies"]) == (study, f"{place.study}, vocabulary")
    assert "studies" not in runs[place.study][own.key].data.tags


def test_a_record_that_no_study_asks_for_is_not_imported(place: Place) -> None:
    asked, other = make_run(0), make_run(1)
    for run in (asked, other):
        write_finished(place.results, run)
    ask(place.results, place.study, asked)
    look(place.results, place.uri, Seen(), Liveness(), silent, threading.Event())
    assert list(active_runs(place.store(), place.study)) == [asked.key]


def test_a_broken_record_is_told_once(place: Place) -> None:
    run = make_run()
    good = make_run(1)
    ask(place.results, place.study, run, good)
    broken = write_finished(place.results, run) / "history.parquet"
    broken.unlink()
    with following(place) as said:
        wait_for(lambda: bool(said))
        write_finished(place.results, good)
        wait_for(lambda: status(place, good.key) == "FINISHED")
    assert len([sentence for sentence in said if str(broken.parent) in sentence]) == 1


def test_a_second_look_at_unchanged_records_does_not_even_open_the_store(place: Place) -> None:
    write_finished(place.results, make_run(0))
    write_live(place.results, make_run(1))
    ask(place.results, place.study, make_run(0), make_run(1))
    seen, stop = Seen(), threading.Event()
    look(place.results, place.uri, seen, Liveness(), silent, stop)
    look(place.results, "sqlite:////proc/nothing/there.db", seen, Liveness(), silent, stop)


def test_a_run_that_falls_silent_between_two_looks_is_killed(place: Place) -> None:
    run = make_run()
    ask(place.results, place.study, run)
    write_live(place.results, run, host="elsewhere", updated=datetime.now(UTC) - timedelta(seconds=5))
    seen, stop = Seen(), threading.Event()
    look(place.results, place.uri, seen, Liveness(silence=600), silent, stop)
    assert status(place, run.key) == "RUNNING"
    look(place.results, place.uri, seen, Liveness(silence=4), silent, stop)
    assert status(place, run.key) == "KILLED"


def test_another_importer_gets_its_turn_and_neither_doubles_the_other(place: Place) -> None:
    ask(place.results, place.study, make_run(10), *map(make_run, range(5)))
    with following(place):
        for seed in range(5):
            write_finished(place.results, make_run(seed))
            write_live(place.results, make_run(10), last=10 * (seed + 1))
            place.import_all()
    before = dump(place.results)
    assert len(active_runs(place.store(), place.study)) == 6
    assert place.import_all().unchanged == 6
    assert dump(place.results) == before
    live = active_runs(place.store(), place.study)[make_run(10).key]
    assert [step for step, _ in curves(place.store(), live)["train_loss"]] == [10, 20, 30, 40, 50]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_cleanly(place: Place, number: signal.Signals) -> None:
    run = make_run()
    write_finished(place.results, run)
    ask(place.results, place.study, run)
    command = [str(warm_python()), str(SCRIPTS / "follow_runs.py"), "--results", str(place.results)]
    process = subprocess.Popen([*command, "--every", "0.1"], stderr=subprocess.PIPE, text=True)
    wait_for(lambda: status(place, run.key) == "FINISHED")
    process.send_signal(number)
    _, errors = process.communicate()
    assert process.returncode == 0
    assert "Following" in errors
    assert "Traceback" not in errors
