"""All that is used of Snakemake and of its Slurm plugin that they don't document; no other module touches it.

`Door` reads it from the workflow for the Snakefile, `SlurmExecutor` from the plugin's executor and its jobs. Each use
has a line in `LOST`: where another release lacks it, the workflow says once what is missing and runs without.
"""

from __future__ import annotations

import asyncio
import logging
import math
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from shapelaw.errors import say
from shapelaw.jobs import slurm
from shapelaw.jobs.resources import Attempts, Name, in_turn, together, verdict, written
from shapelaw.storage.pool import snakemake_reason

LOST = {
    # of the workflow
    "is_main_process": "a job is told from a start by its command line",
    "config_settings.replace_workflow_config": "--replace-workflow-config has no effect",
    "config_settings.configfiles": "it is not told that jobs read the file of --configfile too",
    "resource_settings.cores": "a wrong --cores is told by Snakemake alone",
    "resource_settings.nodes": "a wrong --jobs is told by Snakemake alone, and a limit of Slurm's on jobs by Slurm",
    "resource_settings.max_threads": "this machine's cores bound the threads of jobs elsewhere",
    "resource_settings.default_resources": "Slurm is not asked before the first job for the profile's queue",
    "resource_settings.overwrite_resources": "Slurm is asked before the first job without --set-resources",
    "global_resources": "this machine's cores bound the threads of jobs elsewhere",
    "deployment_settings.deployment_method": "jobs run in this environment, not in the container",
    "output_settings.dryrun": "a dry run gives no warnings",
    "executor_plugin.name": "nothing is asked of Slurm before the first job",
    "executor_settings.qos": "the limits of --slurm-qos are not told",
    "dag.jobs": "the workflow ends without its questions and answers",
    "dag.needrun_jobs": "what jobs would ask for is not checked before the first one",
    "scheduler.failed": "why jobs failed stands in their logs alone",
    # of the plugin's executor, its registry, and jobs
    "plugins": "jobs on Slurm are the plugin's: each attempt counts, and no job of a killed workflow is taken over",
    "_failed_nodes": "later jobs may be sent to a node that failed",
    "_resources": "a group of jobs asks for what its jobs would use side by side",
    "_attempt": "an attempt that advanced its run counts like any other, and what can't succeed is tried again",
    "restart_times": "an attempt that advanced its run counts like any other, and what can't succeed is tried again",
}
_RESTARTS = "Trying to restart job"  # Snakemake's line
_REFUSED_ARRAY = "SLURM sbatch failed for array job submission"  # the plugin's
_QUEUE_SECONDS = 30.0  # for which a look at the queue holds, while jobs are submitted


@cache
def _miss(name: str) -> None:
    """Say, once, what is lost without something that this release lacks."""
    say(
        f"This release of Snakemake or of its Slurm plugin has no {name}, so {LOST[name]}. Nothing else is lost; "
        "envs/requirements.lock names the releases that were tried."
    )


def _has(owner: Any, name: str) -> bool:
    """Whether there is an attribute of `LOST`; where there is none, what is lost is said once."""
    has = hasattr(owner, name)
    if not has:
        _miss(name)
    return has


@dataclass(frozen=True)
class Job:
    """A job of the workflow.

    Attributes:
        rule: the name of its rule.
        wildcards: their values, in the order of the rule.
        outputs: the files that it makes.
        log: its log; None where it has none.
        is_local: it runs on this machine.
    """

    rule: str
    wildcards: Name
    outputs: tuple[str, ...]
    log: Path | None
    is_local: bool


def _seen(job: Any) -> Job:
    log = Path(job.log[0]) if job.log else None
    return Job(job.rule.name, _wildcards(job), tuple(map(str, job.output)), log, job.is_local)


