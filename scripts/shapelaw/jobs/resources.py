"""What a job asks for: memory and time, from the shapes of its runs and from what its earlier attempts achieved.

A level is a rule of the workflow: jobs of one rule ask for the same. Estimates are generous: too much costs a little
waiting, too little costs a job.
"""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from shapelaw.settings.sections import Execution
from shapelaw.specs.cost import LEAST_STEP_SECONDS, Speed, run_seconds
from shapelaw.specs.kinds import AnyRun, PackedRun, kind_of
from shapelaw.specs.runs import Run
from shapelaw.specs.shapes import STATE_BYTES

Level = Literal["small", "medium", "large"]
LEVELS: tuple[Level, ...] = ("small", "medium", "large")
Name = tuple[str, ...]  # the wildcards of a job
Task = tuple[AnyRun, ...]  # what is trained at a time: one decoder, or a pack as one computation
OUT_OF_MEMORY, TIMEOUT = "OUT_OF_MEMORY", "TIMEOUT"  # states of Slurm
_LEVEL_MINUTES = {"small": 10.0, "medium": 240.0, "large": math.inf}  # the longest training of a level
_START_MINUTES = 5.0  # Snakemake, imports, compilation, the test set
_MARGIN = 1.5  # factor on the estimated time
_PACKED_SHARES = (0.5, 0.05)  # of the speed of large products; on a GPU float32 has no tensor cores
_PACKED_STEP_SECONDS = (0.0, 1.3e-3)  # 250 launches of 5 microseconds
_START_MB = 2000.0  # of the host: Python, PyTorch, the token store's pages
_GPU_START_MB = 8000.0  # the same for each GPU's process, with CUDA's libraries and a compiler at work
_ACTIVATION_BYTES_AT_MOST = 4 * 2**30  # micro-batches keep a CPU below that
_MOST_MEMORY = 2  # times the estimate: a run that needs more will not fit into six times of it either
_GPU_STATE_BYTES = 24  # of each parameter, on the host: two copies of a checkpoint in the making


@dataclass(frozen=True)
class JobResources:
    """The resources that a job asks for.

    Attributes:
        memory_mb: memory of the host, in MB.
        minutes: wall time.
    """

    memory_mb: int
    minutes: int

    def at(self, memory: int, minutes: int, most_minutes: int) -> JobResources:
        """What a further attempt asks for: twice the memory at most, and the more time the more attempts it took.

        Args:
            memory, minutes: the attempt, 1 for the first, whose memory and time are asked for.
            most_minutes: the longest that the cluster lets a job run; a longer run is stopped there and resumed.
        """
        return JobResources(
            self.memory_mb * min(memory, _MOST_MEMORY), min(most_minutes, self.minutes * minutes)
        )


def task_minutes(task: Task, execution: Execution, speed: Speed) -> float:
    """Minutes of training of a decoder, or of a pack; `speed` is that of decoders."""
    first = task[0]
    if isinstance(first, Run):
        return run_seconds(first, speed) / 60
    pack = filled_up(_packed(task))
    rate = packed_speed(execution.flops_per_second, execution.gpus)
    step_seconds = max(sum(run.step_flops for run in pack) / rate, LEAST_STEP_SECONDS)
    return max(run.steps for run in pack) * step_seconds / 60


def task_memory_mb(task: Task, gpus: int) -> float:
    """Memory of the host that a decoder or a pack needs, in MB."""
    first = task[0]
    if isinstance(first, Run):
        return _memory_mb(first, gpus)
    numbers = sum(run.memory_numbers for run in filled_up(_packed(task)))
    return (_GPU_START_MB if gpus else _START_MB) + 2 * 4 * numbers / 1e6


def _packed(task: Task) -> list[PackedRun]:
    return [run for run in task if not isinstance(run, Run)]


def level_of(minutes: float) -> Level:
    """The level of a task: small, at most 10 minutes of training; medium, at most 4 hours; large, the rest."""
    return next(level for level in LEVELS if minutes <= _LEVEL_MINUTES[level])


def job_resources(jobs: Iterable[Sequence[Task]], execution: Execution, speed: Speed) -> JobResources:
    """Enough for the first attempt at each of these jobs: all jobs of a level ask for the same.

    Args:
        jobs: at least one, each with its tasks.
        speed: FLOP/s sustained by one job, or its cost model.
    """
    listed = list(jobs)
    longest = max(sum(task_minutes(task, execution, speed) for task in tasks) for tasks in listed)
    memory = max(task_memory_mb(task, execution.gpus) for tasks in listed for task in tasks)
    return JobResources(math.ceil(memory), math.ceil(_START_MINUTES + _MARGIN * longest))


def _memory_mb(run: Run, gpus: int) -> float:
    shape = run.shape
    if gpus:
        return _GPU_START_MB * gpus + _GPU_STATE_BYTES * shape.total_params / 1e6
    activations = shape.activation_bytes(run.training.batch_size)
    return _START_MB + (STATE_BYTES * shape.total_params + min(activations, _ACTIVATION_BYTES_AT_MOST)) / 1e6


def filled_up(pack: Sequence[PackedRun]) -> list[PackedRun]:
    """The runs as the pack trains them, with models of one shape; their operations and memory are the pack's."""
    return kind_of(pack[0]).filled_up(pack)


def pack_flops(pack: Sequence[PackedRun]) -> int:
    """Operations of the matrix products of a pack's steps, if each model leaves after its last step, none earlier."""
    return sum(run.steps * run.step_flops for run in filled_up(pack))


