"""Packs: runs that are trained together as one computation, and their cost."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from itertools import combinations, count
from typing import TypeVar

from shapelaw.specs.kinds import PackedRun, kind_of

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