class Door:
    """What the Snakefile asks of its workflow."""

    def __init__(self, workflow: Any) -> None:
        self._workflow = workflow

    def _look(self, path: str, otherwise: Any = None) -> Any:
        """An attribute of `LOST`; `otherwise` where this release lacks it, or where it is None by now."""
        found = self._workflow
        for name in path.split("."):
            if not hasattr(found, name):
                if self.is_main:  # once, not in the log of each job
                    _miss(path)
                return otherwise
            found = getattr(found, name)
            if found is None:
                return otherwise
        return found

    @property
    def is_main(self) -> bool:
        """True for the process that a person started, False for those that Snakemake starts for a job."""
        if hasattr(self._workflow, "is_main_process"):
            return bool(self._workflow.is_main_process)
        if main := not any(word.partition("=")[0] == "--mode" for word in sys.argv):
            _miss("is_main_process")
        return main

    @property
    def replaces_config(self) -> bool:
        """Whether `--replace-workflow-config` was given: the global `config` holds what replaces config.yaml."""
        return bool(self._look("config_settings.replace_workflow_config", False))

    @property
    def config_files(self) -> list[Path]:
        """The files of `--configfile`, whose content the global `config` has."""
        return list(map(Path, self._look("config_settings.configfiles", ())))

    @property
    def cores(self) -> int | None:
        """`--cores`, or what the profile has in its place."""
        return self._look("resource_settings.cores")  # type: ignore[no-any-return]

    @property
    def jobs(self) -> int | None:
        """`--jobs`; None where all jobs run on this machine."""
        return self._look("resource_settings.nodes")  # type: ignore[no-any-return]

    @property
    def is_dry_run(self) -> bool:
        """Whether nothing will run; `onstart` is not called then."""
        return bool(self._look("output_settings.dryrun", False))

    @property
    def in_containers(self) -> bool:
        """Whether `--sdm apptainer` was given."""
        methods = self._look("deployment_settings.deployment_method", ())
        return any(str(getattr(method, "name", method)).upper() == "APPTAINER" for method in methods)

    @property
    def executor(self) -> str:
        """Where jobs go: `slurm`, another plugin's name, or empty for this machine; known once the rules are read."""
        name = str(self._look("executor_plugin.name", ""))
        return "" if name in ("local", "dryrun", "touch") else name

    @property
    def qos(self) -> str:
        """`--slurm-qos`; empty without it."""
        return str(self._look("executor_settings.qos", ""))

    @property
    def default_resources(self) -> dict[str, object]:
        """`--default-resources`, as they were written."""
        return _as_written(self._look("resource_settings.default_resources", {}))

    @property
    def own_resources(self) -> dict[str, dict[str, object]]:
        """`--set-resources` of each rule, as they were written."""
        asked = self._look("resource_settings.overwrite_resources", {})
        return {rule: _as_written(values) for rule, values in asked.items()}

    def rules(self) -> set[str]:
        """The names of all rules whose results the targets need; known once the rules are read."""
        return {job.rule.name for job in self._look("dag.jobs", ())}

    def needed_jobs(self) -> list[Job]:
        """The jobs that are to run; known once the rules are read."""
        return [_seen(job) for job in self._look("dag.needrun_jobs", tuple)()]

    def failed_jobs(self) -> list[Job]:
        """The jobs that failed, those of a group one by one, in their order."""
        failed = sorted(self._look("scheduler.failed", ()), key=lambda job: int(job.jobid))
        return [_seen(one) for job in failed for one in _members(job)]

    def lift_cores(self) -> None:
        """Let this machine's cores bound no job that runs elsewhere and has a bound of its own (`max-threads`).

        profiles/default gives `cores: all`, this machine's, and wins over any other profile.
        """
        if self.jobs is not None and self._look("resource_settings.max_threads") is not None:
            bounds = self._look("global_resources")
            if bounds is not None:
                self._workflow.resource_settings.cores = bounds["_cores"] = sys.maxsize

    def use_slurm(self, attempts: Attempts) -> None:
        """Let `--executor slurm` of the main process be `SlurmExecutor`; without the plugin do nothing."""
        if not self.is_main or "snakemake_executor_plugin_slurm" not in sys.modules:
            return
        # the plugins that this process has loaded; Snakemake offers no option for an executor of one's own
        from snakemake_interface_executor_plugins import registry as place

        registry: Any = getattr(place, "ExecutorPluginRegistry", object)()
        if _has(registry, "plugins") and (plugin := registry.plugins.get("slurm")) is not None:
            bases = (SlurmExecutor, plugin.executor)
            plugin.executor = type("ShapelawExecutor", bases, {"attempts": attempts})


def _as_written(values: Mapping[str, Any]) -> dict[str, object]:
    return {name: getattr(one, "raw", one) for name, one in values.items()}


_Plugins: Any = object  # the plugin's Executor is the base beside it


