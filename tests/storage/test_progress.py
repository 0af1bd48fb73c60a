"""How far a study is, from records in every state."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from made_records import STEPS, ask, make_run, other_recipe, write_finished, write_live

from shapelaw.errors import UserError
from shapelaw.storage.progress import (
    StudyProgress,
    find_records,
    lines_of,
    progress_of,
)

STUDY = "depth_width"
RUNS = {run.key: run for run in (make_run(seed) for seed in range(7))}
KEYS = list(RUNS)


def progress(results: Path) -> StudyProgress:
    return progress_of(STUDY, RUNS, find_records(results), {})


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Two finished, one running at a third, one killed, one failed, two not begun, and another run's record."""
    run = [RUNS[key] for key in KEYS]
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    write_finished(tmp_path, run[0])
    write_finished(tmp_path, run[1])
    write_live(tmp_path, run[2], updated=datetime.now(UTC) - timedelta(seconds=30), step=STEPS // 3)
    write_live(tmp_path, run[3], pid=gone.pid, step=0)
    write_live(tmp_path, run[4], "FAILED", message="The loss of the fifth is nan at step 7.", step=0)
    write_finished(tmp_path, other_recipe(run[5]))
    return tmp_path


def test_nothing_begun_has_no_time_left(tmp_path: Path) -> None:
    assert lines_of(progress(tmp_path)) == [
        f"{STUDY}: 0 of 7 runs done, 0 running, 0 stopped, 0 failed, 7 waiting; 0% of the work."
    ]


def test_the_words_name_what_runs_and_what_failed(results: Path) -> None:
    """Two runs of equal work took 90 s each; 4 2/3 of 7 are left, one at a time."""
    first, *rest = lines_of(progress(results))
    assert first == (
        f"{STUDY}: 2 of 7 runs done, 1 running, 1 stopped, 1 failed, 2 waiting; 33% of the work, about 7 minutes left, "
        "1 at a time."
    )
    assert rest[0].startswith(f"  running: {KEYS[2]} at step 20 of 60, 3")
    assert rest[1:] == [
        f"  stopped, and resumed by snakemake: {KEYS[3]}",
        "  failed: The loss of the fifth is nan at step 7.",
    ]


def test_runs_whose_job_was_ended_for_good_have_failed_and_share_a_line(results: Path) -> None:
    ended = dict.fromkeys((KEYS[0], KEYS[2], KEYS[3], KEYS[5]), "small-1: job 7 ended OUT_OF_MEMORY")
    found = progress_of(STUDY, RUNS, find_records(results), ended)
    assert (found.done, len(found.running), found.stopped, found.waiting) == (2, 1, (), 1)
    assert list(found.failed) == [KEYS[3], KEYS[4], KEYS[5]]
    assert lines_of(found)[2:] == [
        "  failed: small-1: job 7 ended OUT_OF_MEMORY",
        "  failed: The loss of the fifth is nan at step 7.",
    ]


def test_a_damaged_record_is_named(results: Path) -> None:
    (results / "runs" / KEYS[0] / "summary.json").write_text("{")
    with pytest.raises(UserError, match=r"summary\.json is not whole JSON"):
        progress(results)


def test_records_are_found_by_key_and_folders_of_studies_are_none(tmp_path: Path) -> None:
    """As records lay before they belonged to a pool."""
    finished, live, both = (make_run(seed) for seed in range(3))
    write_finished(tmp_path, finished)
    write_live(tmp_path, live)
    write_live(tmp_path, both, "KILLED")
    write_finished(tmp_path, both)
    ask(tmp_path, STUDY, finished)  # a file beside the folders
    for place in ("runs", "checkpoints"):
        write_finished(tmp_path, make_run(9), place=f"{place}/{STUDY}")
    assert find_records(tmp_path) == {
        run.key: tmp_path / place / run.key
        for run, place in sorted(
            [(finished, "runs"), (live, "checkpoints"), (both, "runs")], key=lambda one: one[0].key
        )
    }
    assert find_records(tmp_path / "nowhere") == {}
