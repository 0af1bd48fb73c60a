"""Records on disk: which there are, and whether a run that says RUNNING still runs."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from made_records import STARTED, ask, make_run, milliseconds, write_finished, write_live
from places import Place
from stored import active_runs, curves

from shapelaw.tracking import importer
from shapelaw.tracking.disk import Liveness, RecordFolder, find_records


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


def test_records_are_found_by_key_and_folders_of_studies_are_none(tmp_path: Path) -> None:
    """As records lay before they belonged to a pool."""
    finished, live, both = (make_run(seed) for seed in range(3))
    write_finished(tmp_path, finished)
    write_live(tmp_path, live)
    write_live(tmp_path, both, "KILLED")
    write_finished(tmp_path, both)
    ask(tmp_path, "depth_width", finished)  # a file beside the folders
    for place in ("runs", "checkpoints"):
        write_finished(tmp_path, make_run(9), place=f"{place}/depth_width")
    assert find_records(tmp_path) == {
        run.key: RecordFolder(run.key, tmp_path / place / run.key, place == "runs")
        for run, place in sorted(
            [(finished, "runs"), (live, "checkpoints"), (both, "runs")], key=lambda one: one[0].key
        )
    }
    assert find_records(tmp_path / "nowhere") == {}


@pytest.mark.parametrize("missing", [{"started_at": None}, {"finished_at": "yesterday"}])
def test_a_record_without_its_times_is_named(place: Place, missing: dict[str, Any]) -> None:
    run = make_run()
    write_finished(place.results, run, **missing)
    (sentence,) = place.import_all().problems.values()
    assert next(iter(missing)) in sentence


def test_a_few_records_are_found_by_key_alone(place: Place) -> None:
    """Follow mode imports single records: neither neighbours nor the record's own run may be doubled or killed."""
    first, second = make_run(0), make_run(1)
    write_live(place.results, first)
    write_live(place.results, second)
    place.import_all()
    write_live(place.results, second, last=40)
    found = {second.key: find_records(place.results)[second.key]}
    outcome = importer.import_records(place.store(), place.study, found, Liveness(), on_disk=None)
    assert outcome.written == [second.key]
    runs = active_runs(place.store(), place.study)
    assert {key: run.info.status for key, run in runs.items()} == dict.fromkeys(
        (first.key, second.key), "RUNNING"
    )
    assert len(curves(place.store(), runs[second.key])["train_loss"]) == 4
