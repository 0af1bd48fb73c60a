"""Memory and time that the job of a training run asks for, from its shape, and the level that groups similar jobs.

A level is a rule of the workflow: jobs of one rule ask for the same (and so can share a job array), small
ones can share a job. Estimates are generous: too much costs a little waiting, too little costs a job.
"""

from __future__ import annotations

import hashlib
import heapq
import math
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, count
from typing import Literal, TypeVar

from shapelaw.settings.sections import MOST_RUNS, Execution
from shapelaw.specs.cost import CostModel, Speed, run_seconds
from shapelaw.specs.kinds import AnyRun, PackedRun, kind_of
from shapelaw.specs.runs import Run

Level = Literal["small", "medium", "large"]
LEVELS: tuple[Level, ...] = ("small", "medium", "large")

_LEVEL_MINUTES = {"small": 10.0, "medium": 240.0, "large": math.inf}  # the longest training of a level
_IN_TURN_MINUTES = 1.0  # training in a job of small runs: ten times its start or more
_START_MINUTES = 5.0  # Snakemake, imports, compilation, the test set
_MARGIN = 1.5  # factor on the estimated time
_STEP_SECONDS_AT_LEAST = 0.005  # however small the network is
_PACKED_SHARES = (0.5, 0.05)  # of the speed of large products; on a GPU float32 has no tensor cores
_PACKED_STEP_SECONDS = (0.0, 1.3e-3)  # 250 launches of 5 microseconds
_START_MB = 2000.0  # of the host: Python, PyTorch, the token store's pages
_GPU_START_MB = 8000.0  # the same for each GPU's process, with CUDA's libraries and a compiler at work
_ACTIVATION_BYTES_AT_MOST = 4 * 2**30  # micro-batches keep a CPU below that
_MOST_MEMORY = 2  # times the estimate: a run that needs more will not fit into six times of it either
_STATE_BYTES = 16  # of each parameter: weight, gradient, two moments, in float32
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


def train_minutes(run: Run, speed: Speed) -> float:
    """Minutes of training alone, on a device that sustains `speed` FLOP/s or has `speed` as its cost model."""
    if isinstance(speed, CostModel):
        return run_seconds(run, speed) / 60
    step_seconds = run.shape.step_flops(run.training.batch_size) / speed
    return run.training.steps * max(step_seconds, _STEP_SECONDS_AT_LEAST) / 60


def level_of(run: Run, speed: Speed) -> Level:
    """The level of a run: small, at most 10 minutes; medium, at most 4 hours; large, the rest."""
    minutes = train_minutes(run, speed)
    return next(level for level in LEVELS if minutes <= _LEVEL_MINUTES[level])


def job_resources(
    runs: Iterable[Run],
    speed: Speed,
    gpus: int,
    most_minutes: int,
    attempt: int,
    in_a_row: int = 1,
) -> JobResources:
    """Enough for each of `runs`; a further attempt asks for more time, up to the limit, and twice the memory.

    Args:
        runs: at least one; all runs of a level are given together, since they ask for the same.
        speed: FLOP/s sustained by one job, or its cost model.
        gpus: GPUs of the job; 0 trains on the CPU.
        most_minutes: the longest that the cluster lets a job run; a longer run is stopped there and resumed.
        attempt: 1 for the first.
        in_a_row: runs that one job trains one after the other.
    """
    chosen = list(runs)
    longest = sorted((train_minutes(run, speed) for run in chosen), reverse=True)[:in_a_row]
    minutes = _START_MINUTES + _MARGIN * sum(longest)
    memory = max(_memory_mb(run, gpus) for run in chosen)
    return JobResources(
        math.ceil(memory * min(attempt, _MOST_MEMORY)), min(most_minutes, math.ceil(minutes * attempt))
    )


def jobs_in_turn(runs: Iterable[Run], runs_per_job: int | None, speed: Speed) -> dict[str, list[Run]]:
    """The small runs of a study by the name of the job that trains them in turn, all of one corpus and vocabulary.

    A name is a hash of the keys of a job's runs: other runs are another job.

    Args:
        runs_per_job: most runs of a job; with 1 each run has its own. None chooses it from the estimated times: enough
            that a job trains for about a minute, against which its start is small, and that all take equally long.
    """
    if runs_per_job == 1:
        return {}
    by_store: dict[tuple[str, int], list[Run]] = {}
    for run in runs:
        if level_of(run, speed) == "small":
            by_store.setdefault((run.corpus, run.shape.vocab_size), []).append(run)
    jobs = []
    for chosen in by_store.values():
        if runs_per_job is None:
            jobs += _balanced(chosen, speed)
        else:
            jobs += [chosen[i : i + runs_per_job] for i in range(0, len(chosen), runs_per_job)]
    return {_job_name(job): job for job in jobs}


def _balanced(runs: Sequence[Run], speed: Speed) -> list[list[Run]]:
    """Jobs of about `_IN_TURN_MINUTES` each: the longest run left goes to the shortest job."""
    minutes = {run: train_minutes(run, speed) for run in runs}
    short = [run for run in runs if minutes[run] < _IN_TURN_MINUTES]
    number = max(
        math.ceil(sum(minutes[run] for run in short) / _IN_TURN_MINUTES), math.ceil(len(short) / MOST_RUNS)
    )
    loads = [(0.0, 0, place) for place in range(number)]  # minutes, runs, which job
    jobs: list[list[Run]] = [[] for _ in loads]
    for run in sorted(short, key=lambda run: -minutes[run]):
        load, count, place = heapq.heappop(loads)
        jobs[place].append(run)
        if count + 1 < MOST_RUNS:
            heapq.heappush(loads, (load + minutes[run], count + 1, place))
    return [job for job in jobs if job] + [[run] for run in runs if minutes[run] >= _IN_TURN_MINUTES]


