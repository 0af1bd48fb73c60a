"""Snakemake's executor for Slurm, with jobs that people can read, and attempts that count when they should.

The plugin submits and cancels. Here it is told what its jobs are called, which of an earlier workflow's jobs it takes
over, when it asks for their states, and what a failed attempt means.
"""

from __future__ import annotations

import asyncio
import csv
import logging
import math
import subprocess
import threading
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from snakemake_executor_plugin_slurm import Executor
from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo
from snakemake_interface_executor_plugins.registry import ExecutorPluginRegistry

from shapelaw.cluster import states
from shapelaw.cluster.attempts import Attempts, Name, in_turn, together
from shapelaw.cluster.names import Orphan, find_orphan, job_name, mark_of, mark_of_tasks
from shapelaw.cluster.refusals import refusal_of
from shapelaw.storage.pool import snakemake_reason

_RESTARTS = "Trying to restart job"  # Snakemake's line, which ours says already
_REFUSED_ARRAY = "SLURM sbatch failed for array job submission"  # the plugin's
_EFFICIENCY = "JobID,JobName,State,Elapsed,Timelimit,NCPUS,TotalCPU,MaxRSS,ReqMem,AllocTRES"
_JOBS_A_CALL = 1000
_QUEUE_SECONDS = 30.0  # for which a look at the queue holds, while jobs are submitted
# What is used here that Snakemake and its plugin don't document, with what is lost where another release lacks it.
_INNER = {
    "_resources": "a group of jobs asks for what its jobs would use side by side",
    "_attempt": "an attempt that advanced its run counts like any other, and what can't succeed is tried again",
    "_failed_nodes": "later jobs may be sent to a node that failed",
}


def use_for_slurm(attempts: Attempts) -> None:
    """Let `--executor slurm` of this process be our executor; where the plugin is missing, do nothing."""
    plugin = ExecutorPluginRegistry().plugins.get("slurm")
    if plugin is not None:
        plugin.executor = type("ShapelawExecutor", (SlurmExecutor,), {"attempts": attempts})


