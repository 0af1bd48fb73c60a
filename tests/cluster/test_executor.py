"""What becomes of a failed attempt, without a Slurm (tests/slurm has the whole)."""

import logging
import math
import os
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from shapelaw.cluster import executor, states
from shapelaw.cluster.attempts import Attempt, Attempts
from shapelaw.cluster.executor import SlurmExecutor
from shapelaw.cluster.names import Orphan, mark_of_tasks

NAME = "train_large.k-s0"


class Told(Attempts):
    """Attempts that ended as the test says."""

    def __init__(self, **ended: Any) -> None:
        super().__init__(lambda name: [], watched=True)
        self.ended = Attempt(**{"advanced": False, "for_good": False, "step": None, **ended})

    def end(self, name: tuple[str, ...], reason: str) -> Attempt:
        return self.ended


class Job:
    """As much of Snakemake's as the executor looks at."""

    def __init__(self, attempt: int, retries: int) -> None:
        self.name, self.wildcards, self.log = "train_large", ("k-s0",), ["results/k.log"]
        self.restart_times, self._attempt = retries, attempt
        self.input: list[str] = []
        self.output, self.params, self.resources = ["summary.json"], {"spec": "{}"}, {"slurm_account": ""}

    @property
    def attempt(self) -> int:
        return self._attempt

    def is_group(self) -> bool:
        return False


def make_executor(attempts: Attempts, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, list[Any]]:
    """An executor that was not started, and the list of the jobs that it reports as failed."""
    failed: list[Any] = []
    monkeypatch.setattr(SlurmExecutor, "attempts", attempts, raising=False)
    made = SlurmExecutor.__new__(SlurmExecutor)
    made.workflow = SimpleNamespace(
        scheduler=SimpleNamespace(error_callback=failed.append), workdir_init="/work"
    )
    made.logger = logging.getLogger("executor")
    made._later, made._accounts, made._local = {}, {}, SimpleNamespace()
    made._said_lost = set()
    return made, failed


