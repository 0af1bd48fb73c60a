"""Records in, MLflow runs out: complete, honest, once each; followed while they grow."""

from __future__ import annotations

import math
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from job_server import warm_python
from made_records import (
    STARTED,
    ask,
    finish,
    make_rows,
    make_run,
    milliseconds,
    other_recipe,
    write_finished,
    write_live,
)
from mlflow.entities import Metric, Param, Run, RunData, RunInfo, RunTag
from mlflow.store.entities import PagedList
from mlflow.tracking import MlflowClient
from places import SCRIPTS, Place, wait_for
from stored import active_runs, content, curves, dump, logged_inputs, recorded_curves

from shapelaw.errors import UserError
from shapelaw.specs.runs import run_to_dict
from shapelaw.storage.progress import Liveness
from shapelaw.tracking.entities import run_name, shape_name
from shapelaw.tracking.importer import list_runs
from shapelaw.tracking.store import FINGERPRINT, IMPORTER, KEY, PAGE, Store, search_runs
from shapelaw.tracking.table import read_runs


def test_a_finished_record_arrives_whole(any_place: Place) -> None:
    run = make_run(embedding_rank=8)
    folder = write_finished(any_place.results, run, unheard_of=2.5, remark="late night")
    assert any_place.import_all().written == [run.key]
    store = any_place.store()
    found = active_runs(store, any_place.study)[run.key]
    assert (found.info.status, found.info.start_time, found.info.end_time) == (
        "FINISHED",
        milliseconds(0),
        milliseconds(90),
    )
    assert curves(store, found) == recorded_curves(folder)
    expected = {
        **run_to_dict(run)["shape"],
        **asdict(run.training),
        "seed": 0,
        "corpus": "wiki",
    }
    left_out = {name: expected.pop(name) for name in ("schedule", "parametrization")}
    assert left_out == {"schedule": "cosine", "parametrization": "standard"}  # the defaults
    expected |= {"block_params": 12 * 2 * 16**2, "total_params": run.shape.total_params}
    expected |= {"step_flops": run.shape.step_flops(8)}
    expected |= {
        "tokens_trained": 15360,
        "test_sequences": 1000,
    }  # no numbers to compare: equal for every seed
    assert found.data.params == {k: str(v) for k, v in expected.items() if v is not None}
    last_row = make_rows(run)[-1]
    numbers = {"test_loss": last_row[4], "train_loss": last_row[1], "bits_per_byte": 1.75, "unheard_of": 2.5}
    numbers = {f"result/{name}": value for name, value in numbers.items()}
    numbers |= {"system/tokens_per_second": 170.5, "system/peak_memory_bytes": 123456789.0}
    numbers |= {"system/wall_seconds": 90.0}
    numbers |= {"rounded/test_loss": round(last_row[4], 4), "rounded/bits_per_byte": 1.75}
    curves_of = ("loss/train", "schedule/learning_rate", "schedule/gradient_norm", "loss/test")
    curve_ends = dict(zip(curves_of, last_row[1:], strict=True))
    assert found.data.metrics == numbers | curve_ends
    texts = {"key": run.key, "study": any_place.study, "spec_digest": run.digest}
    texts |= {"git_commit": "0123abc", "config_hash": "c0ffee", "slurm_job": "4711"}
    texts |= {"attempt": "1", "attempts": "1", "remark": "late night", "device": "cpu"}
    assert found.data.tags.items() >= texts.items()
    assert found.data.tags["host"]
    assert (found.info.run_name, found.data.tags["shape"]) == (run_name(run), shape_name(run))
    assert found.data.tags["mlflow.source.name"] == "scripts/train.py"
    assert f"`results/runs/{run.key}`" in found.data.tags["mlflow.note.content"]
    assert "bits per byte 1.75" in found.data.tags["mlflow.note.content"]
    assert logged_inputs(store, found) == {("a" * 36, "training"), ("b" * 36, "testing")}


