"""Which runs share a job: packs that are one computation, and small runs one after the other; and the names of jobs."""

from __future__ import annotations

import hashlib
import heapq
import math
import re
from collections.abc import Collection, Iterable, Sequence
from itertools import combinations, count
from typing import TypeVar

from shapelaw.jobs.resources import level_of, pack_flops, train_minutes
from shapelaw.settings.sections import MOST_RUNS, Execution
from shapelaw.specs.cost import Speed
from shapelaw.specs.kinds import AnyRun, PackedRun
from shapelaw.specs.runs import Run

AnyPacked = TypeVar("AnyPacked", bound=PackedRun)
_IN_TURN_MINUTES = 1.0  # training in a job of small runs: ten times its start or more


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
    # longest first, each to the shortest job so far: no job ends more than its last run after the others
    loads = [(0.0, 0, place) for place in range(number)]  # minutes, runs, which job
    jobs: list[list[Run]] = [[] for _ in loads]
    for run in sorted(short, key=lambda run: -minutes[run]):
        load, count, place = heapq.heappop(loads)
        jobs[place].append(run)
        if count + 1 < MOST_RUNS:
            heapq.heappush(loads, (load + minutes[run], count + 1, place))
    return [job for job in jobs if job] + [[run] for run in runs if minutes[run] >= _IN_TURN_MINUTES]


def jobs_of_packs(runs: Iterable[PackedRun], execution: Execution) -> dict[str, list[list[PackedRun]]]:
    """The packs of a study by the name of the job that trains them, one after the other."""
    packs = in_packs(runs, execution.models_per_pack, execution.padding)
    n = execution.packs_per_job
    jobs = [packs[i : i + n] for i in range(0, len(packs), n)]
    return {_job_name([run for pack in job for run in pack]): job for job in jobs}


def _job_name(runs: Sequence[AnyRun]) -> str:
    return hashlib.sha256("\n".join(run.key for run in runs).encode()).hexdigest()[:16]


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
