"""Which runs share a job, and what it asks for: memory and time, from their shapes and from its earlier attempts.

Runs share a pack, which is one computation; a job does several tasks one after the other. A level is a rule of the
workflow: jobs of one rule ask for the same. Estimates are generous: too much costs a little waiting, too little costs
a job.
"""

from __future__ import annotations

import heapq
import json
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations, count
from pathlib import Path
from typing import Literal, TypeVar

from shapelaw.settings.sections import Execution
from shapelaw.specs.cost import LEAST_STEP_SECONDS, Speed, run_seconds
from shapelaw.specs.kinds import AnyRun, PackedRun, is_packed, kind_of
from shapelaw.specs.runs import Run
from shapelaw.specs.shapes import STATE_BYTES
from shapelaw.storage.files import STEPS, written
from shapelaw.storage.pool import RUNS

Level = Literal["small", "medium", "large"]
LEVELS: tuple[Level, ...] = ("small", "medium", "large")
Name = tuple[str, ...]  # the wildcards of a job
Task = tuple[AnyRun, ...]  # what is trained at a time: one decoder, or a pack as one computation
OUT_OF_MEMORY, TIMEOUT = "OUT_OF_MEMORY", "TIMEOUT"  # states of Slurm
AGAIN = "; trying again"
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
    pack = filled_up(task)
    step_seconds = max(sum(run.step_flops for run in pack) / packed_speed(execution), LEAST_STEP_SECONDS)
    return max(run.steps for run in pack) * step_seconds / 60


def task_memory_mb(task: Task, gpus: int) -> float:
    """Memory of the host that a decoder or a pack needs, in MB."""
    run = task[0]
    if not isinstance(run, Run):
        numbers = sum(one.memory_numbers for one in filled_up(task))
        return (_GPU_START_MB if gpus else _START_MB) + 2 * 4 * numbers / 1e6
    if gpus:
        return _GPU_START_MB * gpus + _GPU_STATE_BYTES * run.total_params / 1e6
    activations = min(run.shape.activation_bytes(run.training.batch_size), _ACTIVATION_BYTES_AT_MOST)
    return _START_MB + (STATE_BYTES * run.total_params + activations) / 1e6


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


def filled_up(pack: Sequence[AnyRun]) -> list[PackedRun]:
    """The runs as the pack trains them, with models of one shape; their operations and memory are the pack's."""
    return kind_of(pack[0]).filled_up(pack)


def pack_flops(pack: Sequence[PackedRun]) -> int:
    """Operations of the matrix products of a pack's steps, if each model leaves after its last step, none earlier."""
    return sum(run.steps * run.step_flops for run in filled_up(pack))


def pack_seconds(pack: Sequence[PackedRun], execution: Execution) -> float:
    """Seconds of a pack by its operations, and at least those of its steps' launches."""
    least = max(run.steps for run in pack) * packed_step_seconds(execution)
    return max(pack_flops(pack) / packed_speed(execution), least)


def packed_speed(execution: Execution) -> float:
    """FLOP/s that packed training reaches where language models reach `flops_per_second`."""
    return _PACKED_SHARES[min(execution.gpus, 1)] * execution.flops_per_second


def packed_step_seconds(execution: Execution) -> float:
    """The estimated least seconds of a pack's step, however small: the launches of a GPU."""
    return _PACKED_STEP_SECONDS[min(execution.gpus, 1)]


@dataclass(frozen=True)
class Attempt:
    """An attempt that ended.

    Attributes:
        advanced: it wrote a checkpoint or finished a run of its pack.
        at: where it stood, `step 40 of 90 of run 2 of 4`; empty where that is not known.
    """

    advanced: bool
    at: str = ""


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
        more = fixed or {OUT_OF_MEMORY: "more memory", TIMEOUT: "more time"}.get(state, "")
        then += AGAIN + (f" with {more}" if more else "")
    at = f" at {ended.at}" if ended.at else ""
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
        return Attempt(_newest(folders) > self._begun.get(name, time.time()), _place(folders))

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
    patterns = (STEPS, "summary.json")
    paths = (path for folder in folders for pattern in patterns for path in folder.glob(pattern))
    return max(map(written, paths), default=0.0)


def _place(folders: Sequence[Path]) -> str:
    """The step of the last checkpoint, and which of the job's runs is at it; empty unless one run is under way."""
    notes = {}
    for folder in folders:
        try:
            notes[folder] = json.loads((folder / "live.json").read_text())
        except (OSError, ValueError):  # finished, not begun, or cut short: a note for people
            continue
    if len(notes) != 1:
        return ""
    ((folder, note),) = notes.items()
    steps = [int(path.stem[5:]) for path in folder.glob(STEPS)]
    runs = [one for one in folders if one.parent.name == RUNS]
    done = sum((one / "summary.json").is_file() for one in runs)
    of_job = f" of run {done + 1} of {len(runs)}" if len(runs) > 1 else ""
    return f"step {max(steps, default=0)} of {note['steps']}{of_job}"