class SlurmExecutor(_Plugins):  # type: ignore[misc] # the plugin has no types
    """What is ours in the plugin's executor, which submits and cancels; the methods are those that plugins override.

    An attempt that advanced its run is free, jobs of a killed workflow are taken over, jobs that Slurm refuses for the
    moment wait, and a Slurm that doesn't answer is waited for.

    Attributes:
        attempts: what the attempts at each job achieved.
    """

    attempts: ClassVar[Attempts]

    def __init__(self, workflow: Any, logger: Any) -> None:
        # before the plugin starts its thread, which uses them
        self._names: dict[str, str] = {}  # of all jobs that this workflow submitted or took over, by number
        self._since: dict[str, tuple[str, float]] = {}  # the state of a job, and when it was first seen
        self._queue: tuple[float, dict[str, slurm.Job]] = (-math.inf, {})  # as it was, and when
        self._accounts: dict[str, str] = {}
        self._tried: set[Any] = set()  # jobs that were submitted once
        self._local = threading.local()  # what this thread was refused
        self._lock = threading.Lock()  # the plugin submits in two threads and asks for states in a third
        self._silent = False  # Slurm doesn't answer
        self._room = slurm.WaitingRoom()
        self.attempts.watched = True
        logging.getLogger(logger.name).addFilter(self._hear)
        super().__init__(workflow, logger)

    # --- submission ---

    def get_account_arg(self, job: Any) -> Iterator[str]:
        """The account that was asked for, which the plugin checks once; without one, Slurm takes the user's default."""
        asked = str(job.resources.get("slurm_account") or "")
        if asked and asked not in self._accounts:
            self._accounts[asked] = next(super().get_account_arg(job))
        yield self._accounts.get(asked, "")

    def run_job(self, job: Any) -> None:
        """Submit a job, or take over an earlier workflow's job that does the same."""
        self._begin(job)
        if (number := self._orphan(job)) is not None:
            self._take_over(job, number)
            return
        if not self._room.holds_back(job):
            super().run_job(job)

    def run_array_jobs(self, jobs: Sequence[Any]) -> None:
        """Submit jobs as arrays."""
        for job in jobs:
            self._begin(job)
        try:
            super().run_array_jobs(jobs)
        finally:
            self._local.refused = ""

    def _begin(self, job: Any) -> None:
        for one in _members(job):
            self.attempts.begin(_wildcards(one))
        if job.is_group() and _has(job, "_resources"):
            # the plugin asks for what stands there; Snakemake reckons it as if the jobs ran side by side
            members = [dict(one.resources.items()) for one in job.jobs]
            job._resources = in_turn(dict(job.resources.items()), members)

    def _orphan(self, job: Any) -> str | None:
        """The number of an earlier workflow's job that trains the same; None for jobs that don't train.

        A key or a pack's name says to the last option what is trained, so the plugin's comment tells whether it is the
        same job. What began before its data was made anew is another one.
        """
        if job.is_group() or not self.attempts.folders(_wildcards(job)):
            return None
        with self._lock:
            if time.monotonic() > self._queue[0] + _QUEUE_SECONDS:
                self._queue = time.monotonic(), slurm.my_jobs() or {}
        left = slurm.left_over(self._queue[1], str(self.workflow.workdir_init), self._names)
        newest = max(map(written, job.input), default=0.0)
        return slurm.find_orphan(left, slurm.comment_of(job.name, _wildcards(job)), newest)

    def _take_over(self, job: Any, number: str) -> None:
        from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo

        self.logger.info(f"{_name(job)} is job {number} of an earlier workflow; taking it over.")
        # as the plugin names logs: without it, why the job failed would not be read
        logs = Path(self.workflow.workdir_init) / (self.workflow.executor_settings.logdir or "")
        log = logs / f"rule_{job.name}" / "_".join(_wildcards(job)) / f"{number}.log"
        info = SubmittedJobInfo(job, external_jobid=number, aux={"slurm_logfile": log})
        self.report_job_submission(info)

    def report_job_error(self, job_info: Any, msg: str | None = None, **kwargs: Any) -> None:
        """Keep a job that Slurm did not take: it is submitted again where that may help, and has not failed.

        Of jobs that it took, `_report_failure` tells.
        """
        job: Any = job_info.job
        refusal = slurm.refusal_of(getattr(self._local, "refused", "") or msg or "")
        if not refusal.passes:
            self.logger.error(f"{_name(job)}: Slurm does not take it ({refusal.reason}).")
            self._tell(job, f"Slurm did not take it ({refusal.reason}); it has not run.")
            self._count(job, math.inf)  # another attempt would be refused likewise
            super().report_job_error(job_info)
            return
        if self._room.turned_away(job, refusal.reason):
            self.logger.warning(
                f"Slurm takes no more jobs now ({refusal.reason}); the others wait here and are submitted as jobs end. "
                "They have not failed; this workflow can also be stopped, and the same command goes on later."
            )

    def print_job_error(self, job_info: Any, msg: str | None = None, **kwargs: Any) -> None:
        """Nothing: of each failure a line is printed already, in place of the job's whole command."""

    def _hear(self, record: logging.LogRecord) -> bool:
        """Leave out what ours says better: restarts, and a refused array, which is kept for its jobs."""
        said = record.getMessage()
        if is_refusal := said.startswith(_REFUSED_ARRAY):
            self._local.refused = said
        return not is_refusal and not said.startswith(_RESTARTS)

    def _tell(self, job: Any, reason: str) -> None:
        for one in _members(job):
            self.attempts.told[one.name, *_wildcards(one)] = reason

    def report_job_submission(self, job_info: Any, register_job: bool = True) -> None:
        """Note the number of a submitted job."""
        self._room.taken(job_info.job)
        self._names[str(job_info.external_jobid)] = _name(job_info.job)
        super().report_job_submission(job_info, register_job)

    # --- states ---

    async def check_active_jobs(self, active_jobs: list[Any]) -> AsyncIterator[Any]:
        """Report the jobs that have ended, and yield the others: all of them where Slurm doesn't answer.

        The plugin's own gives up after a few questions, and drops all jobs then.
        """
        least = self.workflow.executor_settings.init_seconds_before_status_checks
        self.next_seconds_between_status_checks = slurm.pause(len(active_jobs), least)
        found = None
        if active_jobs:
            async with self.status_rate_limiter:
                numbers = [str(info.external_jobid) for info in active_jobs]
                found = await asyncio.to_thread(slurm.states_of, numbers)
            self._say_silence(found is None)
        ended = len(active_jobs)
        for info in active_jobs:
            if found is None or not self._has_ended(info, found[str(info.external_jobid)]):
                ended -= 1
                yield info
        for job in self._room.asks_again(ended):
            await asyncio.to_thread(self.run_job, job)

    def _say_silence(self, silent: bool) -> None:
        if silent != self._silent:
            self.logger.warning(
                "squeue doesn't answer; waiting for it." if silent else "squeue answers again."
            )
        self._silent = silent

    def _has_ended(self, info: Any, state: str) -> bool:
        """Report a job that has ended; False where it goes on."""
        number, now = str(info.external_jobid), time.monotonic()
        before, since = self._since.get(number, ("", now))
        if before != state:
            since = now
            if state == "NODE_FAIL" and _has(self, "_failed_nodes"):
                self._failed_nodes.update(slurm.nodes_of(number))  # which later jobs avoid
        self._since[number] = state, since
        settings = self.workflow.executor_settings
        ending = slurm.ending(state, bool(settings.requeue), now - since)
        if ending == "done":
            if info.aux and not settings.keep_successful_logs:
                Path(info.aux["slurm_logfile"]).unlink(missing_ok=True)
            self.report_job_success(info)
        elif ending == "failed":
            self._report_failure(info, state)
        return ending != "active"

    def _report_failure(self, info: Any, state: str) -> None:
        """Say in a line what became of an attempt, and let Snakemake try again where that may help."""
        job: Any = info.job
        said = slurm.said_in((info.aux or {}).get("slurm_logfile"))
        state = slurm.reason(state, said)
        known = snakemake_reason(said) if state == "FAILED" else f"Slurm ended it: {state}."
        self._tell(job, known)
        ended = together([self.attempts.end(_wildcards(one), state) for one in _members(job)])
        found = verdict(ended, job.attempt, _last(job), state, known)
        self._count(job, found.counted)
        log = "" if found.again or not job.log else f" Its log: {job.log[0]}"
        self.logger.error(f"{_name(job)}: job {info.external_jobid} ended {found.sentence}.{log}")
        super().report_job_error(info)

    def _count(self, job: Any, attempts: float) -> None:
        """Let so many attempts at a job count: Snakemake tries again while some are left, and adds one.

        Not by `attempt`, which would make it free what the next attempt asks for, in place of what this one took.
        """
        last = _last(job)
        if _has(job, "_attempt") and math.isfinite(last):
            job._attempt = min(attempts, last)

    def printjob(self, job: Any) -> None:
        """Tell what a job is at its first attempt."""
        if job not in self._tried:
            self._tried.add(job)
            super().printjob(job)

    # --- the end ---

    def shutdown(self) -> None:
        """Shut down, and write what the jobs asked for and used; the plugin's table has no names of jobs."""
        settings = self.workflow.executor_settings
        wanted, settings.efficiency_report = settings.efficiency_report, False
        super().shutdown()
        if wanted and self._names:
            folder = Path(settings.efficiency_report_path or ".")
            slurm.write_efficiency(
                self._names, folder / f"efficiency_report_{time.strftime('%Y%m%d-%H%M%S')}.csv"
            )


def _last(job: Any) -> float:
    """The number of a job's last attempt; infinite where that is not known."""
    return 1 + job.restart_times if _has(job, "restart_times") else math.inf


def _wildcards(job: Any) -> Name:
    return () if job.is_group() else tuple(map(str, job.wildcards or ()))


def _members(job: Any) -> list[Any]:
    """The jobs of a group, or the job itself."""
    return list(job.jobs) if job.is_group() else [job]


def _name(job: Any) -> str:
    return slurm.job_name(job.name, _wildcards(job))
