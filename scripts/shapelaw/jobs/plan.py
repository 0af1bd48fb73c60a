"""The cost of a config's runs before they start, and the environment of their jobs: variables, the build of PyTorch.

PyTorch is looked at without an import, which takes seconds, and the Snakefile is read by every job.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path

from shapelaw.jobs.resources import (
    JobResources,
    in_packs,
    pack_flops,
    pack_seconds,
    packed_speed,
    packed_step_seconds,
)
from shapelaw.jobs.workload import Workload
from shapelaw.settings.sections import Execution, Settings
from shapelaw.specs.cost import LEAST_STEP_SECONDS, CostModel, Speed, duration, read_cost_model, run_seconds
from shapelaw.specs.kinds import AnyRun, PackedRun, is_packed
from shapelaw.specs.runs import Run
from shapelaw.storage.pool import Counts

_LINGER_SECONDS = 120  # longer than the grace that clusters give a preempted job


def job_environment(root: Path, config: Settings, submitted: Path) -> dict[str, str]:
    """The environment variables of the rules' shell commands, for values whose change must not train anything again.

    PATH begins with this Python's folder, SCRIPTS is the folder of the commands, SUBMITTED is the file of what the
    workflow was started with, CONFIG_HASH its digest.
    """
    # training takes a GPU or stops, where one is asked for; SHAPELAW_DEVICE names another
    device = f"--device {os.environ.get('SHAPELAW_DEVICE', 'cuda')}" if config.execution.gpus else ""
    return {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "SCRIPTS": str(root / "scripts"),
        "SUBMITTED": str(submitted),
        "CONFIG_HASH": submitted.stem,
        "CHECKPOINT_MINUTES": str(config.execution.checkpoint_minutes),
        **({} if config.execution.kernels else {"SHAPELAW_KERNELS": "0"}),
        # a job outlives its killed workflow: the next workflow's job waits for it and takes its result
        "SLURM_OPTIONS": " ".join(filter(None, [device, _slurm_options(os.environ)])),
        "WAIT_MINUTES": str(60 * config.execution.job_hours),
    }


def _slurm_options(environment: Mapping[str, str]) -> str:
    """Options of training in a Slurm job: its id as squeue shows it (16, or 16_3 in an array), and time to linger."""
    if "SLURM_ARRAY_JOB_ID" in environment:
        job = f"{environment['SLURM_ARRAY_JOB_ID']}_{environment['SLURM_ARRAY_TASK_ID']}"
    elif "SLURM_JOB_ID" in environment:
        job = environment["SLURM_JOB_ID"]
    else:
        return ""
    return f"--tag slurm_job={job} --linger-seconds {_LINGER_SECONDS}"


@dataclass(frozen=True)
class Cost:
    """The cost of a study before it runs.

    Attributes:
        packs: its runs that are trained in packs, by pack.
        largest_total_params: all parameters of the largest network.
        flops: operations of all training steps (evaluations and start-up not counted).
        hours: time of one device that sustains the config's `execution.flops_per_second`, or by its cost model.
        disk_bytes: upper bound on checkpoints (two a run: weights and two moments in float32) and records.
    """

    packs: Sequence[Sequence[PackedRun]]
    largest_total_params: int
    flops: float
    hours: float
    disk_bytes: int


def speed_of(config: Settings, root: Path) -> Speed:
    """The speed at which language models are trained: the cost model of the config, or its rate.

    Raises:
        UserError: the file isn't a cost model.
    """
    path = config.execution.cost_model
    return config.execution.flops_per_second if path is None else read_cost_model(root / path)


def cost_of(runs: Collection[AnyRun], execution: Execution, speed: Speed) -> Cost:
    """The cost of some runs, from their shapes alone; `speed` is that of language models."""
    packs = in_packs(filter(is_packed, runs), execution.models_per_pack, execution.padding)
    seconds = sum(pack_seconds(pack, execution) for pack in packs)
    seconds += sum(run_seconds(run, speed) for run in runs if isinstance(run, Run))
    return Cost(
        packs,
        max(run.total_params for run in runs),
        float(sum(run.steps * run.step_flops for run in runs)),
        seconds / 3600,
        sum(2 * 3 * 4 * run.total_params + 40 * run.history_rows for run in runs),
    )


def cost_line(study: str, counts: Counts, left: Sequence[AnyRun], execution: Execution, speed: Speed) -> str:
    """A study's runs, and the cost of those without a record, in a line of `snakemake plan`.

    Args:
        counts: of all its runs.
        left: its runs without a record.
        speed: of language models.
    """
    if not left:
        return f"{study}: {counts.words}"
    cost = cost_of(left, execution, speed)
    flops = f"{cost.flops:.2e} FLOPs"
    if cost.packs:
        flops += f" ({sum(map(pack_flops, cost.packs)):.2e} in {len(cost.packs)} packs)"
        by, least = f"at {packed_speed(execution):.1e} FLOP/s", packed_step_seconds(execution)
        by += f" or {1000 * least:g} ms per step of a pack" if least else ""
    elif isinstance(speed, CostModel):
        by = f"by {execution.cost_model} (a run within a factor of {speed.factor:.2f}, typically)"
    else:
        by = f"at {speed:.1e} FLOP/s, {1000 * LEAST_STEP_SECONDS:g} ms per step at least"
    return (
        f"{study}: {counts.words}; networks up to {cost.largest_total_params:,} parameters, {flops}, about "
        f"{_time(cost.hours)} of one device {by}, at most {_disk(cost.disk_bytes)} on disk"
    )


# counted after a workflow: a record's three files; and for a job its specs, its end, its log, and Snakemake's note
_RUN_FILES, _JOB_FILES = 3, 5


@dataclass(frozen=True)
class Ask:
    """The jobs of a rule that are to be done: all ask for the same memory and time.

    Attributes:
        rule: its name.
        runs: runs that they train; none of a rule that prepares texts.
        jobs: how many there are.
        cpus, gpus: of each job, at most.
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
        return _RUN_FILES * self.runs + _JOB_FILES * self.jobs