def pack_seconds(pack: Sequence[PackedRun], rate: float, step_seconds: float) -> float:
    """Seconds of a pack at `rate` FLOP/s, and at least `step_seconds` for each step."""
    return max(pack_flops(pack) / rate, max(run.steps for run in pack) * step_seconds)


def packed_speed(flops_per_second: float, gpus: int) -> float:
    """FLOP/s that packed training reaches where language models reach `flops_per_second`."""
    return _PACKED_SHARES[min(gpus, 1)] * flops_per_second


def packed_step_seconds(gpus: int) -> float:
    """The estimated least seconds of a pack's step, however small: the launches of a GPU."""
    return _PACKED_STEP_SECONDS[min(gpus, 1)]


@dataclass(frozen=True)
class Attempt:
    """An attempt that ended.

    Attributes:
        advanced: it wrote a checkpoint or finished a run of its pack.
        step: steps in the last checkpoint or note, of all; None where there is none.
    """

    advanced: bool
    step: tuple[int, int] | None


@dataclass(frozen=True)
class Verdict:
    """What a failed attempt means.

    Attributes:
        again: there is another attempt.
        counted: attempts that count from now on; the job is given up once these are all.
        sentence: its state, where it stood, and what comes next.
    """

    again: bool
    counted: float
    sentence: str


def verdict(ended: Attempt, number: float, last: float, state: str, known: str, fixed: str = "") -> Verdict:
    """Whether a failed attempt counts, and whether another one may help.

    An attempt that advanced its run is free, so that a run which is longer than all attempts together ends too.

    Args:
        ended: what it achieved.
        number: the attempt's, among those that count.
        last: number of the last attempt; infinite where that is not known.
        state: why it ended, in Slurm's word.
        known: what Snakemake said of a job that failed.
        fixed: what the next attempt asks for, where the user fixed it; empty where it asks for more.
    """
    again = number < last
    then = f"attempt {number}" + (f" of {last}" if math.isfinite(last) else "")
    if ended.advanced and last > 1:  # --retries 0 means none
        then, again = "it advanced, so it doesn't count", True
    if again:
        more = fixed or ("more memory" if state == OUT_OF_MEMORY else "")
        then += "; trying again" + (f" with {more}" if more else "")
    at = f" at step {ended.step[0]} of {ended.step[1]}" if ended.step else ""
    why = f" ({known})" if state == "FAILED" and known else ""
    counted = last if not again else number - 1 if ended.advanced else number
    return Verdict(again, counted, f"{state}{at}; {then}{why}")


@dataclass
class Attempts:
    """The attempts at the jobs of this workflow.

    Attributes:
        folders: the folders in which a job leaves checkpoints and records, by its wildcards.
        watched: the reasons why jobs end are known; otherwise each attempt asks for more.
        told: why a job failed for good, where more is known than what its log says; by its rule and wildcards.
    """

    folders: Callable[[Name], Sequence[Path]]
    watched: bool = False
    told: dict[Name, str] = field(default_factory=dict)
    _begun: dict[Name, float] = field(default_factory=dict)
    _reasons: dict[Name, Counter[str]] = field(default_factory=dict)

    def begin(self, name: Name) -> None:
        """Note that an attempt is submitted."""
        self._begun[name] = time.time()

    def end(self, name: Name, reason: str) -> Attempt:
        """Note why an attempt ended, and return what it achieved."""
        self._reasons.setdefault(name, Counter())[reason] += 1
        folders = self.folders(name)
        return Attempt(_newest(folders) > self._begun.get(name, time.time()), _step(folders))

    def memory(self, name: Iterable[str], attempt: int) -> int:
        """The attempt whose memory the next one asks for: only running out of memory raises it."""
        return self._asks(name, OUT_OF_MEMORY, attempt)

    def minutes(self, name: Iterable[str], attempt: int) -> int:
        """The attempt whose time the next one asks for: only reaching the time limit raises it."""
        return self._asks(name, TIMEOUT, attempt)

    def _asks(self, name: Iterable[str], reason: str, attempt: int) -> int:
        if not self.watched:
            return attempt
        return 1 + self._reasons.get(tuple(name), Counter())[reason]


def _newest(folders: Iterable[Path]) -> float:
    """When the newest checkpoint or finished record was written."""
    paths = [
        path
        for folder in folders
        for pattern in ("step-*.pt", "summary.json")
        for path in folder.glob(pattern)
    ]
    return max((written(path) for path in paths), default=0.0)


def written(path: str | Path) -> float:
    """When a file was written, in seconds since 1970; 0 where there is none."""
    try:
        return Path(path).stat().st_mtime
    except FileNotFoundError:  # an older checkpoint, deleted since
        return 0.0


def _step(folders: Sequence[Path]) -> tuple[int, int] | None:
    """The newest step of the last checkpoint, and the steps of its run; of a job with one run under way."""
    notes = {}
    for folder in folders:
        try:
            notes[folder] = json.loads((folder / "live.json").read_text())
        except (OSError, ValueError):  # finished, not begun, or cut short: a note for people
            continue
    if len(notes) != 1:
        return None
    ((folder, note),) = notes.items()
    steps = [int(path.stem[5:]) for path in folder.glob("step-*.pt") if path.stem[5:].isdigit()]
    return max(steps, default=0), int(str(note["steps"]))
