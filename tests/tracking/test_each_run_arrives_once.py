"""Records in, MLflow runs out: complete, honest, once each; followed while they grow."""

import math
import signal
import subprocess
import sys
import tracemalloc
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest
from job_server import warm_python
from made_records import ask, finish, make_rows, make_run, milliseconds, write_finished, write_live
from mlflow.entities import Metric, Param, Run, RunData, RunInfo, RunTag
from mlflow.store.entities import PagedList
from mlflow.tracking import MlflowClient
from places import (
    COLUMNS,
    SCRIPTS,
    Place,
    active_runs,
    curves,
    dump,
    logged_inputs,
    recorded_curves,
    wait_for,
)

from shapelaw.storage.progress import Liveness
from shapelaw.tracking.entities import FINGERPRINT, KEY, listed_runs, run_name, shape_name
from shapelaw.tracking.store import PAGE, Store


def test_a_finished_record_arrives_whole(any_place: Place) -> None:
    run = make_run(embedding_rank=8)
    folder = write_finished(any_place.results, run, unheard_of=2.5, data_wait=0.25, remark="late night")
    assert any_place.import_all().written == [run.key]
    store = any_place.store()
    found = active_runs(store, any_place.study)[run.key]
    assert (found.info.status, found.info.start_time, found.info.end_time) == (
        "FINISHED",
        milliseconds(0),
        milliseconds(90),
    )
    assert curves(store, found) == recorded_curves(folder)
    times = [m.timestamp for m in store.client.get_metric_history(found.info.run_id, "train_loss")]
    assert sorted(times) == [milliseconds(15 * k) for k in range(1, 7)]  # spread over the run
    expected = {**run.to_dict()["shape"], **asdict(run.training), "seed": 0, "corpus": "wiki"}
    left_out = {name: expected.pop(name) for name in ("schedule", "parametrization")}
    assert left_out == {"schedule": "cosine", "parametrization": "standard"}  # the defaults
    expected["positional_rank"] = "full"
    assert found.data.params == {k: str(v) for k, v in expected.items() if v is not None}
    last_row = make_rows(run)[-1]
    numbers = {"bits_per_byte": 1.75, "unheard_of": 2.5, "tokens_per_second": 170.5, "tokens_trained": 15360}
    numbers |= {"peak_memory_bytes": 123456789.0, "wall_seconds": 90.0, "system/data_wait": 0.25}
    numbers |= {"block_params": 12 * 2 * 16**2, "total_params": run.shape.total_params}
    numbers |= {"step_flops": run.shape.step_flops(8)}
    curve_ends = dict(zip(COLUMNS, (last_row[1], last_row[4], *last_row[2:4]), strict=True))
    assert found.data.metrics == numbers | curve_ends
    texts = {"key": run.key, "study": any_place.study, "spec_digest": run.digest}
    texts |= {"git_commit": "0123abc", "config_hash": "c0ffee", "slurm_job": "4711"}
    texts |= {"attempt": "1", "attempts": "1", "remark": "late night", "device": "cpu"}
    assert found.data.tags.items() >= texts.items()
    assert found.data.tags["host"]
    assert (found.info.run_name, found.data.tags["shape"]) == (run_name(run), shape_name(run))
    assert found.data.tags["mlflow.source.name"] == "scripts/train.py"
    assert f"`results/runs/{run.key}`" in found.data.tags["mlflow.note.content"]
    assert logged_inputs(store, found) == {("a" * 36, "training"), ("b" * 36, "testing")}


