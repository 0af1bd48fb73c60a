"""Our executor on Slurm: what becomes of a failed attempt, of jobs that are refused, and of a killed workflow's jobs.

Without a Slurm; tests/slurm has the whole.
"""

import asyncio
import logging
import math
import os
import time
from collections import deque
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from small import listed
from snakemake_executor_plugin_slurm import Executor

from shapelaw.jobs import slurm, snakemake_door
from shapelaw.jobs.executor import SlurmExecutor, reason, refusal_of
from shapelaw.jobs.resources import Attempt, Attempts
from shapelaw.jobs.snakemake_door import LOST

NAME = "train_large.k-s0"


class Told(Attempts):
    """Attempts that ended as the test says."""

    def __init__(self, **ended: Any) -> None:
        super().__init__(lambda name: [], watched=True)
        self.ended = Attempt(**{"advanced": False, **ended})

    def end(self, name: tuple[str, ...], reason: str) -> Attempt:
        return self.ended


class Job:
    """As much of Snakemake's as the executor looks at."""

    def __init__(self, attempt: int = 1, retries: int = 5) -> None:
        self.name, self.wildcards, self.log = "train_large", ("k-s0",), ["results/k.log"]
        self.restart_times, self._attempt = retries, attempt
        self.input: list[str] = []
        self.output, self.params, self.resources = ["summary.json"], {"spec": "{}"}, {"slurm_account": ""}

    @property
    def attempt(self) -> int:
        return self._attempt

    def is_group(self) -> bool:
        return False


def make_executor(attempts: Attempts) -> tuple[Any, list[Any]]:
    """An executor that was not started, and the list of the jobs that it reports as failed."""
    failed: list[Any] = []
    ours = type("Ours", (SlurmExecutor, Executor), {"attempts": attempts})
    made = ours.__new__(ours)
    made.workflow = SimpleNamespace(
        scheduler=SimpleNamespace(error_callback=failed.append),
        workdir_init="/work",
        executor_settings=SimpleNamespace(
            init_seconds_before_status_checks=1, keep_successful_logs=True, logdir=Path("results/logs/slurm")
        ),
    )
    made.logger = logging.getLogger("executor")
    made.status_rate_limiter, made._silent = nullcontext(), False
    made._accounts, made._own, made._counted = {}, {}, {}
    made._mine, made._states, made._queue = set(), {}, (-math.inf, {})
    made._held, made._is_full, made._reasons = deque(), False, set()
    return made, failed


def still_active(made: Any, jobs: list[Any]) -> list[Any]:
    """A look at Slurm's queue, as the plugin takes it."""

    async def look() -> list[Any]:
        return [info async for info in made.check_active_jobs(jobs)]

    return asyncio.run(look())


def submitted(job: Any, number: str) -> Any:
    return SimpleNamespace(job=job, external_jobid=number, aux={})


@pytest.mark.parametrize(
    ("ended", "counted", "retries", "state", "left", "said"),
    [
        ({}, 1, 5, "FAILED", True, "attempt 2 of 6; trying again."),
        ({}, 5, 5, "FAILED", False, "attempt 6 of 6. Its log: "),
        (
            {"advanced": True, "at": "step 40 of 90"},
            5,
            5,
            "CANCELLED",
            True,
            "at step 40 of 90; it advanced, so it doesn't",
        ),
        ({"advanced": True}, 0, 0, "CANCELLED", False, "attempt 1 of 1."),  # --retries 0 means none
        ({}, 0, 5, "OUT_OF_MEMORY", True, "attempt 1 of 6; trying again with more memory."),
        ({}, 0, 5, "TIMEOUT", True, "attempt 1 of 6; trying again with more time."),
    ],
)
def test_a_failed_attempt_is_a_line_and_counts_when_it_got_nowhere(
    ended: dict[str, Any],
    counted: int,
    retries: int,
    state: str,
    left: bool,
    said: str,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
) -> None:
    made, failed = make_executor(Told(**ended))
    job = Job(1 + counted, retries)
    job.log = [str(tmp_path / "k.log")]
    made._counted[job] = counted
    made._report_failure(submitted(job, "45"), state)
    assert failed == [job]
    (line,) = caplog.messages
    assert line.startswith(f"{NAME}: job 45 ended {state}")
    assert said in line
    noted = Path(job.log[0]).read_text().strip().removeprefix("== ")
    assert noted.startswith("job 45 ended ")
    assert noted in line
    assert (job.restart_times > job.attempt - 1) == left  # Snakemake's condition for another attempt


