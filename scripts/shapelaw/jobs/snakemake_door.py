"""All that is used of Snakemake and of its Slurm plugin that they don't document; no other module touches it.

`Door` reads it from the workflow for the Snakefile, `PluginExecutor` from the plugin's executor and its jobs. Each use
has a line in `LOST`: where another release lacks it, the workflow says once what is missing and runs without.
"""

from __future__ import annotations

import logging
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from shapelaw.errors import say
from shapelaw.jobs.resources import Attempts, Name

LOST = {
    # of the workflow
    "is_main_process": "a job is told from a start by its command line",
    "config_settings.replace_workflow_config": "--replace-workflow-config has no effect",
    "resource_settings.cores": "a wrong --cores is told by Snakemake alone",
    "resource_settings.nodes": "a wrong --jobs is told by Snakemake alone",
    "resource_settings.max_threads": "this machine's cores bound the threads of jobs elsewhere",
    "resource_settings.default_resources": "Slurm is not asked before the first job for the profile's queue",
    "resource_settings.overwrite_resources": "Slurm is asked before the first job without --set-resources",
    "global_resources": "this machine's cores bound the threads of jobs elsewhere",
    "deployment_settings.deployment_method": "jobs run in this environment, not in the container",
    "output_settings.dryrun": "a dry run gives no warnings",
    "executor_plugin.name": "nothing is asked of Slurm before the first job",
    "dag.jobs": "the workflow ends without its questions and answers",
    "dag.needrun_jobs": "what jobs would ask for is not checked before the first one",
    "scheduler.failed": "why jobs failed stands in their logs alone",
    # of its settings
    "Quietness.PROGRESS": "progress is told in jobs, not in runs",
    # of the plugin's executor, its registry, and jobs
    "plugins": "jobs on Slurm are the plugin's: each attempt counts, and no job of a killed workflow is taken over",
    "_attempt": "an attempt that advanced its run counts like any other, and what can't succeed is tried again",
    "restart_times": "an attempt that advanced its run counts like any other, and what can't succeed is tried again",
}
_RESTARTS = "Trying to restart job"  # Snakemake's line
_STOPS = "Terminating processes on user request"  # its line after Ctrl-C


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
    """

    rule: str
    wildcards: Name
    outputs: tuple[str, ...]
    log: Path | None


def _seen(jobs: Iterable[Any]) -> list[Job]:
    """The jobs, those of a group one by one."""
    return [
        Job(
            one.rule.name,
            wildcards_of(one),
            tuple(map(str, one.output)),
            Path(one.log[0]) if one.log else None,
        )
        for job in jobs
        for one in (job.jobs if job.is_group() else [job])
    ]


def wildcards_of(job: Any) -> Name:
    """The values of a job's wildcards; a group has none."""
    return () if job.is_group() else tuple(map(str, job.wildcards or ()))


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
        return _seen(self._look("dag.needrun_jobs", tuple)())

    def largest(self, rule: str) -> tuple[int, int]:
        """The threads and the megabytes of the largest job of a rule among those that are to run."""
        jobs = [job for job in self._look("dag.needrun_jobs", tuple)() if job.rule.name == rule]
        # else known later
        memory = [mb for job in jobs if isinstance(mb := job.resources.get("mem_mb"), int)]
        return max(int(job.threads) for job in jobs), max(memory, default=0)

    def failed_jobs(self) -> list[Job]:
        """The jobs that failed, in their order."""
        return _seen(sorted(self._look("scheduler.failed", ()), key=lambda job: int(job.jobid)))

    def lift_cores(self) -> None:
        """Let this machine's cores bound no job that runs elsewhere and has a bound of its own (`max-threads`).

        profiles/default gives `cores: all`, this machine's, and wins over any other profile.
        """
        bounded = self.jobs is not None and self._look("resource_settings.max_threads") is not None
        if bounded and (bounds := self._look("global_resources")) is not None:
            self._workflow.resource_settings.cores = bounds["_cores"] = sys.maxsize

    def count_runs(self, words: Callable[[], str]) -> None:
        """Let Snakemake's line on progress begin with these words; it counts jobs, which are of many lengths."""
        try:
            from snakemake.settings.enums import Quietness

            quietness = Quietness.PROGRESS
        except (ImportError, AttributeError):
            _miss("Quietness.PROGRESS")
            return

        def tell(record: logging.LogRecord) -> bool:
            if getattr(getattr(record, "event", None), "name", "") == "PROGRESS":
                record.msg = (
                    f"{words()}; {getattr(record, 'done', 0)} of {getattr(record, 'total', 0)} jobs done"
                )
                record.event, record.quietness = None, quietness
            return True

        logging.getLogger("snakemake.logging").addFilter(tell)

    def hush_stopped(self) -> None:
        """Leave out Snakemake's errors of the jobs that Ctrl-C ends: they are no failures."""
        stopped = False

        def tell(record: logging.LogRecord) -> bool:
            nonlocal stopped
            stopped = stopped or record.getMessage().startswith(_STOPS)
            return not stopped or record.levelno < logging.ERROR

        logging.getLogger("snakemake.logging").addFilter(tell)

    def use_slurm(self, executor: type[PluginExecutor], attempts: Attempts) -> None:
        """Let `--executor slurm` of the main process be this one on top of the plugin's; without the plugin nothing."""
        if not self.is_main or "snakemake_executor_plugin_slurm" not in sys.modules:
            return
        # the plugins that this process has loaded; Snakemake offers no option for an executor of one's own
        from snakemake_interface_executor_plugins import registry as place

        registry: Any = getattr(place, "ExecutorPluginRegistry", object)()
        if _has(registry, "plugins") and (plugin := registry.plugins.get("slurm")) is not None:
            plugin.executor = type("ShapelawExecutor", (executor, plugin.executor), {"attempts": attempts})


