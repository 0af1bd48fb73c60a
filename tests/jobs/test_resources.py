"""What an attempt achieved, from the files that it left, and what the next one asks for."""

import json
import os
import time
from pathlib import Path

import pytest

from shapelaw.jobs.resources import Attempts

NAME = ("k-s0",)


@pytest.fixture
def attempts(tmp_path: Path) -> Attempts:
    """Of a job whose checkpoints are in the test's folder."""
    return Attempts(lambda name: [tmp_path], watched=True)


def checkpoint(folder: Path, step: int, age: float = -1.0) -> None:
    path = folder / f"step-{step:010}.pt"
    path.touch()
    os.utime(path, (time.time() - age,) * 2)


def test_an_attempt_advances_by_a_checkpoint_of_its_own(attempts: Attempts, tmp_path: Path) -> None:
    checkpoint(tmp_path, 100, age=60)  # of an earlier attempt
    assert not attempts.end(NAME, "FAILED").advanced, "it was never submitted here"
    attempts.begin(NAME)
    assert not attempts.end(NAME, "FAILED").advanced
    attempts.begin(NAME)
    checkpoint(tmp_path, 200)
    (tmp_path / "live.json").write_text(json.dumps({"step": 250, "steps": 1000}))
    ended = attempts.end(NAME, "CANCELLED")
    assert ended.advanced
    assert ended.step == (200, 1000)


def test_a_pack_advances_by_a_run_that_it_finished(attempts: Attempts, tmp_path: Path) -> None:
    attempts.begin(NAME)
    record = tmp_path / "summary.json"
    record.touch()
    os.utime(record, (time.time() + 1,) * 2)
    assert attempts.end(NAME, "TIMEOUT").advanced


def test_only_memory_asks_for_memory_and_only_the_time_limit_for_time(attempts: Attempts) -> None:
    for state in ("CANCELLED", "FAILED", "NODE_FAIL", "TIMEOUT", "OUT_OF_MEMORY", "TIMEOUT"):
        attempts.end(NAME, state)
    assert attempts.memory(NAME, 7) == 2
    assert attempts.minutes(NAME, 7) == 3
    assert attempts.memory(("other",), 7) == 1


def test_where_reasons_are_not_known_each_attempt_asks_for_more() -> None:
    """Other schedulers, and a job's own Snakemake, which is told the number of its attempt alone."""
    attempts = Attempts(lambda name: [])
    assert (attempts.memory(NAME, 1), attempts.memory(NAME, 3), attempts.minutes(NAME, 3)) == (1, 3, 3)