def test_snakemakes_own_reason_is_read_in_the_log_of_the_job_on_its_node(tmp_path: Path) -> None:
    """Clocks that differ: the log of the training tells of no failure."""
    made, _ = make_executor(Told())
    skew = "Output a.json has older modification time (1) than input b (2). This could indicate a clock skew problem"
    info = submitted(Job(), "45")
    info.job.log, info.aux = [], {"slurm_logfile": tmp_path / "45.log"}
    info.aux["slurm_logfile"].write_text(f"Building DAG of jobs...\nWorkflowError:\n{skew}\n[Thu Nov 26]\n")
    made._report_failure(info, "FAILED")
    assert made.attempts.told == {("train_large", "k-s0"): skew}


def test_resources_that_were_fixed_grow_by_an_expression_at_each_attempt_also_at_free_ones(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """--set-resources replaces the rule's function; Snakemake evaluates `attempt`, which ends with the retries."""
    made, _ = make_executor(Told(advanced=True))
    made._own = {"train_large": {"runtime": "2880", "mem_mb": "'9000*attempt'"}}
    job, seen = Job(retries=2), []
    for _ in range(5):
        made._report_failure(submitted(job, "45"), "TIMEOUT")
        job._attempt += 1  # as Snakemake does
        seen.append(job.attempt)
    assert seen == [2, 3, 3, 3, 3]
    assert caplog.messages[0].endswith(
        "it advanced, so it doesn't count; trying again with the same 2,880 minutes, which --set-resources fixed; "
        "train_large:runtime='2880*attempt' asks for more each time."
    )
    made._report_failure(submitted(job, "46"), "OUT_OF_MEMORY")
    assert caplog.messages[-1].endswith("trying again with more memory.")


def test_a_job_that_slurm_puts_back_into_its_queue_is_a_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Once, with the cause that accounting knows; it has not failed, and waiting for the first time is no news."""
    made, failed = make_executor(Told())
    monkeypatch.setattr(slurm, "requeue_of", lambda number: "NODE_FAIL on n3" if number == "45" else "")
    for number in ("45", "46"):
        for state in ("PENDING", "RUNNING", "PENDING", "PENDING", "RUNNING"):
            assert not made._has_ended(submitted(Job(), number), state)
    assert failed == []
    assert caplog.messages == [
        f"{NAME}: job 45 ended NODE_FAIL on n3; Slurm put it back into the queue.",
        f"{NAME}: job 46 was stopped; Slurm put it back into the queue.",
    ]


class NewerJob(Job):
    """A job of a Snakemake that counts attempts elsewhere."""

    attempt = 1


@pytest.mark.parametrize("lacks", ["_attempt", "restart_times"])
def test_what_a_newer_plugin_lacks_is_told_once_and_jobs_go_on(
    lacks: str, capsys: pytest.CaptureFixture[str]
) -> None:
    snakemake_door._miss.cache_clear()
    made, failed = make_executor(Told(advanced=True))
    job = NewerJob()
    delattr(job, lacks)
    for number in ("45", "46"):
        assert made._has_ended(submitted(job, number), "NODE_FAIL")
    assert failed == [job, job]
    said = f"This release of Snakemake or of its Slurm plugin has no {lacks}, so {LOST[lacks]}. "
    assert capsys.readouterr().err.startswith(said)
    assert lacks not in vars(job)


def test_an_account_is_checked_once_and_none_is_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    made, _ = make_executor(Told())
    checked: list[Any] = []
    monkeypatch.setattr(
        Executor, "get_account_arg", lambda self, job: checked.append(job) or iter([" -A lab"])
    )
    job = Job()
    assert list(made.get_account_arg(job)) == [""]
    job.resources["slurm_account"] = "lab"
    assert list(made.get_account_arg(job)) == list(made.get_account_arg(job)) == [" -A lab"]
    assert len(checked) == 1


def test_a_training_job_of_an_earlier_workflow_is_taken_over_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the log that the plugin gave it. A look at the queue holds while jobs are submitted."""
    training = Attempts(lambda name: [tmp_path] if name == ("k-s0",) else [])
    made, _ = make_executor(training)
    job, store, looks = Job(), tmp_path / "train.bin", []
    store.touch()
    os.utime(store, (1, 1))
    job.input = [str(store), str(tmp_path / "not there")]

    def my_jobs() -> dict[str, slurm.Job]:
        looks.append(1)
        comment = slurm.comment_of("train_large", ["k-s0"])
        return {"44": slurm.Job("44", "RUNNING", "/work", "2026-11-23T10:00:00", comment)}

    taken: list[Any] = []
    monkeypatch.setattr(slurm, "my_jobs", my_jobs)
    monkeypatch.setattr(made, "report_job_submission", taken.append)
    made.run_job(job)
    (info,) = taken
    assert info.external_jobid == made._orphan(job) == "44"
    assert info.aux["slurm_logfile"] == Path("/work/results/logs/slurm/rule_train_large/k-s0/44.log")
    assert len(looks) == 1
    os.utime(store)  # made anew since it began
    assert made._orphan(job) is None
    os.utime(store, (1, 1))
    made._queue = time.monotonic() - 100, {}
    made._mine.add("44")  # taken over: its next attempt is a job of its own
    assert made._orphan(job) is None
    assert len(looks) == 2
    made._mine.clear()
    made.attempts.folders = lambda name: []  # a job that doesn't train: its name says not all of what it does
    assert made._orphan(job) is None


def test_a_slurm_that_does_not_answer_loses_no_job(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """However often it is asked; the plugin by itself drops all jobs after five questions."""
    made, failed = make_executor(Told())
    done: list[Any] = []
    monkeypatch.setattr(made, "report_job_success", done.append)
    jobs = [submitted(Job(), number) for number in ("45", "46")]
    monkeypatch.setattr(slurm, "states_of", lambda numbers: None)
    for _ in range(10):
        assert still_active(made, jobs) == jobs
    monkeypatch.setattr(slurm, "states_of", lambda numbers: {"45": "COMPLETED", "46": "RUNNING"})
    assert still_active(made, jobs) == jobs[1:]
    assert (done, failed) == (jobs[:1], [])
    assert caplog.messages == ["squeue doesn't answer; waiting for it.", "squeue answers again."]


def test_jobs_that_slurm_does_not_take_wait_and_are_submitted_as_others_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    made, failed = make_executor(Attempts(lambda name: []))
    tried: list[Any] = []
    limit = "sbatch: error: Batch job submission failed: QOSMaxSubmitJobPerUserLimit"

    def submit(self: Any, job: Any) -> None:
        tried.append(job)
        if len(taken) < room:
            taken.append(job)
            made._is_full = False
        else:
            made.report_job_error(submitted(job, ""), limit)

    def looked() -> int:
        """How many are tried at a look at the queue."""
        tried.clear()
        still_active(made, [])
        return len(tried)

    monkeypatch.setattr(Executor, "run_job", submit)
    jobs, taken, room = [Job() for _ in range(6)], [], 2
    for job in jobs:
        made.run_job(job)
    assert tried == jobs[:3]  # the others are not tried in vain
    assert looked() == 1
    room = 4
    assert looked() == 3
    room = 6
    assert looked() == 2
    assert set(taken) == set(jobs)
    assert failed == []
    assert len(caplog.messages) == 1


@pytest.mark.parametrize(("ended", "expected"), listed("jobs/slurm.yaml", "memory"))
def test_memory_is_told_from_other_failures_by_slurms_own_line(ended: dict[str, str], expected: str) -> None:
    ((state, log),) = ended.items()
    assert reason(state, f"Building DAG of jobs...\n{log}\n") == expected
    assert reason(state, "") == state


@pytest.mark.parametrize(("said", "passes"), listed("jobs/slurm.yaml", "refusals"))
def test_a_limit_on_jobs_and_a_busy_controller_pass_and_a_wrong_job_does_not(
    said: list[str], passes: bool
) -> None:
    lines = "\n".join(f"sbatch: error: {line}" for line in said)
    message = f"SLURM sbatch failed. The error message was '{lines}'.\n    sbatch call:\n        sbatch --submit x\n"
    expected = "; ".join(line.removeprefix("Batch job submission failed: ") for line in said)
    assert refusal_of(message) == (expected, passes)