def test_importing_twice_leaves_the_same_store(place: Place) -> None:
    """Also of texts and names that MLflow refuses, which are made to fit."""
    odd = {"größe?": "x" * 9000, "key": "not mine", "fingerprint": "nor this"}
    for seed, tags in enumerate(({}, {}, {"tags": odd})):
        write_finished(place.results, make_run(seed), **tags)
    write_live(place.results, make_run(3), "FAILED", message="The loss is not a number.")
    assert len(place.import_all().written) == 4
    before = dump(place.results)
    runs = active_runs(place.store(), place.study)
    fitted = runs[make_run(2).key].data.tags
    assert (fitted["gr__e_"], fitted["key"]) == ("x" * 5000, make_run(2).key)
    outcome = place.import_all()
    assert (outcome.written, outcome.unchanged) == ([], 4)
    assert dump(place.results) == before
    again = active_runs(place.store(), place.study)
    assert {k: r.to_dictionary() for k, r in again.items()} == {k: r.to_dictionary() for k, r in runs.items()}


def test_runs_under_other_names_are_written_again_and_those_without_a_record_stay(place: Place) -> None:
    """Their metrics have other names; a run without a record can't be written again."""
    run, lost = make_run(0), make_run(1)
    write_finished(place.results, run)
    store = place.store()
    experiment = store.make_experiment(place.study).experiment_id
    for each in (run, lost):
        older = store.client.create_run(experiment, tags={KEY: each.key, FINGERPRINT: "of before"})
        store.client.log_metric(older.info.run_id, "result/test_loss", 2.5)
    importer = place.importer()
    for written in ([run.key], []):
        assert importer.import_study(place.study)[1].written == written
    runs = active_runs(place.store(), place.study)
    assert runs[run.key].data.metrics["test_loss"] == make_rows(run)[-1][4]
    assert "result/test_loss" not in runs[run.key].data.metrics
    assert runs[lost.key].data.metrics == {"result/test_loss": 2.5}


def test_the_latest_point_of_a_curve_is_the_result(any_place: Place) -> None:
    """By MLflow's own rule, also where the record's result is another number, and where it has none: it diverged."""
    run, diverged = make_run(0), make_run(1)
    write_finished(any_place.results, run, test_loss=2.125)
    numbers = dict.fromkeys(("test_loss", "train_loss", "bits_per_byte"))
    write_finished(any_place.results, diverged, diverged_at_step=60, **numbers)
    any_place.import_all()
    runs = active_runs(any_place.store(), any_place.study)
    assert runs[run.key].data.metrics["test_loss"] == 2.125
    assert [math.isnan(runs[diverged.key].data.metrics[name]) for name in ("test_loss", "train_loss")] == [
        True
    ] * 2
    client, experiment = any_place.store().client, runs[run.key].info.experiment_id
    for wanted, keys in (
        ("metrics.test_loss < 1000", {run.key}),
        ('params.depth = "2" and metrics.test_loss < 3 and metrics.total_params < 1e6', {run.key}),
        ('params.embedding_rank = "full"', {run.key, diverged.key}),
        ('tags.size_class = "5K"', set()),
        ('tags.size_class = "7K"', {run.key, diverged.key}),
    ):
        found = client.search_runs([experiment], wanted)
        assert {each.data.tags["key"] for each in found} == keys, wanted


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


def test_an_experiment_in_the_trash_comes_back_with_one_run_a_key(place: Place) -> None:
    run = make_run()
    for shift in (0.0, 0.5):
        write_finished(place.results, run, make_rows(run, shift=shift))
        place.import_all()
    store = place.store()
    experiment = store.find_experiment(place.study)
    store.client.delete_experiment(experiment.experiment_id)
    place.import_all()
    assert set(active_runs(store, place.study)) == {run.key}


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
        tags = {KEY: f"key-{number}", FINGERPRINT: f"{number:032}"}
        tags |= {f"tag{index}": f"{number} " * 10 for index in range(10)}
        info = RunInfo(f"{number:032}", "1", "me", "FINISHED", 0, 1, "active")
        data = RunData(
            metrics=[Metric(f"m{i}", float(number), 0, 0) for i in range(5)],
            params=[Param(f"p{i}", str(number)) for i in range(10)],
            tags=[RunTag(name, text) for name, text in tags.items()],
        )
        return Run(info, data)


