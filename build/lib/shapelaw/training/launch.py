"""What a process asks of the system: several processes of one command, out of reach of other machines, signals, memory.

`torchrun` does the same, but its rendezvous listens on every network interface and unpickles whatever it receives.
Here the processes find each other by a file in a private folder, and talk only over the loopback interface.
"""

from __future__ import annotations

import ctypes
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence, Set
from pathlib import Path
from types import FrameType
from typing import Any

WATCHED = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT)
STORE_VARIABLE = "SHAPELAW_STORE"  # environment variable: the file at which the processes meet
GRACE_SECONDS = 30.0  # seconds for the others to end by themselves, once one has failed
_LOOPBACK = "lo" if sys.platform == "linux" else "lo0"
_PR_SET_PDEATHSIG = 1  # of Linux's prctl


def keep_freed_memory() -> None:
    """Return free memory to the system, and let glibc keep memory that is freed from now on.

    Otherwise every step returns its megabytes and faults them in again: a step of the decoder then takes 1.1 to 1.25
    times as long, one of 4 packed memorizers with 20 heads 1.5 to 2 times. Other C libraries are left alone.
    """
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):
        trim_threshold, mmap_threshold = -1, -3
        library.mallopt(mmap_threshold, 2**30)
        library.mallopt(trim_threshold, 2**30)
        library.malloc_trim(0)


class StopRequest:
    """While entered, the watched signals set `received` instead of ending the process."""

    def __init__(self) -> None:
        self.received: signal.Signals | None = None
        self._previous: dict[signal.Signals, Any] = {}

    def __enter__(self) -> StopRequest:
        for number in WATCHED:
            self._previous[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        self.received = signal.Signals(number)


def launch(processes: int, command: Sequence[str]) -> int:
    """Run `command` in that many processes and wait for all; each receives the signals to stop.

    Returns:
        0, or the exit code of the first process that failed (128 + n where signal n ended it).
    """
    with tempfile.TemporaryDirectory(prefix="shapelaw-") as folder:
        children: list[subprocess.Popen[bytes]] = []
        told = set[int]()

        def pass_on(number: int, frame: FrameType | None) -> None:
            told.update(child.pid for child in children)
            _send(children, number)

        previous = {number: signal.signal(number, pass_on) for number in WATCHED}
        try:
            for rank in range(processes):
                environment = _environment(rank, processes, Path(folder, "store"))
                children.append(subprocess.Popen(command, env=environment, preexec_fn=_end_with_parent))
            return _wait(children, told)
        finally:
            for child in children:
                child.kill()
                child.wait()
            for number, handler in previous.items():
                signal.signal(number, handler)


def _environment(rank: int, processes: int, store: Path) -> dict[str, str]:
    """The variables that `torchrun` would set, and the interface; the user's own take precedence."""
    chosen = {"GLOO_SOCKET_IFNAME": _LOOPBACK, "NCCL_SOCKET_IFNAME": _LOOPBACK, "OMP_NUM_THREADS": "1"}
    place = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(processes)}
    return {**chosen, **os.environ, **place, STORE_VARIABLE: str(store)}


def _wait(children: Sequence[subprocess.Popen[bytes]], told: Set[int]) -> int:
    """Wait for all children; once one has failed, ask the others to stop, then kill them.

    Args:
        told: process numbers of the children that a signal was passed on to; they are stopping already, and are not
            asked again.
    """
    failed, ends = 0, math.inf
    while None in (codes := [child.poll() for child in children]) and time.monotonic() < ends:
        if not failed and any(codes):
            failed, ends = next(filter(None, codes)), time.monotonic() + GRACE_SECONDS
            _send([child for child in children if child.pid not in told], signal.SIGTERM)
        time.sleep(0.05)
    failed = failed or next(filter(None, codes), 0)
    return 128 - failed if failed < 0 else failed


def _send(children: Sequence[subprocess.Popen[bytes]], number: int) -> None:
    for child in children:
        if child.poll() is None:
            child.send_signal(number)


def _end_with_parent() -> None:
    """Let Linux send this child a signal to stop when its parent is killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
