"""What each training rule of a workflow asks for: told by `snakemake plan`, and asked of Slurm before the first job."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from shapelaw.scheduling.cost import Speed
from shapelaw.scheduling.jobs import LEVELS, JobResources
from shapelaw.scheduling.plan import cost_of, device_hours, speed_of_runs
from shapelaw.scheduling.workload import Workload
from shapelaw.settings.sections import Execution
from shapelaw.specs.kinds import AnyRun

# counted after a workflow: a record, its copy with the checkpoints, logs, and Snakemake's own note of each output
_RUN_FILES = {False: 7, True: 6}  # by whether the run shares a job
_SHARED_JOB_FILES = 4


@dataclass(frozen=True)
class Ask:
    """The jobs of a rule: all ask for the same.

    Attributes:
        rule: its name.
        runs: runs that they train.
        jobs: how many there are.
        cpus, gpus: of each job.
        resources: memory and time of each job, at its first attempt.
    """

    rule: str
    runs: int
    jobs: int
    cpus: int
    gpus: int
    resources: JobResources

    @property
    def files(self) -> int:
        """Files that are there when all are done."""
        shared = self.rule in ("train_in_turn", "train_together")
        return _RUN_FILES[shared] * self.runs + _SHARED_JOB_FILES * self.jobs * shared


def train_cpus(execution: Execution) -> int:
    """CPUs of a job that trains decoders: at least one for each GPU's process."""
    return max(execution.threads, execution.gpus)


def asks_of(work: Workload) -> list[Ask]:
    """The training rules of a workflow that have jobs."""
    execution, found = work.execution, []
    cpus, gpus = train_cpus(execution), execution.gpus
    for level in LEVELS:
        runs = len(work.of_level[level])
        if runs and level == "small" and work.runs_per_job != 1:
            jobs = len(work.jobs_in_turn)
            found.append(Ask("train_in_turn", runs, jobs, cpus, gpus, work.in_turn_resources(1)))
        elif runs:
            found.append(Ask(f"train_{level}", runs, runs, cpus, gpus, work.level_resources(level, 1)))
    if runs := len(work.packed):
        jobs = len(work.jobs_of_packs)
        found.append(
            Ask("train_together", runs, jobs, execution.threads, min(gpus, 1), work.together_resources(1))
        )
    return found


def ask_line(ask: Ask) -> str:
    """A rule's jobs in a line of `snakemake plan`."""
    return (
        f"{ask.rule}: {_counted(ask.runs, 'run')} in {_counted(ask.jobs, 'job')}, each at most "
        f"{_counted(ask.resources.minutes, 'minute')}, {ask.resources.memory_mb:,} MB, {_counted(ask.cpus, 'CPU')}, "
        f"{_counted(ask.gpus, 'GPU')}; about {ask.files:,} files"
    )


def total_line(
    studies: Iterable[Sequence[AnyRun]], asks: Iterable[Ask], execution: Execution, speed: Speed
) -> str:
    """The last line of `snakemake plan`: all training, in hours, GiB, jobs and files."""
    lists, asked = [runs for runs in studies if runs], list(asks)
    hours = sum(device_hours(runs, execution, speed) for runs in lists)
    disk = sum(cost_of(runs, speed_of_runs(runs, execution, speed)).disk_bytes for runs in lists)
    runs, jobs = sum(map(len, lists)), sum(ask.jobs for ask in asked)
    return (
        f"Together: {_counted(runs, 'run')} in {_counted(jobs, 'job')}, about {hours:.3g} hours of one device, "
        f"at most {disk / 2**30:.3g} GiB on disk in about "
        f"{sum(ask.files for ask in asked):,} files"
    )


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")