def test_importing_twice_leaves_the_same_store(any_place: Place) -> None:
    for seed in range(3):
        write_finished(any_place.results, make_run(seed))
    write_live(any_place.results, make_run(3), "FAILED", message="The loss is not a number.")
    assert len(any_place.import_all().written) == 4
    before = dump(any_place.results)
    runs = active_runs(any_place.store(), any_place.study)
    outcome = any_place.import_all()
    assert (outcome.written, outcome.unchanged) == ([], 4)
    assert dump(any_place.results) == before
    again = active_runs(any_place.store(), any_place.study)
    assert {k: r.to_dictionary() for k, r in again.items()} == {k: r.to_dictionary() for k, r in runs.items()}


def test_a_run_that_two_studies_ask_for_has_a_copy_in_the_experiment_of_each(any_place: Place) -> None:
    shared, own = make_run(0), make_run(1)
    for run in (shared, own):
        write_finished(any_place.results, run)
    second = replace(any_place, study=f"{any_place.study} again")
    ask(any_place.results, any_place.study, shared, own)
    ask(any_place.results, second.study, shared)
    for place, keys in ((any_place, [shared.key, own.key]), (second, [shared.key])):
        assert sorted(place.import_all(keys).written) == sorted(keys)
    for place in (any_place, second):
        tags = {key: run.data.tags for key, run in active_runs(place.store(), place.study).items()}
        assert tags[shared.key]["study"] == place.study
        assert tags[shared.key]["studies"] == f"{any_place.study}, {second.study}"
        assert all("studies" not in of for key, of in tags.items() if key != shared.key)
    assert set(active_runs(second.store(), second.study)) == {shared.key}


def test_a_run_that_was_imported_learns_of_a_second_study(any_place: Place) -> None:
    run = make_run()
    write_finished(any_place.results, run)
    any_place.import_all()
    ask(any_place.results, any_place.study, run)
    ask(any_place.results, "vocabulary", run)
    assert any_place.import_all().written == []
    tags = active_runs(any_place.store(), any_place.study)[run.key].data.tags
    assert tags["studies"] == f"{any_place.study}, vocabulary"


def test_a_running_run_without_a_record_is_killed_and_a_finished_one_kept(place: Place) -> None:
    live, done = make_run(0), make_run(1)
    folders = [write_live(place.results, live), write_finished(place.results, done)]
    place.import_all()
    for folder in folders:
        shutil.rmtree(folder)
    place.import_all()
    runs = active_runs(place.store(), place.study)
    assert {key: run.info.status for key, run in runs.items()} == {live.key: "KILLED", done.key: "FINISHED"}


def test_a_broken_record_is_named_and_the_others_arrive(place: Place) -> None:
    good, cut, moved = (make_run(seed) for seed in range(3))
    write_finished(place.results, good)
    (write_finished(place.results, cut) / "history.parquet").write_bytes(b"PAR1")
    folder = write_finished(place.results, moved)
    folder.rename(folder.with_name("another-key"))
    (place.results / "runs" / "empty").mkdir()  # a job that has just begun
    outcome = place.import_all()
    assert outcome.written == [good.key]
    assert set(outcome.problems) == {cut.key, "another-key"}
    assert "half written: history.parquet" in outcome.problems[cut.key]
    assert "rename the folder" in outcome.problems["another-key"]
    assert set(active_runs(place.store(), place.study)) == {good.key}


def test_an_experiment_in_the_trash_comes_back_with_one_run_a_key(any_place: Place) -> None:
    run = make_run()
    write_finished(any_place.results, run)
    any_place.import_all()
    write_finished(any_place.results, run, make_rows(run, shift=0.5))
    any_place.import_all()
    store = any_place.store()
    experiment = store.client.get_experiment_by_name(any_place.study)
    assert experiment is not None
    store.client.delete_experiment(experiment.experiment_id)
    any_place.import_all()
    assert set(active_runs(store, any_place.study)) == {run.key}


