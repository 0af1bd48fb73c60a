"""Records in, MLflow runs out: complete, honest, once each."""

from __future__ import annotations

import shutil
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from made_records import (
    ask,
    finish,
    make_rows,
    make_run,
    milliseconds,
    other_recipe,
    write_finished,
    write_live,
)
from places import Place, silent
from stored import active_runs, curves, dump, logged_inputs, recorded_curves

from shapelaw.specs.runs import run_to_dict
from shapelaw.tracking.importer import import_study
from shapelaw.tracking.names import run_name, shape_name
from shapelaw.tracking.store import search_runs


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


def test_a_retrained_run_replaces_the_old_one(any_place: Place) -> None:
    run = make_run()
    write_finished(any_place.results, run)
    any_place.import_all()
    old = active_runs(any_place.store(), any_place.study)[run.key].info.run_id
    folder = write_finished(any_place.results, run, make_rows(run, shift=0.5))
    assert any_place.import_all().written == [run.key]
    store = any_place.store()
    found = active_runs(store, any_place.study)[run.key]
    assert found.info.run_id != old
    assert curves(store, found) == recorded_curves(folder)


def test_a_run_of_another_recipe_stands_beside_the_old_one(any_place: Place) -> None:
    run = make_run()
    other = other_recipe(run)
    folder = write_finished(any_place.results, run)
    any_place.import_all()
    old = active_runs(any_place.store(), any_place.study)[run.key].info.run_id
    beside = write_finished(any_place.results, other, make_rows(other, shift=0.5))
    assert any_place.import_all().written == [other.key]
    store = any_place.store()
    found = active_runs(store, any_place.study)
    assert {key: each.data.tags["spec_digest"] for key, each in found.items()} == {
        run.key: run.digest,
        other.key: other.digest,
    }
    assert found[run.key].info.run_id == old
    assert curves(store, found[run.key]) == recorded_curves(folder)
    assert curves(store, found[other.key]) == recorded_curves(beside)


def test_a_run_that_two_studies_ask_for_has_a_copy_in_the_experiment_of_each(any_place: Place) -> None:
    shared, own = make_run(0), make_run(1)
    for run in (shared, own):
        write_finished(any_place.results, run)
    second = replace(any_place, study=f"{any_place.study} again")
    ask(any_place.results, any_place.study, shared, own)
    ask(any_place.results, second.study, shared)
    for place, keys in ((any_place, [shared.key, own.key]), (second, [shared.key])):
        written = import_study(place.results, place.study, place.uri, 0, silent, keys=keys)[1].written
        assert sorted(written) == sorted(keys)
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


def test_a_live_run_grows_and_finishes_as_one_run(any_place: Place) -> None:
    run = make_run()
    write_live(any_place.results, run, last=0)
    any_place.import_all()
    first = active_runs(any_place.store(), any_place.study)[run.key]
    assert (first.info.status, first.info.end_time) == ("RUNNING", None)
    for last in (20, 50, 50):
        folder = write_live(any_place.results, run, last=last)
        any_place.import_all()
        assert curves(any_place.store(), first) == recorded_curves(folder)
    folder = finish(any_place.results, run)
    any_place.import_all()
    store = any_place.store()
    found = active_runs(store, any_place.study)[run.key]
    assert (found.info.run_id, found.info.status) == (first.info.run_id, "FINISHED")
    assert found.info.end_time == milliseconds(90)
    assert curves(store, found) == recorded_curves(folder)
    assert found.data.metrics["result/bits_per_byte"] == 1.75


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
    runs = search_runs(store, experiment.experiment_id, page_size=2)
    assert sorted(run.data.tags["key"] for run in runs) == sorted(keys)


def test_runs_of_two_folders_and_recipes_stand_in_one_experiment(any_place: Place, tmp_path: Path) -> None:
    """Two colleagues, one server, the same study with two sizes of a batch."""
    run = make_run()
    elsewhere = Place(tmp_path / "elsewhere", any_place.uri, any_place.study)
    write_finished(any_place.results, run)
    write_finished(elsewhere.results, other_recipe(run))
    assert any_place.import_all().written == [run.key]
    assert elsewhere.import_all().written == [other_recipe(run).key]
    for place in (any_place, elsewhere):
        outcome = place.import_all()
        assert (outcome.written, outcome.problems, outcome.rivals) == ([], {}, set())
    assert set(active_runs(any_place.store(), any_place.study)) == {run.key, other_recipe(run).key}


def test_somebody_elses_run_of_that_name_is_left_alone(
    any_place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the digests of two colleagues' runs begin alike."""
    monkeypatch.setattr("shapelaw.specs.runs.key_of", lambda label, _: f"{label}-0a1b2c3d")
    run = make_run()
    write_finished(any_place.results, run)
    assert any_place.import_all().written == [run.key]
    mine = active_runs(any_place.store(), any_place.study)[run.key].info.run_id
    elsewhere = Place(tmp_path / "elsewhere", any_place.uri, any_place.study)
    write_finished(elsewhere.results, other_recipe(run))
    write_finished(elsewhere.results, make_run(seed=7))
    outcome = elsewhere.import_all()
    assert outcome.written == [make_run(seed=7).key]
    (problem,) = outcome.problems.values()
    assert f"has another run with the name {run.key} in {any_place.study}, imported from" in problem
    assert str(any_place.results) in problem
    assert active_runs(any_place.store(), any_place.study)[run.key].info.run_id == mine
    assert any_place.import_all().written == []


def test_the_login_nodes_of_a_cluster_are_one_importer(
    any_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What one of them imported, the other goes on with, a run that was trained again too."""
    run = make_run()
    write_finished(any_place.results, run)
    any_place.import_all()
    shutil.rmtree(any_place.results / "runs")
    monkeypatch.setattr("socket.gethostname", lambda: "login2")
    folder = write_finished(any_place.results, run, make_rows(run, shift=0.5))
    outcome = any_place.import_all()
    assert (outcome.written, outcome.problems, outcome.rivals) == ([run.key], {}, set())
    (found,) = active_runs(any_place.store(), any_place.study).values()
    assert curves(any_place.store(), found) == recorded_curves(folder)