@pytest.mark.parametrize(
    ("ended", "attempt", "retries", "state", "left", "said"),
    [
        ({}, 2, 5, "FAILED", True, "attempt 2 of 6; trying again."),
        ({}, 6, 5, "FAILED", False, "attempt 6 of 6. Its log: results/k.log"),
        (
            {"advanced": True, "step": (40, 90)},
            6,
            5,
            "CANCELLED",
            True,
            "at step 40 of 90; it advanced, so it doesn't",
        ),
        ({"advanced": True}, 1, 0, "CANCELLED", False, "attempt 1 of 1."),  # --retries 0 means none
        ({"advanced": True, "for_good": True}, 1, 5, "FAILED", False, "another attempt would end the same."),
        ({}, 1, 5, "OUT_OF_MEMORY", True, "attempt 1 of 6; trying again with more memory."),
    ],
)
def test_a_failed_attempt_is_a_line_and_counts_when_it_got_nowhere(
    ended: dict[str, Any],
    attempt: int,
    retries: int,
    state: str,
    left: bool,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    made, failed = make_executor(Told(**ended), monkeypatch)
    job = Job(attempt, retries)
    made._report_failure(SimpleNamespace(job=job, external_jobid="45", aux={}), state)
    assert failed == [job]
    (line,) = caplog.messages
    assert line.startswith(f"{NAME}: job 45 ended {state}")
    assert said in line
    assert (job.restart_times > job.attempt - 1) == left  # Snakemake's condition for another attempt
    if left:
        advanced = bool(ended.get("advanced"))
        assert job.attempt + 1 == (attempt if advanced else attempt + 1)  # as Snakemake counts


class NewerJob(Job):
    """A job of a Snakemake that counts attempts elsewhere."""

    attempt = 1


def test_what_a_newer_release_lacks_is_told_once_and_jobs_go_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    made, failed = make_executor(Told(advanced=True), monkeypatch)
    made.workflow.executor_settings = SimpleNamespace(requeue=False)
    made._since = {}
    job = NewerJob(1, 5)
    del job._attempt
    for number in ("45", "46"):
        assert made._has_ended(SimpleNamespace(job=job, external_jobid=number, aux={}), "NODE_FAIL")
    assert failed == [job, job]
    monkeypatch.setattr(NewerJob, "is_group", lambda self: True)
    monkeypatch.setattr(NewerJob, "jobs", [Job(1, 5)], raising=False)
    made._begin(job)
    lost = [message for message in caplog.messages if message.startswith("This release of Snakemake")]
    assert [message.split(" has no ")[1].split(",")[0] for message in lost] == list(executor._INNER)[::-1]
    assert not set(executor._INNER) & set(vars(job))


def test_a_job_is_named_and_waits_for_an_earlier_one_that_does_something_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made, _ = make_executor(Told(), monkeypatch)
    job = Job(1, 5)
    (options,) = made.get_account_arg(job)
    assert options.startswith(f" --job-name {NAME} --comment shapelaw:")
    assert "--dependency" not in options
    made._later[job] = "44"
    assert next(made.get_account_arg(job)).endswith(" --dependency=afterany:44")
    made._local.array = [job]
    (options,) = made.get_account_arg(Job(1, 5))
    assert options == f" --job-name train_large --comment {mark_of_tasks([executor._mark(job)])}"


def test_an_array_has_the_jobs_that_no_earlier_workflow_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """At most so many as the limit of an array allows, since its comment has a mark for each."""
    made, _ = make_executor(Told(), monkeypatch)
    made.max_array_size, taken, submitted = 2, [], []
    jobs = [Job(1, 5) for _ in range(4)]
    for place, job in enumerate(jobs):
        job.wildcards = (f"k-s{place}",)
    monkeypatch.setattr(made, "_orphan", lambda job: Orphan("9_1", True) if job is jobs[1] else None)
    monkeypatch.setattr(made, "_take_over", lambda job, orphan: taken.append((job, orphan.number)))
    monkeypatch.setattr(
        executor.Executor, "run_array_jobs", lambda self, some: submitted.append((some, self._local.array))
    )
    made.run_array_jobs(jobs)
    assert taken == [(jobs[1], "9_1")]
    assert submitted == [([jobs[0], jobs[2]],) * 2, ([jobs[3]],) * 2]
    assert made._local.array == ()


def test_snakemakes_line_on_a_restart_is_left_out() -> None:
    def passes(text: str) -> bool:
        return executor._without_restarts(logging.LogRecord("", 20, "", 1, text, None, None))

    assert not passes("Trying to restart job 5.")
    assert passes("Finished jobid: 5")


def test_what_jobs_used_is_a_table_where_there_is_accounting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    executor._write_efficiency(["7"], tmp_path / "logs/none.csv")
    assert not (tmp_path / "logs").exists()
    (tmp_path / "sacct").write_text(
        "#!/bin/sh\necho '7|train|COMPLETED|00:01:00|00:10:00|1|00:50|9K|1G|cpu=1,mem=1G'\n"
    )
    (tmp_path / "sacct").chmod(0o755)
    executor._write_efficiency(["7"], tmp_path / "logs/some.csv")
    header, row = (tmp_path / "logs/some.csv").read_text().splitlines()
    assert header.startswith("JobID,JobName,State,Elapsed")
    assert row == '7,train,COMPLETED,00:01:00,00:10:00,1,00:50,9K,1G,"cpu=1,mem=1G"'


def test_a_job_whose_inputs_were_made_anew_is_another_one(tmp_path: Path) -> None:
    """An earlier workflow's job on other data is not taken over, though its parameters are the same."""
    job, store = Job(1, 5), tmp_path / "train.bin"
    store.touch()
    job.input = [str(store), str(tmp_path / "made by its group")]
    before = executor._mark(job)
    assert executor._mark(job) == before
    os.utime(store, (1, 1))
    assert executor._mark(job) != before


def test_a_look_at_the_queue_holds_while_jobs_are_submitted(monkeypatch: pytest.MonkeyPatch) -> None:
    made, _ = make_executor(Told(), monkeypatch)
    made._numbers, made._lock, made._queue = set(), threading.Lock(), (-math.inf, {})
    job, looks = Job(1, 5), []

    def my_jobs() -> dict[str, states.Job]:
        looks.append(1)
        return {"44": states.Job("44", "RUNNING", "/work", NAME, executor._mark(job))}

    monkeypatch.setattr(states, "my_jobs", my_jobs)
    assert made._orphan(job) == made._orphan(job) == Orphan("44", True)
    assert len(looks) == 1
    made._queue = time.monotonic() - 100, {}
    made._numbers.add("44")  # taken over: its next attempt is a job of its own
    assert made._orphan(job) is None
    assert len(looks) == 2
