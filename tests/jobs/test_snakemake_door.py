"""What is used of Snakemake and not documented: each of it can be away; and what becomes of a failed attempt.

Without a Slurm; tests/slurm has the whole.
"""

import asyncio
import logging
import math
import os
import re
import threading
import time
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from project import Project
from small import SCRIPTS
from snakemake_executor_plugin_slurm import Executor

from shapelaw.jobs import slurm, snakemake_door
from shapelaw.jobs.resources import Attempt, Attempts
from shapelaw.jobs.snakemake_door import LOST, Door, SlurmExecutor

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


def make_executor(attempts: Attempts) -> tuple[Any, list[Any]]:
    """An executor that was not started, and the list of the jobs that it reports as failed."""
    failed: list[Any] = []
    ours = type("Ours", (SlurmExecutor, Executor), {"attempts": attempts})
    made = ours.__new__(ours)
    made.workflow = SimpleNamespace(
        scheduler=SimpleNamespace(error_callback=failed.append), workdir_init="/work"
    )
    made.logger = logging.getLogger("executor")
    made._accounts, made._local = {}, SimpleNamespace()
    made._names, made._since, made._lock, made._queue = {}, {}, threading.Lock(), (-math.inf, {})
    return made, failed


@pytest.fixture(autouse=True)
def said_once() -> None:
    """What is said once is said once a test."""
    snakemake_door._miss.cache_clear()


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
    caplog: pytest.LogCaptureFixture,
) -> None:
    made, failed = make_executor(Told(**ended))
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
    """A job of a Snakemake that counts attempts, and adds up a group's resources, elsewhere."""

    attempt = 1


