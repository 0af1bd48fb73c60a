"""Wait for the lock of the one writer, and for a tracker that is down or slow, and say so."""

from __future__ import annotations

import errno
import fcntl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import TypeVar

from shapelaw.errors import UserError
from shapelaw.storage.files import follow_folder

T = TypeVar("T")
Say = Callable[[str], None]
LOCK_NAME = "mlflow.lock"
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0  # seconds between two attempts at a tracker that is down
NOTICE, REPEAT = 10.0, 60.0  # seconds at one step until it is reported, and between two reports
WEATHER = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ESTALE}  # of a disk; it passes


class TrackerDown(Exception):
    """The tracking store can't be reached or used now, and may be later. The message is a clause without a stop."""


class Stopped(Exception):
    """The user asked to stop while the import was waiting."""


class ImportProgress:
    """An import's current step, reported when it takes long, and the work that is done.

    Args:
        notice: seconds at one step after which it is reported.
        repeat: seconds until it is reported again.
    """

    def __init__(self, say: Say, notice: float = NOTICE, repeat: float = REPEAT) -> None:
        self.say, self.notice, self.repeat = say, notice, repeat
        self.done = 0
        self.down_since: float | None = None
        self._step = ("", 0.0)

    def at(self, step: str) -> None:
        """Begin a step, named by a clause such as "writing a run"; a step without a name is never reported."""
        self._step = (step, time.monotonic())

    def advance(self) -> None:
        """Note that something is done for good."""
        self.done += 1
        self.up()

    def up(self) -> None:
        """Note that the tracker works; report it where it was reported down."""
        if self.down_since is not None:
            self.say(f"The tracker is back after {time.monotonic() - self.down_since:.0f} seconds.")
            self.down_since = None

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Report the step that the block is at when it takes long."""
        ended = Event()
        self.at("")
        watcher = Thread(target=self._watch, args=(ended,), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()

    def _watch(self, ended: Event) -> None:
        next_time = 0.0
        while not ended.wait(min(self.notice, self.repeat) / 10):
            (step, since), now = self._step, time.monotonic()
            if step and now >= max(since + self.notice, next_time):
                next_time = now + self.repeat
                self.say(f"The tracker is slow: {now - since:.0f} seconds at {step}; still waiting.")


@contextmanager
def one_writer(results: Path, say: Say, stop: Event | None = None) -> Iterator[None]:
    """Hold the lock `<results>/mlflow.lock`, which the system releases if this process dies.

    The lock keeps the importers of one results folder apart. Those of two machines are kept apart by what they see
    in the store (`shapelaw.tracking.importer`).

    Raises:
        Stopped: `stop` was set while another importer held the lock.
        TrackerDown: the disk of the results folder is full or gone.
        UserError: the folder can't be written to.
    """
    stop, path = stop or Event(), results / LOCK_NAME
    try:
        file = path.open("a")
        follow_folder(path)
    except OSError as error:
        if error.errno in WEATHER:
            raise TrackerDown(f"the lock {path} can't be written ({error.strerror})") from error
        raise UserError(
            f"The lock {path} can't be written ({error.strerror}); make it and its folder writable."
        ) from error
    with file:
        try:
            if not _try_lock(file.fileno()):
                say(f"Another importer is writing to MLflow; waiting until it releases {path}.")
                while not _try_lock(file.fileno()):
                    if stop.wait(0.1):
                        raise Stopped
        except OSError as error:  # some network file systems
            say(
                f"The file system of {results} has no locks ({error.strerror}); "
                "make sure that only one importer runs at a time."
            )
        yield


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def patiently(
    operation: Callable[[], T],
    patience: float,
    say: Say,
    stop: Event | None = None,
    progress: ImportProgress | None = None,
) -> T:
    """Run `operation`; while the tracker is down, run it again after 1, 2, 4, ... up to 30 seconds.

    The operation must be safe to repeat. A reason is reported once, not at every attempt.

    Args:
        patience: seconds without any progress after which to give up.
        progress: progress of the operation. Each thing done starts the patience afresh.

    Raises:
        TrackerDown: nothing was done for `patience` seconds; the message is then a sentence.
        Stopped: `stop` was set between two attempts.
    """
    stop, progress = stop or Event(), progress or ImportProgress(say)
    pause, said, done, failing_since = FIRST_PAUSE, dict[str, float](), -1, 0.0
    while True:
        try:
            with progress.watched():
                result = operation()
            progress.up()
            return result
        except TrackerDown as error:
            reason, now = str(error), time.monotonic()
            if progress.done > done:  # the first failure, or the first one after something was done
                pause, done, failing_since = FIRST_PAUSE, progress.done, now
                said = {text: at for text, at in said.items() if now - at < progress.repeat}
            left = patience - (now - failing_since)
            if left <= 0:
                raise TrackerDown(
                    f"Gave up after {patience:g} seconds: {reason}. No record is lost: import again once it is back."
                ) from error
            if reason not in said:
                said[reason] = now
                progress.down_since = now if progress.down_since is None else progress.down_since
                limit = f" up to {left:.0f} seconds" if left < float("inf") else ""
                say(f"Waiting{limit} for the tracker: {reason}.")
        if stop.wait(min(pause, left)):
            raise Stopped
        pause = min(2 * pause, LONGEST_PAUSE)