def test_more_runs_than_a_page_holds(place: Place) -> None:
    keys = [make_run(seed).key for seed in range(5)]
    for seed in range(5):
        write_finished(place.results, make_run(seed))
    place.import_all()
    store = place.store()
    experiment = store.client.get_experiment_by_name(place.study)
    assert experiment is not None
    runs = search_runs(store.client, experiment.experiment_id, page_size=2)
    assert sorted(run.data.tags["key"] for run in runs) == sorted(keys)


def test_a_second_machine_is_told_that_there_is_one_and_doubles_nothing(
    any_place: Place, tmp_path: Path
) -> None:
    """Two colleagues, one server, the same study: runs of both stand in it, and live ones are left to their own."""
    run, live, other = make_run(), make_run(1), other_recipe(make_run())
    elsewhere = Place(tmp_path / "elsewhere", any_place.uri, any_place.study)
    write_finished(any_place.results, run)
    write_live(any_place.results, live)
    shutil.copytree(any_place.results / "runs", elsewhere.results / "runs")
    write_finished(elsewhere.results, other)
    assert set(any_place.import_all().written) == {run.key, live.key}
    mine = active_runs(any_place.store(), any_place.study)
    said = list[str]()
    importer = elsewhere.importer(said.append)
    for written in ([other.key], []):
        assert importer.import_study(elsewhere.study)[1].written == written
    (sentence,) = said
    assert f"was imported from {socket.gethostname()}:{any_place.results} so far" in sentence
    assert f"now from {socket.gethostname()}:{elsewhere.results}; a study has one importer" in sentence
    assert any_place.import_all().written == []
    found = active_runs(any_place.store(), any_place.study)
    assert set(found) == {run.key, live.key, other.key}
    assert {key: found[key].info.run_id for key in mine} == {
        key: each.info.run_id for key, each in mine.items()
    }
    assert found[live.key].info.status == "RUNNING"


def test_copies_that_two_machines_wrote_at_once_are_one_after_the_next_import(any_place: Place) -> None:
    run = make_run()
    folder = write_finished(any_place.results, run)
    any_place.import_all()
    store = any_place.store()
    first = active_runs(store, any_place.study)[run.key]
    twin = store.client.create_run(first.info.experiment_id, tags=dict(first.data.tags)).info.run_id
    with pytest.raises(UserError, match="two active runs"):
        read_runs(store, any_place.study)
    any_place.import_all()
    (left,) = active_runs(store, any_place.study).values()
    assert left.info.run_id == min(first.info.run_id, twin)
    assert read_runs(store, any_place.study).num_rows == 1
    assert folder.exists()