AnyPacked = TypeVar("AnyPacked", bound=PackedRun)


def formed_jobs(
    runs: Iterable[AnyRun], execution: Execution, speed: Speed, job_minutes: float
) -> list[tuple[Level, list[Task]]]:
    """The runs of a study as jobs of about `job_minutes`: the level of each, and its tasks.

    A job has tasks of one level and of one corpus and vocabulary. A task that takes longer is a job of its own, as is
    each of several processes, which `scripts/launch.py` starts for one run.

    Args:
        job_minutes: training that a job does, against which its start should be small.
    """
    kinds: dict[object, list[tuple[float, Task]]] = {}
    for task in tasks_of(runs, execution):
        minutes, first = task_minutes(task, execution, speed), task[0]
        texts = (first.corpus, first.shape.vocab_size) if isinstance(first, Run) else None
        kinds.setdefault((level_of(minutes), texts), []).append((minutes, task))
    jobs: list[tuple[Level, list[Task]]] = []
    for timed in kinds.values():
        level, first = level_of(timed[0][0]), timed[0][1][0]
        alone = execution.gpus > 1 and not is_packed(first)
        jobs += [(level, job) for job in _balanced(timed, 0.0 if alone else job_minutes)]
    return jobs


def tasks_of(runs: Iterable[AnyRun], execution: Execution) -> list[Task]:
    """What is trained at a time: each decoder by itself, the others in packs."""
    every = list(runs)
    packs = in_packs(filter(is_packed, every), execution.models_per_pack, execution.padding)
    return [(run,) for run in every if not is_packed(run)] + [tuple(pack) for pack in packs]


def _balanced(timed: Sequence[tuple[float, Task]], job_minutes: float) -> list[list[Task]]:
    """Jobs that take about `job_minutes` and equally long: the longest task left goes to the shortest job."""
    short = [one for one in timed if one[0] < job_minutes]
    number = math.ceil(sum(minutes for minutes, _ in short) / job_minutes) if short else 0
    loads = [(0.0, place) for place in range(number)]
    jobs: list[list[Task]] = [[] for _ in loads]
    for minutes, task in sorted(short, key=lambda one: -one[0]):
        load, place = loads[0]
        jobs[place].append(task)
        heapq.heapreplace(loads, (load + minutes, place))
    return jobs + [[task] for minutes, task in timed if minutes >= job_minutes]


def in_packs(runs: Iterable[AnyPacked], size: int, padding: float = 1.0) -> list[list[AnyPacked]]:
    """The runs in packs of at most `size`, runs of similar length together, so that few wait for the longest.

    A pack has one shape. With `padding` above 1 memorizers of other heads, context lengths or head dimensions are
    filled up with zeros to share one, as long as all packs together do at most `padding` times the operations of
    their models alone. Where each step has a fixed price (a GPU's launches), fewer packs are faster.
    """
    groups: dict[tuple[object, ...], list[AnyPacked]] = {}
    for run in sorted(runs, key=lambda run: -run.steps):
        groups.setdefault(run.group, []).append(run)
    packs = [group[i : i + size] for group in groups.values() for i in range(0, len(group), size)]
    return packs if padding <= 1 else _joined(packs, size, padding)


def _joined(packs: Iterable[list[AnyPacked]], size: int, padding: float) -> list[list[AnyPacked]]:
    """Join packs while the budget lasts, first those that add the fewest operations for each step saved."""
    found = dict(enumerate(packs))
    new = count(len(found))
    left = (padding - 1) * sum(map(pack_flops, found.values()))
    offers: list[tuple[float, int, int, int]] = []  # added a step saved, added, indices of both

    def offer(one: int, other: int) -> None:
        a, b = found[one], found[other]
        if a[0].family == b[0].family and len(a) + len(b) <= size:
            added = pack_flops([*a, *b]) - pack_flops(a) - pack_flops(b)
            heapq.heappush(offers, (added / min(a[0].steps, b[0].steps), added, one, other))

    for one, other in combinations(found, 2):
        offer(one, other)
    while offers:
        # an offer of a pack that was joined since is stale: it is passed over here, since a heap can't be searched
        _, added, one, other = heapq.heappop(offers)
        if one in found and other in found and added <= left:
            left -= added
            both, place = [*found.pop(one), *found.pop(other)], next(new)
            found[place] = sorted(both, key=lambda run: -run.steps)
            for third in found.keys() - {place}:
                offer(third, place)
    return sorted(found.values(), key=lambda pack: -pack[0].steps)
