"""Which runs share a job: packs that are one computation, and tasks that a job does one after the other."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence
from itertools import combinations, count
from typing import TypeVar

from shapelaw.jobs.resources import Level, Task, level_of, pack_flops, task_minutes
from shapelaw.settings.sections import Execution
from shapelaw.specs.cost import Speed
from shapelaw.specs.kinds import AnyRun, PackedRun, is_packed
from shapelaw.specs.runs import Run

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
    packed: list[PackedRun] = []
    tasks: list[Task] = []
    for run in runs:
        if is_packed(run):
            packed.append(run)
        else:
            tasks.append((run,))
    return tasks + [tuple(pack) for pack in in_packs(packed, execution.models_per_pack, execution.padding)]


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
