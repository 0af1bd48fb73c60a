"""Waiting: for the lock of the one writer, and for a tracker that is down. Both say what they wait for."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import TypeVar

T = TypeVar("T")
Say = Callable[[str], None]
LOCK_NAME = "mlflow.lock"
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0  # seconds between two attempts at a tracker that is down


class TrackerDown(Exception):
    """The tracking store can't be reached or used now, and may be later. The message is a clause without a stop."""


class Stopped(Exception):
    """The user asked to stop while something was waited for."""


@contextmanager
def one_writer(results: Path, say: Say, stop: Event | None = None) -> Iterator[None]:
    """Hold the lock `<results>/mlflow.lock`, which the system releases if this process dies.

    Raises:
        Stopped: `stop` was set while another importer held the lock.
    """
    stop, path = stop or Event(), results / LOCK_NAME
    with path.open("a") as file:
        if not _try_lock(file.fileno()):
            say(f"Another importer is writing to MLflow; waiting until it releases {path}.")
            while not _try_lock(file.fileno()):
                if stop.wait(0.1):
                    raise Stopped
        yield


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def patiently(operation: Callable[[], T], patience: float, say: Say, stop: Event | None = None) -> T:
    """Do `operation`; while the tracker is down, do it again, after 1, 2, 4, ... up to 30 seconds.

    The operation must be safe to repeat. A reason is said once, not at every attempt.

    Args:
        patience: seconds from the first failure after which to give up.

    Raises:
        TrackerDown: it was still down after `patience` seconds; the message is a sentence then.
        Stopped: `stop` was set between two attempts.
    """
    stop = stop or Event()
    pause, said, started = FIRST_PAUSE, "", None
    while True:
        try:
            return operation()
        except TrackerDown as error:
            reason, now = str(error), time.monotonic()
            started = now if started is None else started
            left = patience - (now - started)
            if left <= 0:
                raise TrackerDown(
                    f"Gave up after {patience:g} seconds: {reason}. No record is lost: import again once it is back."
                ) from error
            if reason != said:
                said = reason
                say(f"Waiting up to {left:.0f} seconds for the tracker: {reason}.")
        if stop.wait(min(pause, left)):
            raise Stopped
        pause = min(2 * pause, LONGEST_PAUSE)