class SlurmExecutor(Executor):  # type: ignore[misc] # the plugin has no types
    """The plugin's executor, where a job has a name, and an attempt that advanced its run is free.

    Attributes:
        attempts: what the attempts at each job achieved.
    """

    attempts: ClassVar[Attempts]

    def __init__(self, workflow: Any, logger: Any) -> None:
        # before the plugin starts its thread, which uses them
        self._numbers: set[str] = set()  # of all jobs that this workflow submitted or took over
        self._since: dict[str, tuple[str, float]] = {}  # the state of a job, and when it was first seen
        self._queue: tuple[float, dict[str, states.Job]] = (-math.inf, {})  # as it was, and when
        self._accounts: dict[str, str] = {}
        self._later: dict[Any, str] = {}  # the orphan that a job begins after
        self._tried: set[Any] = set()  # jobs that were submitted once
        self._local = threading.local()  # the jobs of the array that this thread submits
        self._lock = threading.Lock()
        self._silent = False  # Slurm doesn't answer
        self._full = ""  # why Slurm takes no more jobs now
        self._held: list[Any] = []  # jobs that it did not take
        self._asking: set[Any] = set()  # of those, the ones that are submitted again
        self._said_refusals: set[str] = set()
        self._said_lost: set[str] = set()  # of _INNER
        self.attempts.watched = True
        logging.getLogger(logger.name).addFilter(_without_restarts)
        logging.getLogger(logger.name).addFilter(self._hear_refusal)
        super().__init__(workflow, logger)

    def _has(self, owner: Any, name: str) -> bool:
        """Whether an object has an attribute of `_INNER`; where it lacks it, what is lost is said once."""
        has = hasattr(owner, name)
        if not has and name not in self._said_lost:
            self._said_lost.add(name)
            self.logger.warning(
                f"This release of Snakemake or of its Slurm plugin has no {name}, so {_INNER[name]}. Nothing else is "
                "lost; envs/requirements.lock names the releases that were tried."
            )
        return has

    # --- submission ---

    def get_account_arg(self, job: Any) -> Iterator[str]:
        """The account, and behind it the job's name and comment: of an option given twice sbatch takes the last."""
        yield f"{self._account(job)} {self._name_options(job)}"

    def _account(self, job: Any) -> str:
        """The account that was asked for; without one, Slurm takes the user's default."""
        asked = str(job.resources.get("slurm_account") or "")
        if asked and asked not in self._accounts:
            self._accounts[asked] = next(super().get_account_arg(job))
        return self._accounts.get(asked, "")

    def _name_options(self, job: Any) -> str:
        name, mark = _name(job), _mark(job)
        if tasks := getattr(self._local, "array", ()):
            name, mark = job_name(job.name, ()), mark_of_tasks(map(_mark, tasks))
        options = f"--job-name {name} --comment {mark}"
        return f"{options} --dependency=afterany:{self._later[job]}" if job in self._later else options

    def run_job(self, job: Any) -> None:
        """Submit a job, or take over an earlier workflow's job that does the same."""
        self._begin(job)
        orphan = self._orphan(job)
        if orphan is not None and orphan.same:
            self._take_over(job, orphan)
            return
        if orphan is not None and not job.is_group():  # groups of a rule have one name
            self._later[job] = orphan.number
            self.logger.info(f"{_name(job)} begins after job {orphan.number} of an earlier workflow.")
        with self._lock:
            if self._full and job not in self._asking:
                self._held.append(job)
                return
        super().run_job(job)

    def run_array_jobs(self, jobs: Sequence[Any]) -> None:
        """Submit jobs as arrays, but for those that an earlier workflow's jobs do; tasks have the array's name."""
        left = []
        for job in jobs:
            self._begin(job)
            orphan = self._orphan(job)
            if orphan is not None and orphan.same:
                self._take_over(job, orphan)
            else:
                left.append(job)
        for start in range(0, len(left), self.max_array_size):
            self._local.array = left[start : start + self.max_array_size]
            try:
                super().run_array_jobs(self._local.array)
            finally:
                self._local.array, self._local.refused = (), ""

    def _begin(self, job: Any) -> None:
        for one in _members(job):
            self.attempts.begin(_wildcards(one))
        if job.is_group() and self._has(job, "_resources"):
            members = [dict(one.resources.items()) for one in job.jobs]
            job._resources = in_turn(dict(job.resources.items()), members)

    def _orphan(self, job: Any) -> Orphan | None:
        with self._lock:
            if time.monotonic() > self._queue[0] + _QUEUE_SECONDS:
                self._queue = time.monotonic(), states.my_jobs() or {}
        folder = str(self.workflow.workdir_init)
        return find_orphan(self._queue[1], _name(job), _mark(job), folder, self._numbers)

    def _take_over(self, job: Any, orphan: Orphan) -> None:
        self.logger.info(f"{_name(job)} is job {orphan.number} of an earlier workflow; taking it over.")
        kind = "group" if job.is_group() else "rule"
        folder = self.slurm_logdir / f"{kind}_{job.name}"
        if "_" not in orphan.number:  # logs of an array's tasks lie side by side
            folder /= "_".join(_wildcards(job))
        log = folder / f"{orphan.number}.log"
        info = SubmittedJobInfo(job, external_jobid=orphan.number, aux={"slurm_logfile": log})
        self.report_job_submission(info)

    def report_job_error(self, job_info: SubmittedJobInfo, msg: str | None = None, **kwargs: Any) -> None:
        """Keep a job that Slurm did not take: it is submitted again where that may help, and has not failed.

        Of jobs that it took, `_report_failure` tells.
        """
        job: Any = job_info.job
        refusal = refusal_of(getattr(self._local, "refused", "") or msg or "")
        if not refusal.passes:
            self.logger.error(f"{_name(job)}: Slurm does not take it ({refusal.reason}).")
            self._tell(job, f"Slurm did not take it ({refusal.reason}); it has not run.")
            self._count(job, job.restart_times + 1)  # another attempt would be refused likewise
            self.workflow.scheduler.error_callback(job)
            return
        with self._lock:
            self._full = refusal.reason
            self._asking.discard(job)
            self._held.append(job)
            is_new = refusal.reason not in self._said_refusals
            self._said_refusals.add(refusal.reason)
        if is_new:
            self.logger.warning(
                f"Slurm takes no more jobs now ({refusal.reason}); the others wait here and are submitted as jobs end. "
                "They have not failed; this workflow can also be stopped, and the same command goes on later."
            )

    def _hear_refusal(self, record: logging.LogRecord) -> bool:
        """Keep what the plugin says of a refused array, whose jobs it only refers to that; its call is long."""
        is_refusal = record.getMessage().startswith(_REFUSED_ARRAY)
        if is_refusal:
            self._local.refused = record.getMessage()
        return not is_refusal

    async def _submit_held(self, ended: int) -> None:
        """Submit jobs again that Slurm did not take: as many as have ended, else one."""
        with self._lock:
            room = max(1, ended) if self._full else len(self._held)
            again, self._held = self._held[:room], self._held[room:]
            self._asking.update(again)
        for job in again:
            await asyncio.to_thread(self.run_job, job)

    def _tell(self, job: Any, reason: str) -> None:
        for one in _members(job):
            self.attempts.told[one.name, *_wildcards(one)] = reason

    def report_job_submission(self, job_info: SubmittedJobInfo, register_job: bool = True) -> None:
        """Note the number of a submitted job."""
        with self._lock:
            if job_info.job in self._asking:
                self._asking.remove(job_info.job)
                self._full = ""
        self._numbers.add(str(job_info.external_jobid))
        super().report_job_submission(job_info, register_job)

    # --- states ---

    async def check_active_jobs(self, active_jobs: list[SubmittedJobInfo]) -> AsyncIterator[SubmittedJobInfo]:
        """Report the jobs that have ended, and yield the others."""
        least = self.workflow.executor_settings.init_seconds_before_status_checks
        self.next_seconds_between_status_checks = states.pause(len(active_jobs), least)
        found = None
        if active_jobs:
            async with self.status_rate_limiter:
                numbers = [str(info.external_jobid) for info in active_jobs]
                found = await asyncio.to_thread(states.states_of, numbers)
            self._say_silence(found is None)
        ended = len(active_jobs)
        for info in active_jobs:
            if found is None or not self._has_ended(info, found[str(info.external_jobid)]):
                ended -= 1
                yield info
        if self._held:
            await self._submit_held(ended)

    def _say_silence(self, silent: bool) -> None:
        if silent != self._silent:
            self.logger.warning(
                "squeue doesn't answer; waiting for it." if silent else "squeue answers again."
            )
        self._silent = silent

    def _has_ended(self, info: SubmittedJobInfo, state: str) -> bool:
        """Report a job that has ended; False where it goes on."""
        number, now = str(info.external_jobid), time.monotonic()
        before, since = self._since.get(number, ("", now))
        if before != state:
            since = now
            if state == "NODE_FAIL" and self._has(self, "_failed_nodes"):
                self._failed_nodes.update(states.nodes_of(number))  # which later jobs avoid
        self._since[number] = state, since
        settings = self.workflow.executor_settings
        ending = states.ending(state, bool(settings.requeue), now - since)
        if ending == "done":
            if info.aux and not settings.keep_successful_logs:
                Path(info.aux["slurm_logfile"]).unlink(missing_ok=True)
            self.report_job_success(info)
        elif ending == "failed":
            self._report_failure(info, state)
        return ending != "active"

    def _report_failure(self, info: SubmittedJobInfo, state: str) -> None:
        """Say in a line what became of an attempt, and let Snakemake try again where that may help."""
        job: Any = info.job
        said = _said((info.aux or {}).get("slurm_logfile"))
        state = states.reason(state, said)
        known = snakemake_reason(said) if state == "FAILED" else f"Slurm ended it: {state}."
        self._tell(job, known)
        ended = together([self.attempts.end(_wildcards(one), state) for one in _members(job)])
        number, last = job.attempt, job.restart_times + 1
        again = number < last and not ended.for_good
        then = f"attempt {number} of {last}"
        if ended.for_good:
            then = "another attempt would end the same"
        elif ended.advanced and last > 1:
            then, again = "it advanced, so it doesn't count", True
        self._count(job, last if not again else number - 1 if ended.advanced else number)
        more = " with more memory" if state == states.OUT_OF_MEMORY else ""
        then += f"; trying again{more}" if again else ""
        at = f" at step {ended.step[0]} of {ended.step[1]}" if ended.step else ""
        then += f" ({known})" if state == "FAILED" and known else ""
        log = "" if again or not job.log else f" Its log: {job.log[0]}"
        self.logger.error(f"{_name(job)}: job {info.external_jobid} ended {state}{at}; {then}.{log}")
        self.workflow.scheduler.error_callback(job)

    def _count(self, job: Any, attempts: int) -> None:
        """Let so many attempts at a job count: Snakemake tries again while some are left, and adds one.

        Not by `attempt`, which would make it free what the next attempt asks for, in place of what this one took.
        """
        if self._has(job, "_attempt"):
            job._attempt = attempts

    def printjob(self, job: Any) -> None:
        """Tell what a job is at its first attempt."""
        if job not in self._tried:
            self._tried.add(job)
            super().printjob(job)

    # --- the end ---

    def shutdown(self) -> None:
        """Shut down, and write what the jobs asked for and used."""
        settings = self.workflow.executor_settings
        wanted, settings.efficiency_report = settings.efficiency_report, False  # the plugin's asks by name
        super().shutdown()
        if wanted and self._numbers:
            folder = Path(settings.efficiency_report_path or ".")
            _write_efficiency(sorted(self._numbers), folder / f"efficiency_report_{self.run_uuid}.csv")