def test_the_login_nodes_of_a_cluster_are_one_importer(
    any_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What one of them imported, the other goes on with, a run that was trained again too."""
    run, said = make_run(), list[str]()
    write_finished(any_place.results, run)
    any_place.import_all()
    shutil.rmtree(any_place.results / "runs")
    monkeypatch.setattr("socket.gethostname", lambda: "login2")
    folder = write_finished(any_place.results, run, make_rows(run, shift=0.5))
    outcome = any_place.importer(said.append).import_study(any_place.study)[1]
    assert (outcome.written, outcome.problems, said) == ([run.key], {}, [])
    (found,) = active_runs(any_place.store(), any_place.study).values()
    assert curves(any_place.store(), found) == recorded_curves(folder)


def test_a_store_that_was_deleted_is_filled_again(place: Place, empty_store: Path) -> None:
    for seed in range(2):
        write_finished(place.results, make_run(seed))
    place.import_all()
    before = content(place.store(), place.study)
    (place.results / "mlflow.db").unlink()
    moved = replace(
        place, uri=f"sqlite:///{place.results}/again.db"
    )  # MLflow keeps a connection to the deleted one
    assert len(moved.import_all().written) == 2
    assert content(moved.store(), place.study) == before


class Pages:
    """A client of an experiment that holds more runs than a test could import."""

    def __init__(self, pages: int) -> None:
        self.pages = pages

    def search_runs(
        self, *_: object, page_token: str | None, max_results: int, **__: object
    ) -> PagedList[Run]:
        page = int(page_token or 0)
        runs = [self.run(page * max_results + number) for number in range(max_results)]
        return PagedList(runs, str(page + 1) if page + 1 < self.pages else None)

    def run(self, number: int) -> Run:
        tags = {KEY: f"key-{number}", FINGERPRINT: f"{number:032}", IMPORTER: "here"}
        tags |= {f"tag{index}": f"{number} " * 10 for index in range(30)}
        info = RunInfo(f"{number:032}", "1", "me", "FINISHED", 0, 1, "active")
        data = RunData(
            metrics=[Metric(f"m{i}", float(number), 0, 0) for i in range(20)],
            params=[Param(f"p{i}", str(number)) for i in range(40)],
            tags=[RunTag(name, text) for name, text in tags.items()],
        )
        return Run(info, data)


def test_ten_thousand_runs_are_listed_in_bounded_memory() -> None:
    """A page of runs at a time; of each, what tells whether it is up to date stays."""
    peaks = []
    for pages in (1, 10):
        store = Store("", cast(MlflowClient, Pages(pages)), None, "here")
        tracemalloc.start()
        known = list_runs(store, "1", None)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert len(known) == pages * PAGE
    assert peaks[1] < 3 * peaks[0], "ten pages are held"


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


def test_losses_that_are_not_finite_survive(any_place: Place) -> None:
    run = make_run()
    bad = [(10, math.nan, 1e-3, math.inf, math.nan), (20, math.inf, 1e-3, math.nan, math.nan)]
    write_live(any_place.results, run, rows=bad)
    any_place.import_all()
    more = [*bad, (30, math.nan, 1e-3, 1.0, math.nan)]
    write_live(any_place.results, run, "FAILED", last=30, rows=more)
    any_place.import_all()
    store = any_place.store()
    found = active_runs(store, any_place.study)[run.key]
    points = curves(store, found)["train_loss"]
    assert [step for step, _ in points] == [10, 20, 30]
    assert math.isnan(points[0][1])
    assert points[1][1] == sys.float_info.max
    assert math.isnan(points[2][1])


def test_texts_and_names_that_mlflow_refuses_are_made_to_fit(place: Place) -> None:
    run = make_run()
    write_finished(
        place.results, run, tags={"größe?": "x" * 9000, "key": "not mine", "fingerprint": "nor this"}
    )
    place.import_all()
    found = active_runs(place.store(), place.study)[run.key]
    assert (found.data.tags["gr__e_"], found.data.tags["key"]) == ("x" * 5000, run.key)
    assert place.import_all().unchanged == 1


def test_the_device_and_the_versions_are_tags(place: Place) -> None:
    run = make_run()
    machine = {
        "device_type": "cuda",
        "device": "NVIDIA A100",
        "cuda_version": "12.8",
        "python_version": "3.11.7",
    }
    write_finished(place.results, run, **machine)
    place.import_all()
    tags = active_runs(place.store(), place.study)[run.key].data.tags
    assert {name: tags[name] for name in [*machine, "torch_version"]} == {**machine, "torch_version": "2.9.0"}


def test_curves_are_spread_over_the_run_and_single_numbers_are_no_curves(place: Place) -> None:
    run = make_run()
    write_finished(place.results, run)
    place.import_all()
    store = place.store()
    found = active_runs(store, place.study)[run.key]
    (point,) = store.client.get_metric_history(found.info.run_id, "result/test_loss")
    assert (point.step, point.timestamp) == (0, milliseconds(90))
    times = [m.timestamp for m in store.client.get_metric_history(found.info.run_id, "loss/train")]
    assert sorted(times) == [milliseconds(15 * k) for k in range(1, 7)]


def test_a_run_that_died_says_so(place: Place) -> None:
    run = make_run()
    write_live(place.results, run, "FAILED", message="The GPU fell off the bus.", updated=STARTED)
    place.import_all()
    found = active_runs(place.store(), place.study)[run.key]
    assert (found.info.status, found.data.tags["message"]) == ("FAILED", "The GPU fell off the bus.")
    assert found.info.end_time == milliseconds(0)


def test_a_run_that_went_silent_is_killed_and_may_come_back(place: Place) -> None:
    run = make_run()
    now = datetime.now(UTC)
    write_live(place.results, run, host="elsewhere", updated=now - timedelta(minutes=9))
    place.import_all()
    assert active_runs(place.store(), place.study)[run.key].info.status == "RUNNING"
    write_live(place.results, run, host="elsewhere", updated=now - timedelta(minutes=11))
    place.import_all()
    dead = active_runs(place.store(), place.study)[run.key]
    assert (dead.info.status, dead.info.end_time) == (
        "KILLED",
        round((now - timedelta(minutes=11)).timestamp() * 1000),
    )
    assert "10 minutes" in dead.data.tags["message"]
    write_live(place.results, run, host="elsewhere", updated=now)
    place.import_all()
    assert active_runs(place.store(), place.study)[run.key].info.status == "RUNNING"


def test_a_run_whose_process_is_gone_is_killed_at_once(place: Place) -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    gone, alive = make_run(0), make_run(1)
    write_live(place.results, gone, pid=process.pid)
    write_live(place.results, alive, pid=os.getpid())
    place.import_all()
    runs = active_runs(place.store(), place.study)
    assert {key: run.info.status for key, run in runs.items()} == {gone.key: "KILLED", alive.key: "RUNNING"}


def test_the_finished_record_wins_over_the_checkpoint_directory(place: Place) -> None:
    both, left = make_run(0), make_run(1)
    write_live(place.results, both, "KILLED")
    write_finished(place.results, both)
    write_finished(place.results, left, place="checkpoints")  # training ended, then Snakemake died
    place.import_all()
    runs = active_runs(place.store(), place.study)
    assert {key: run.info.status for key, run in runs.items()} == {both.key: "FINISHED", left.key: "FINISHED"}


@pytest.mark.parametrize("missing", [{"started_at": None}, {"finished_at": "yesterday"}])
def test_a_record_without_its_times_is_named(place: Place, missing: dict[str, Any]) -> None:
    run = make_run()
    write_finished(place.results, run, **missing)
    (sentence,) = place.import_all().problems.values()
    assert next(iter(missing)) in sentence


def test_one_record_that_changed_leaves_its_neighbours_as_they_are(place: Place) -> None:
    first, second = make_run(0), make_run(1)
    ask(place.results, place.study, first, second)
    write_live(place.results, first)
    write_live(place.results, second)
    importer = place.importer()
    importer.look()
    before = active_runs(place.store(), place.study)
    write_live(place.results, second, last=40)
    importer.look()
    runs = active_runs(place.store(), place.study)
    assert {key: (run.info.run_id, run.info.status) for key, run in runs.items()} == {
        key: (run.info.run_id, "RUNNING") for key, run in before.items()
    }
    assert len(curves(place.store(), runs[second.key])["train_loss"]) == 4


@contextmanager
def following(place: Place) -> Iterator[list[str]]:
    """Follow mode in a thread; yields what it says."""
    stop = threading.Event()
    said: list[str] = []
    importer = place.importer(said.append, patience=600, stop=stop)
    thread = threading.Thread(target=importer.follow, args=(0.05,))
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
    importer = place.importer()
    importer.look()
    before = active_runs(place.store(), place.study)
    assert not [run for run in before.values() if "studies" in run.data.tags]
    ask(place.results, "vocabulary", shared)
    importer.look()
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
    place.importer().look()
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
    importer = place.importer()
    importer.look()
    importer.uri = "sqlite:////proc/nothing/there.db"
    importer.look()


def test_a_run_that_falls_silent_between_two_looks_is_killed(place: Place) -> None:
    run = make_run()
    ask(place.results, place.study, run)
    write_live(place.results, run, host="elsewhere", updated=datetime.now(UTC) - timedelta(seconds=5))
    importer = place.importer(liveness=Liveness(silence=600))
    importer.look()
    assert status(place, run.key) == "RUNNING"
    importer.liveness = Liveness(silence=4)
    importer.look()
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
