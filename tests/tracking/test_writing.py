"""A run in MLflow goes on where it was, or is written anew."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from made_records import finish, make_rows, make_run, write_finished, write_live
from places import Place
from stored import active_runs, curves, recorded_curves


def test_a_heartbeat_alone_writes_nothing(place: Place) -> None:
    run = make_run()
    write_live(place.results, run, step=21, updated=datetime.now(UTC) - timedelta(seconds=9))
    place.import_all()
    write_live(place.results, run, step=29)
    assert place.import_all().unchanged == 1


def test_a_resumed_run_that_went_back_does_not_double_points(place: Place) -> None:
    run = make_run()
    write_live(place.results, run, "KILLED", last=40, message="It was told to stop.")
    place.import_all()
    killed = active_runs(place.store(), place.study)[run.key]
    assert (killed.info.status, killed.data.tags["message"]) == ("KILLED", "It was told to stop.")
    write_live(place.results, run, last=20, attempts=2)  # resumed from the checkpoint at step 20
    place.import_all()
    resumed = active_runs(place.store(), place.study)[run.key]
    assert (resumed.info.status, resumed.data.tags.get("message")) == ("RUNNING", None)
    assert [s for s, _ in curves(place.store(), resumed)["train_loss"]] == [10, 20, 30, 40]
    folder = finish(place.results, run)
    place.import_all()
    found = active_runs(place.store(), place.study)[run.key]
    assert found.info.run_id == killed.info.run_id
    assert curves(place.store(), found) == recorded_curves(folder)


def test_a_run_that_resumed_with_other_numbers_is_written_anew(place: Place) -> None:
    run = make_run()
    write_live(place.results, run, last=40)
    place.import_all()
    folder = finish(place.results, run, rows=make_rows(run, shift=1e-9))  # on another machine, say
    place.import_all()
    found = active_runs(place.store(), place.study)[run.key]
    assert curves(place.store(), found) == recorded_curves(folder)


def test_a_long_history_takes_several_batches(any_place: Place) -> None:
    run = make_run()
    rows = [(step, 1 / step, 1e-3, 1.0, 2 / step) for step in range(1, 701)]
    folder = write_finished(any_place.results, run, rows)
    any_place.import_all()
    store = any_place.store()
    found = active_runs(store, any_place.study)[run.key]
    assert curves(store, found) == recorded_curves(folder)
    assert found.data.metrics["result/train_loss"] == 1 / 700