def _as_written(values: Mapping[str, Any]) -> dict[str, object]:
    return {name: getattr(one, "raw", one) for name, one in values.items()}


_Plugins: Any = object  # the plugin's Executor is the base beside it


class PluginExecutor(_Plugins):  # type: ignore[misc] # the plugin has no types
    """What ours has of the plugin's executor and of its jobs beside the methods that executor plugins override."""

    def __init__(self, workflow: Any, logger: Any) -> None:
        # before the plugin starts its thread, which uses them
        self._accounts: dict[str, str] = {}
        logging.getLogger(logger.name).addFilter(self._hear)
        super().__init__(workflow, logger)

    def get_account_arg(self, job: Any) -> Iterator[str]:
        """The account that was asked for, which the plugin checks once; without one, Slurm takes the user's default.

        A plugin that doesn't ask here checks the account of each job, or guesses one.
        """
        asked = str(job.resources.get("slurm_account") or "")
        if asked and asked not in self._accounts:
            self._accounts[asked] = next(super().get_account_arg(job))
        yield self._accounts.get(asked, "")

    def _hear(self, record: logging.LogRecord) -> bool:
        """Leave out that a job starts again, which ours says better."""
        return not record.getMessage().startswith(_RESTARTS)

    def log_of(self, job: Any, number: str) -> Path:
        """The log of a job, as the plugin names it; elsewhere, why the job failed would not be read."""
        logs = Path(self.workflow.workdir_init) / (self.workflow.executor_settings.logdir or "")
        return logs / f"rule_{job.name}" / "_".join(wildcards_of(job)) / f"{number}.log"


def last_attempt(job: Any) -> float:
    """The number of a job's last attempt; infinite where that is not known."""
    return 1 + job.restart_times if _has(job, "restart_times") else math.inf


def count(job: Any, attempts: float) -> None:
    """Let so many attempts at a job count: Snakemake tries again while some are left, and adds one.

    Not by `attempt`, which would make it free what the next attempt asks for, in place of what this one took.
    """
    last = last_attempt(job)
    if _has(job, "_attempt") and math.isfinite(last):
        job._attempt = min(attempts, last)
