"""What every benchmark prints beside its numbers: the machine; and contestants by turns."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from pathlib import Path


def machine() -> str:
    """CPU model, usable cores, Python."""
    info = Path("/proc/cpuinfo")
    names = [
        line.split(":", 1)[1].strip()
        for line in info.read_text().splitlines()
        if line.startswith("model name")
    ]
    cores = len(os.sched_getaffinity(0))
    return f"{names[0] if names else platform.processor()}, {cores} cores, Python {platform.python_version()}"


def alternate(
    *actions: Callable[[], object], rounds: int, clock: Callable[[], float] = time.perf_counter
) -> list[list[float]]:
    """Seconds of each action in each round, one after the other (A B A B ...), after one round of warm-up."""
    seconds: list[list[float]] = [[] for _ in actions]
    for number in range(rounds + 1):
        for action, times in zip(actions, seconds, strict=True):
            start = clock()
            action()
            if number:
                times.append(clock() - start)
    return seconds