def test_runs_are_listed_in_bounded_memory() -> None:
    """A page of runs at a time; of each, its row of the table and what tells whether it is up to date stay."""
    peaks = []
    for pages in (2, 4):
        store = Store("", cast(MlflowClient, Pages(pages)), None, None)
        tracemalloc.start()
        known = listed_runs(store, "1")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert len(known) == pages * PAGE
    assert (peaks[1] - peaks[0]) / (2 * PAGE) < 2000, "more than so many bytes a run are kept"


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
    """On another machine, say. A finished record wins over the live one beside it, which may stay for a while."""
    run = make_run()
    write_live(place.results, run, last=40)
    place.import_all()
    write_live(place.results, run, last=40, updated=datetime.now(UTC) - timedelta(seconds=9))
    assert place.import_all().unchanged == 1, "a heartbeat alone writes nothing"
    folder = write_finished(place.results, run, make_rows(run, shift=1e-9))
    place.import_all()
    found = active_runs(place.store(), place.study)[run.key]
    assert found.info.status == "FINISHED"
    assert curves(place.store(), found) == recorded_curves(folder)


def test_a_long_history_takes_several_batches(place: Place) -> None:
    run = make_run()
    rows = [(step, 1 / step, 1e-3, 1.0, 2 / step) for step in range(1, 701)]
    folder = write_finished(place.results, run, rows)
    place.import_all()
    store = place.store()
    found = active_runs(store, place.study)[run.key]
    assert curves(store, found) == recorded_curves(folder)
    assert found.data.metrics["train_loss"] == 1 / 700


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


def test_a_run_that_went_silent_is_killed_and_may_come_back(place: Place) -> None:
    run, now = make_run(), datetime.now(UTC)
    for minutes, expected in ((9, "RUNNING"), (11, "KILLED"), (0, "RUNNING")):
        updated = now - timedelta(minutes=minutes)
        write_live(place.results, run, host="elsewhere", updated=updated)
        place.import_all()
        found = active_runs(place.store(), place.study)[run.key]
        assert found.info.status == expected
        if expected == "KILLED":
            assert found.info.end_time == round(updated.timestamp() * 1000)
            assert "10 minutes" in found.data.tags["message"]
    ask(place.results, place.study, run)
    importer = place.importer()
    for silence, expected in ((600, "RUNNING"), (-1, "KILLED")):  # nothing of its files changes
        importer.liveness = Liveness(silence=silence)
        importer.look()
        assert status(place, run.key) == expected


def test_a_look_writes_what_changed_and_does_not_even_open_the_store_where_nothing_did(place: Place) -> None:
    """A record that no study asks for is not imported."""
    done, first, second, other = map(make_run, range(4))
    ask(place.results, place.study, done, first, second)
    write_finished(place.results, done)
    write_finished(place.results, other)
    write_live(place.results, first)
    write_live(place.results, second)
    importer = place.importer()
    importer.look()
    before = active_runs(place.store(), place.study)
    assert set(before) == {done.key, first.key, second.key}
    write_live(place.results, second, last=40)
    importer.look()
    runs = active_runs(place.store(), place.study)
    for key, run in before.items():
        assert (runs[key].info.run_id, runs[key].info.status) == (run.info.run_id, run.info.status)
    assert len(curves(place.store(), runs[second.key])["train_loss"]) == 4
    importer.uri = "sqlite:////proc/nothing/there.db"
    importer.look()


def status(place: Place, key: str) -> str | None:
    experiment = place.store().client.get_experiment_by_name(place.study)
    run = active_runs(place.store(), place.study).get(key) if experiment else None
    return run.info.status if run else None


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


def test_a_broken_record_is_told_once(place: Place) -> None:
    run, good = make_run(), make_run(1)
    ask(place.results, place.study, run, good)
    broken = write_finished(place.results, run) / "history.parquet"
    broken.unlink()
    said: list[str] = []
    importer = place.importer(said.append)
    importer.look()
    write_finished(place.results, good)
    importer.look()
    assert status(place, good.key) == "FINISHED"
    assert len([sentence for sentence in said if str(broken.parent) in sentence]) == 1


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