def _said(log: str | Path | None) -> str:
    try:
        return Path(log).read_text(encoding="utf-8", errors="replace") if log else ""
    except OSError:
        return ""


def _without_restarts(record: logging.LogRecord) -> bool:
    return not record.getMessage().startswith(_RESTARTS)


def _wildcards(job: Any) -> Name:
    return () if job.is_group() else tuple(map(str, job.wildcards or ()))


def _members(job: Any) -> list[Any]:
    """The jobs of a group, or the job itself."""
    return list(job.jobs) if job.is_group() else [job]


def _name(job: Any) -> str:
    return job_name(job.name, _wildcards(job))


def _mark(job: Any) -> str:
    """The mark of what a job does: its parameters, and its inputs as they are now."""
    return mark_of(
        sorted(
            f"{one.name} {list(one.output)} {dict(one.params.items())} {[_written(path) for path in one.input]}"
            for one in _members(job)
        )
    )


def _written(path: str) -> tuple[str, int]:
    try:
        return str(path), Path(path).stat().st_mtime_ns
    except FileNotFoundError:  # made by another job of its group
        return str(path), 0


def _write_efficiency(numbers: Sequence[str], path: Path) -> None:
    """What accounting knows of jobs and their steps, as a table; no file where there is no accounting."""
    rows: list[list[str]] = []
    for i in range(0, len(numbers), _JOBS_A_CALL):
        command = ["sacct", "-n", "-P", "-o", _EFFICIENCY, "-j", ",".join(numbers[i : i + _JOBS_A_CALL])]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError):
            return
        rows += [line.split("|") for line in done.stdout.splitlines()]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([_EFFICIENCY.split(","), *rows])