def _job_name(runs: Sequence[AnyRun]) -> str:
    return hashlib.sha256("\n".join(run.key for run in runs).encode()).hexdigest()[:16]


def jobs_of_packs(runs: Iterable[PackedRun], execution: Execution) -> dict[str, list[list[PackedRun]]]:
    """The packs of a study by the name of the job that trains them, one after the other."""
    packs = in_packs(runs, execution.models_per_pack, execution.padding)
    n = execution.packs_per_job
    jobs = [packs[i : i + n] for i in range(0, len(packs), n)]
    return {_job_name([run for pack in job for run in pack]): job for job in jobs}


def packed_speed(flops_per_second: float, gpus: int) -> float:
    """FLOP/s that packed training reaches where language models reach `flops_per_second`."""
    return _PACKED_SHARES[min(gpus, 1)] * flops_per_second


def packed_step_seconds(gpus: int) -> float:
    """The estimated least seconds of a pack's step, however small: the launches of a GPU."""
    return _PACKED_STEP_SECONDS[min(gpus, 1)]


def packed_resources(
    jobs: Iterable[Sequence[Sequence[PackedRun]]], execution: Execution, most_minutes: int, attempt: int
) -> JobResources:
    """Enough for each of these jobs of packs; a further attempt asks for more memory and time."""
    gpus = execution.gpus
    rate = packed_speed(execution.flops_per_second, gpus)
    longest, memory = 0.0, 0.0
    for job in jobs:
        minutes = 0.0
        for pack in map(filled_up, job):
            step_seconds = max(sum(run.step_flops for run in pack) / rate, _STEP_SECONDS_AT_LEAST)
            minutes += max(run.steps for run in pack) * step_seconds / 60
            numbers = sum(run.memory_numbers for run in pack)
            memory = max(memory, (_GPU_START_MB if gpus else _START_MB) + 2 * 4 * numbers / 1e6)
        longest = max(longest, minutes)
    wanted = math.ceil((_START_MINUTES + _MARGIN * longest) * attempt)
    return JobResources(math.ceil(memory * min(attempt, _MOST_MEMORY)), min(most_minutes, wanted))


def _memory_mb(run: Run, gpus: int) -> float:
    shape = run.shape
    if gpus:
        return _GPU_START_MB * gpus + _GPU_STATE_BYTES * shape.total_params / 1e6
    activations = shape.activation_bytes(run.training.batch_size)
    return _START_MB + (_STATE_BYTES * shape.total_params + min(activations, _ACTIVATION_BYTES_AT_MOST)) / 1e6


def keys_pattern(runs: Iterable[AnyRun], shared: Collection[str] = ()) -> str:
    """A regular expression for the keys of these runs, by the digits that end them.

    Args:
        shared: digits that keys of runs of other rules end in too: of those the whole key is looked at.
    """
    keys = [run.key for run in runs]
    digits = one_of(end for key in keys if (end := digits_of(key)) not in shared)
    return rf"(?:[^/]*-{digits}|{one_of(key for key in keys if digits_of(key) in shared)})"


def digits_of(key: str) -> str:
    """The digits of its run's digest that end a key."""
    return key.rpartition("-")[2]


def one_of(words: Iterable[str]) -> str:
    """A regular expression that matches each of these words, and nothing without any.

    Words with a common beginning share it, so that a match looks at the letters of one word, not at all words: the
    rules match each of up to 100,000 keys.
    """
    heads: dict[str, set[str]] = {}
    for word in words:
        heads.setdefault(word[:1], set()).add(word[1:])
    parts = [re.escape(head) + (one_of(tails) if head else "") for head, tails in sorted(heads.items())]
    return f"(?:{'|'.join(parts)})" if parts else "(?!)"


AnyPacked = TypeVar("AnyPacked", bound=PackedRun)


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


def filled_up(pack: Sequence[PackedRun]) -> list[PackedRun]:
    """The runs as the pack trains them, with models of one shape; their operations and memory are the pack's."""
    return kind_of(pack[0]).filled_up(pack)


def pack_flops(pack: Sequence[PackedRun]) -> int:
    """Operations of the matrix products of a pack's steps, if each model leaves after its last step, none earlier."""
    return sum(run.steps * run.step_flops for run in filled_up(pack))


def pack_seconds(pack: Sequence[PackedRun], rate: float, step_seconds: float) -> float:
    """Seconds of a pack at `rate` FLOP/s, and at least `step_seconds` for each step."""
    return max(pack_flops(pack) / rate, max(run.steps for run in pack) * step_seconds)


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
        _, added, one, other = heapq.heappop(offers)
        if one in found and other in found and added <= left:
            left -= added
            both, place = [*found.pop(one), *found.pop(other)], next(new)
            found[place] = sorted(both, key=lambda run: -run.steps)
            for third in found.keys() - {place}:
                offer(third, place)
    return sorted(found.values(), key=lambda pack: -pack[0].steps)
