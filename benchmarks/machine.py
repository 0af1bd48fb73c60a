"""What benchmarks share: the machine that they print, contestants by turns, parts while time lasts, and tables."""

from __future__ import annotations

import os
import platform
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

Part = TypeVar("Part")


def machine() -> str:
    """CPU model, usable cores, Python."""
    named = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    model, cores = named[1] if named else platform.processor(), len(os.sched_getaffinity(0))
    return f"{model}, {cores} cores, Python {platform.python_version()}"


def alternate(
    *actions: Callable[[], object],
    rounds: int,
    clock: Callable[[], float] = time.perf_counter,
    least_seconds: float = 0.0,
    finish: Callable[[], object] = lambda: None,
) -> list[list[float]]:
    """Seconds of each action in each round, one after the other (A B A B ...), after one round of warm-up.

    Args:
        least_seconds: that a turn takes, about; an action is repeated in it by its time in the warm-up.
        finish: waits for what an action has begun.
    """

    def seconds_of(action: Callable[[], object], calls: int) -> float:
        start = clock()
        for _ in range(calls):
            action()
        finish()
        return (clock() - start) / calls

    calls = [max(1, round(least_seconds / max(seconds_of(action, 1), 1e-9))) for action in actions]
    turns = [[seconds_of(*turn) for turn in zip(actions, calls, strict=True)] for _ in range(rounds)]
    return [list(times) for times in zip(*turns, strict=True)]


def while_time_lasts(parts: Iterable[Part], seconds: float) -> Iterator[Part]:
    """The parts of a work, as long as another one that takes as long as the longest before ends in time."""
    started, longest = time.monotonic(), 0.0
    for part in parts:
        begun = time.monotonic()
        if begun - started + longest > seconds:
            print("The time is up; call it again for the rest.")
            return
        yield part
        longest = max(longest, time.monotonic() - begun)


def markdown(rows: Sequence[Mapping[str, object]]) -> str:
    """A table in Markdown of rows that have the same columns; empty without any."""
    if not rows:
        return ""
    lines = [rows[0].keys(), ["---"] * len(rows[0]), *(row.values() for row in rows)]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)