def asks_of(work: Workload) -> list[Ask]:
    """The training rules of a workflow that have jobs to do."""
    found = []
    for level, resources in work.resources.items():
        jobs = {name: job for name, job in work.to_do.items() if job.level == level}
        asks = [work.ask(name) for name in jobs]
        runs = sum(len(set(job.keys) - set(work.state.recorded)) for job in jobs.values())
        first = resources.at(1, 1, work.execution.most_minutes)
        cpus, gpus = max(ask.cpus for ask in asks), max(ask.gpus for ask in asks)
        found.append(Ask(f"train_{level}", runs, len(jobs), cpus, gpus, first))
    return found


def ask_line(ask: Ask) -> str:
    """A rule's jobs in a line of `snakemake plan`."""
    return (
        f"{ask.rule}: {_counted(ask.runs, 'run')} in {_counted(ask.jobs, 'job')}, each at most "
        f"{_counted(ask.resources.minutes, 'minute')}, {ask.resources.memory_mb:,} MB, {_counted(ask.cpus, 'CPU')}, "
        f"{_counted(ask.gpus, 'GPU')}; about {ask.files:,} files"
    )


def total_line(work: Workload, counts: Counts, asks: Sequence[Ask]) -> str:
    """The last line of `snakemake plan`: what is left of all training, in time, disk, jobs and files."""
    costs = [cost_of(runs, work.execution, work.speed) for runs in work.left.values() if runs]
    if not costs:
        return f"Together {counts.words}"
    hours, disk = sum(cost.hours for cost in costs), _disk(sum(cost.disk_bytes for cost in costs))
    return (
        f"Together {counts.words} in {_counted(sum(ask.jobs for ask in asks), 'job')} (about {_time(hours)} of one "
        f"device, at most {disk} on disk in about {sum(ask.files for ask in asks):,} files)"
    )


def _time(hours: float) -> str:
    """A time by its size; where it is told in days, also the hours, in which GPUs are paid for."""
    told = duration(3600 * hours)
    return f"{told} ({hours:,.0f} hours)" if told.endswith("days") else told


def _disk(size: float) -> str:
    """A number of bytes in MiB or GiB."""
    return f"{size / 2**30:,.1f} GiB" if size >= 2**30 else f"{size / 2**20:,.0f} MiB"


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")


_VERSION = re.compile(r"^__version__ = '([^']+)'", re.M)
_GPU = re.compile(r"^(?:cuda|hip|xpu)\b[^=\n]*= '[^']+'", re.M)


def cpu_build(site: Path | None = None) -> str | None:
    """The version of PyTorch where it is a build for CPUs alone; None for any other, and where there is none.

    Args:
        site: the folder with `torch/`; this Python's own by default.
    """
    found = PathFinder.find_spec("torch", None if site is None else [str(site)])
    if found is None or found.origin is None:
        return None
    text = Path(found.origin).with_name("version.py").read_text(encoding="utf-8")
    version = _VERSION.search(text)
    return version[1] if version and not _GPU.search(text) else None


def refused_build(asks: Iterable[Ask], environment: Mapping[str, str]) -> list[str]:
    """A sentence where jobs ask for GPUs and this environment's PyTorch can't use any."""
    if not any(ask.gpus for ask in asks) or "SHAPELAW_DEVICE" in environment or not (version := cpu_build()):
        return []
    return [
        f"execution.gpus asks for GPUs, but PyTorch {version} in {sys.prefix} is a build for CPUs; install the "
        "one for GPUs (make env TORCH=cuda), or set execution.gpus to 0."
    ]


def tell_build() -> int:
    """Tell whether PyTorch here can use a GPU, after an installation that was to be one for GPUs."""
    version = cpu_build()
    if version is None:
        print("PyTorch is a build for GPUs; the first job that gets one checks that it finds it.")
        return 0
    print(
        f"pip found PyTorch {version}, a build for CPUs; name an index that has the one for GPUs: "
        "make env TORCH=cuda TORCH_INDEX=https://...",
        file=sys.stderr,
    )
    return 1