@pytest.mark.parametrize("lacks", ["_attempt", "restart_times", "_failed_nodes", "_resources"])
def test_what_a_newer_plugin_lacks_is_told_once_and_jobs_go_on(
    lacks: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made, failed = make_executor(Told(advanced=True))
    made.workflow.executor_settings = SimpleNamespace(requeue=False)
    monkeypatch.setattr(slurm, "nodes_of", lambda number: ["n1"])
    made._failed_nodes = set()
    job = NewerJob(1, 5)
    job._resources = {}  # type: ignore[attr-defined]
    delattr(made if lacks == "_failed_nodes" else job, lacks)
    for number in ("45", "46"):
        assert made._has_ended(SimpleNamespace(job=job, external_jobid=number, aux={}), "NODE_FAIL")
    assert failed == [job, job]
    monkeypatch.setattr(NewerJob, "is_group", lambda self: True)
    monkeypatch.setattr(NewerJob, "jobs", [Job(1, 5)], raising=False)
    made._begin(job)
    said = f"This release of Snakemake or of its Slurm plugin has no {lacks}, so {LOST[lacks]}. "
    assert capsys.readouterr().err.startswith(said)
    assert lacks not in vars(job)
    assert getattr(made, "_failed_nodes", {"n1"}) == {"n1"}


def test_without_the_registry_jobs_are_the_plugins(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from snakemake_interface_executor_plugins import registry

    door, attempts = Door(SimpleNamespace(is_main_process=True)), Attempts(lambda name: [])
    monkeypatch.delattr(registry, "ExecutorPluginRegistry")
    door.use_slurm(attempts)
    assert f"has no plugins, so {LOST['plugins']}" in capsys.readouterr().err
    plugin = SimpleNamespace(executor=Executor)
    found = SimpleNamespace(plugins={"slurm": plugin})
    monkeypatch.setattr(registry, "ExecutorPluginRegistry", lambda: found, raising=False)
    door.use_slurm(attempts)
    assert issubclass(plugin.executor, SlurmExecutor)
    assert plugin.executor.attempts is attempts


# a workflow as this release has it, but for one thing
HIDING = """
class Hiding:
    def __init__(self, of, hidden):
        self.__dict__.update(of=of, hidden=hidden)

    def __getattr__(self, name):
        head, _, rest = self.hidden.partition(".")
        if name == head and not rest:
            raise AttributeError(name)
        found = getattr(self.of, name)
        return Hiding(found, rest) if name == head and found is not None else found


DOOR = Door(Hiding(workflow, {hidden!r}))
"""
OF_WORKFLOW = list(LOST)[: list(LOST).index("plugins")]


@pytest.mark.slow
@pytest.mark.parametrize("hidden", OF_WORKFLOW)
def test_what_a_newer_snakemake_lacks_is_told_once_and_the_workflow_runs(
    hidden: str, tmp_path: Path, with_corpus: Path
) -> None:
    """A dry run, which looks at nearly all of it, and a run; whatever is away, each runs to its end."""
    project = Project(tmp_path, with_corpus)
    snakefile = project.folder / "Snakefile"
    text = snakefile.read_text()
    assert "DOOR = Door(workflow)\n" in text
    snakefile.write_text(text.replace("DOOR = Door(workflow)\n", HIDING.format(hidden=hidden)))
    target = "results/depth_width/keys.txt"
    said = project.snakemake(target, "--jobs", "2", "--max-threads", "2", "--quiet", "rules").stderr
    assert (project.folder / target).is_file()
    told = said + project.snakemake("-n", "plan").stderr
    missing = f"This release of Snakemake or of its Slurm plugin has no {hidden}, so {LOST[hidden]}."
    needed = {
        "executor_settings.qos",
        "scheduler.failed",
        "config_settings.configfiles",
    }  # on Slurm, or of failures
    needed |= {"resource_settings.default_resources", "resource_settings.overwrite_resources"}
    assert said.count(missing) <= 1
    assert hidden in needed or missing in told
    assert "Traceback" not in told


def test_an_attribute_that_is_not_there_yet_is_not_told_as_missing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As the scheduler, before there is one."""
    door = Door(SimpleNamespace(is_main_process=True, scheduler=None, executor_plugin=None))
    assert (door.failed_jobs(), door.executor) == ([], "")
    assert capsys.readouterr().err == ""


def test_a_job_is_told_from_a_start_by_its_command_line_if_need_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["snakemake", "--mode", "remote"])
    assert not Door(SimpleNamespace()).is_main
    monkeypatch.setattr("sys.argv", ["snakemake", "plan"])
    assert Door(SimpleNamespace()).is_main


def test_no_other_module_touches_what_is_not_documented() -> None:
    """The Snakefile and the rules ask the door for everything but what Snakemake's documentation names."""
    documented = {"basedir", "cores"}
    asked = {
        word
        for path in [SCRIPTS.parent / "Snakefile", *sorted((SCRIPTS.parent / "workflow/rules").glob("*.smk"))]
        for word in re.findall(r"\bworkflow\.([a-z_]+)", re.sub(r'["#].*', "", path.read_text()))
    }
    assert asked <= documented
    importing = {
        path.name
        for path in SCRIPTS.rglob("*.py")
        if re.search(r"\b(import|from) snakemake", path.read_text())
    }
    assert importing == {"snakemake_door.py", "command_line.py"}  # the latter starts Snakemake's own command


def test_an_account_is_checked_once_and_none_is_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    made, _ = make_executor(Told())
    checked: list[Any] = []
    monkeypatch.setattr(
        Executor, "get_account_arg", lambda self, job: checked.append(job) or iter([" -A lab"])
    )
    job = Job(1, 5)
    assert list(made.get_account_arg(job)) == [""]
    job.resources["slurm_account"] = "lab"
    assert list(made.get_account_arg(job)) == list(made.get_account_arg(job)) == [" -A lab"]
    assert len(checked) == 1


def test_what_is_said_better_is_left_out_and_the_refusal_of_an_array_is_kept() -> None:
    made, _ = make_executor(Told())

    def passes(text: str) -> bool:
        return bool(made._hear(logging.LogRecord("", 20, "", 1, text, None, None)))

    assert not passes("Trying to restart job 5.")
    assert passes("Finished jobid: 5")
    refused = "SLURM sbatch failed for array job submission (tasks 1-2). The error message was 'x'."
    assert not passes(refused)
    assert made._local.refused == refused


def test_a_training_job_of_an_earlier_workflow_is_taken_over_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look at the queue holds while jobs are submitted."""
    training = Attempts(lambda name: [tmp_path] if name == ("k-s0",) else [])
    made, _ = make_executor(training)
    job, store, looks = Job(1, 5), tmp_path / "train.bin", []
    store.touch()
    os.utime(store, (1, 1))
    job.input = [str(store), str(tmp_path / "not there")]

    def my_jobs() -> dict[str, slurm.Job]:
        looks.append(1)
        comment = slurm.comment_of("train_large", ["k-s0"])
        return {"44": slurm.Job("44", "RUNNING", "/work", "2026-11-23T10:00:00", comment)}

    monkeypatch.setattr(slurm, "my_jobs", my_jobs)
    assert made._orphan(job) == made._orphan(job) == "44"
    assert len(looks) == 1
    os.utime(store)  # made anew since it began
    assert made._orphan(job) is None
    os.utime(store, (1, 1))
    made._queue = time.monotonic() - 100, {}
    made._names["44"] = NAME  # taken over: its next attempt is a job of its own
    assert made._orphan(job) is None
    assert len(looks) == 2
    made._names.clear()
    made.attempts.folders = lambda name: []  # a job that doesn't train: its name says not all of what it does
    assert made._orphan(job) is None


def test_a_slurm_that_does_not_answer_loses_no_job(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """However often it is asked; the plugin by itself drops all jobs after five questions."""
    made, failed = make_executor(Told())
    made._room, made._silent = slurm.WaitingRoom(), False
    made.workflow.executor_settings = SimpleNamespace(
        init_seconds_before_status_checks=1, requeue=True, keep_successful_logs=True
    )
    made.status_rate_limiter = nullcontext()
    done: list[Any] = []
    monkeypatch.setattr(made, "report_job_success", done.append)
    jobs = [SimpleNamespace(job=Job(1, 5), external_jobid=number, aux={}) for number in ("45", "46")]

    async def check(active: list[Any]) -> list[Any]:
        return [info async for info in made.check_active_jobs(active)]

    monkeypatch.setattr(slurm, "states_of", lambda numbers: None)
    for _ in range(10):
        assert asyncio.run(check(jobs)) == jobs
    monkeypatch.setattr(slurm, "states_of", lambda numbers: {"45": "COMPLETED", "46": "RUNNING"})
    assert asyncio.run(check(jobs)) == jobs[1:]
    assert (done, failed) == (jobs[:1], [])
    assert caplog.messages == ["squeue doesn't answer; waiting for it.", "squeue answers again."]


def test_what_is_taken_over_has_the_log_that_the_plugin_gave_it(monkeypatch: pytest.MonkeyPatch) -> None:
    made, _ = make_executor(Told())
    made.workflow.executor_settings = SimpleNamespace(logdir=Path("results/logs/slurm"))
    taken: list[Any] = []
    monkeypatch.setattr(made, "report_job_submission", taken.append)
    made._take_over(Job(1, 5), "44")
    (info,) = taken
    assert info.external_jobid == "44"
    assert info.aux["slurm_logfile"] == Path("/work/results/logs/slurm/rule_train_large/k-s0/44.log")
