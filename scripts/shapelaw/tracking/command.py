"""What the tracking commands share: options and exit codes, secrets, the lock of the one writer, patience.

Light: no mlflow.
"""

from __future__ import annotations

import argparse
import errno
import gc
import os
import re
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import TypeVar
from urllib.parse import unquote, urlsplit

from filelock import FileLock, Timeout
from tenacity import Retrying, retry_if_exception_type

from shapelaw import errors
from shapelaw.errors import UserError, command_line, say
from shapelaw.storage.files import follow_folder

T = TypeVar("T")
Say = Callable[[str], None]
PATIENCE = 600.0  # seconds
LOCAL = "http://127.0.0.1:5000"  # where `make ui` serves
LOCK_NAME = "mlflow.lock"
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0  # seconds between two attempts at a tracker that is down
NOTICE, REPEAT = 10.0, 60.0  # seconds at one step until it is reported, and between two reports
WEATHER = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ESTALE}  # of a disk; it passes
URI_VARIABLE = "MLFLOW_TRACKING_URI"
SECRETS = ("MLFLOW_TRACKING_PASSWORD", "MLFLOW_TRACKING_TOKEN")  # environment variables
EXIT_CODES = (
    "Exit codes: 0 done, 2 wrong input, 3 the tracker was down for too long (nothing is lost; repeat), 141 the "
    "reader of its output is gone."
)


class TrackerDown(Exception):
    """The tracking store can't be reached or used now, and may be later. The message is a clause without a stop."""


class Stopped(Exception):
    """The user asked to stop while the import was waiting."""


def tracking_parser(description: str | None) -> argparse.ArgumentParser:
    """A parser with the options of every tracking script."""
    parser = command_line(description)
    parser.epilog = EXIT_CODES
    parser.add_argument("--results", required=True, type=Path, help="results folder: runs/, checkpoints/")
    parser.add_argument(
        "--uri",
        help="tracking URI: sqlite:///PATH.db, http(s)://HOST:PORT, postgresql://... (default: MLFLOW_TRACKING_URI, "
        "else SQLite at <results>/mlflow.db). Other users see the command line: write no password here, set "
        "MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or put the whole URI into MLFLOW_TRACKING_URI",
    )
    parser.add_argument(
        "--patience",
        type=float,
        help="seconds to wait for a tracker that is down; what gets done starts them afresh "
        "(default 600; when following, until it is back)",
    )
    parser.add_argument(
        "--notice",
        type=float,
        default=NOTICE,
        help=f"seconds after which a slow tracker is reported (default {NOTICE:g})",
    )
    return parser


def default_uri(results: Path) -> str:
    """The SQLite store of a results folder."""
    return f"sqlite:///{results.absolute()}/mlflow.db"


def tracking_uri(arguments: argparse.Namespace, results: Path) -> str:
    """The tracking URI: from the command line, else from the environment, else SQLite in the results folder."""
    return arguments.uri or os.environ.get(URI_VARIABLE) or default_uri(results)


def add_silence_option(parser: argparse.ArgumentParser) -> None:
    """Add the option that decides when a silent run counts as dead."""
    parser.add_argument(
        "--silence",
        type=float,
        default=10.0,
        help="minutes without a sign of life after which a run that says RUNNING is KILLED (default 10)",
    )


def exit_code(operation: Callable[[], int | None], uri: str | None) -> int:
    """Run the operation and return the exit code; faults of the user or the tracker go to standard error as sentences.

    Args:
        uri: tracking URI of the command line; its password is never shown.
    """
    try:
        return errors.exit_code(operation)
    except TrackerDown as error:
        say(str(error))
        return 3
    except Exception:  # a bug: show its traceback, without passwords of URIs
        say(redact(traceback.format_exc(), uri or ""))
        return 1


@contextmanager
def loading() -> Iterator[None]:
    """Import MLflow inside: without the garbage collector, which would go through its half a million objects often.

    What was made inside is never collected: modules stay.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def check_results(results: Path) -> Path:
    """The results folder.

    Raises:
        UserError: the folder doesn't exist.
    """
    if not results.is_dir():
        raise UserError(f"There is no results folder {results}; train first, or correct --results.")
    return results


def address(uri: str) -> str:
    """The UI's address for a tracking URI, without a password: the server's, or that of `make ui`."""
    if urlsplit(uri).scheme not in ("http", "https"):
        return LOCAL
    return redact(uri, uri).replace("***@", "").partition("?")[0].rstrip("/")


def redact(text: str, uri: str = "") -> str:
    """The text without user information and queries of URIs, and without MLflow's credentials.

    Args:
        uri: tracking URI in use; its password is cut out wherever it stands.
    """
    secrets = [os.environ.get(name, "") for name in SECRETS]
    secrets += [*_secrets_of(uri), *_secrets_of(os.environ.get(URI_VARIABLE, ""))]
    for secret in sorted(secrets, key=len, reverse=True):  # one may be part of another
        if secret:
            text = text.replace(secret, "***")
    text = re.sub(r"(\w://)\S*@", r"\1***@", text)
    return re.sub(r"(\w://[^\s'\"?]*)\?[^\s'\"]*", r"\1?***", text)


def _secrets_of(uri: str) -> Iterator[str]:
    """The user information of a URI and its password, as written and decoded, also where the scheme is missing."""
    if uri.startswith("sqlite"):
        return  # a path may have an @ in it
    user_information = uri.rpartition("://")[2].lstrip("/").rpartition("@")[0]
    password = user_information.partition(":")[2]
    yield from (user_information, password, unquote(password))


class ImportProgress:
    """An import's current step, reported when it takes long; the work that is done; the tracker's failures.

    Args:
        notice: seconds at one step after which it is reported.
        repeat: seconds until it is reported again.

    Attributes:
        done: number of things that are done for good.
        failures: of the tracker, one after the other, since something was done.
    """

    def __init__(self, say: Say, notice: float = NOTICE, repeat: float = REPEAT) -> None:
        self.say, self.notice, self.repeat = say, notice, repeat
        self.done, self.failures = 0, 0
        self._down_since: float | None = None
        self._failing_since = 0.0
        self._said: dict[str, float] = {}  # when each reason was reported
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
        self.failures = 0
        if self._down_since is not None:
            self.say(f"The tracker is back after {time.monotonic() - self._down_since:.0f} seconds.")
            self._down_since = None

    def fail(self, reason: str, patience: float) -> None:
        """Note that the tracker failed, and report that it is waited for; a reason is reported once."""
        now = time.monotonic()
        if self.failures == 0:
            self._failing_since = now
            self._said = {text: at for text, at in self._said.items() if now - at < self.repeat}
        self.failures += 1
        self.at("")
        if (left := self.left(patience)) > 0 and reason not in self._said:
            self._said[reason] = now
            self._down_since = self._down_since or now
            limit = f" up to {left:.0f} seconds" if left < float("inf") else ""
            self.say(f"Waiting{limit} for the tracker: {reason}.")

    def left(self, patience: float) -> float:
        """Seconds of the patience that are left; each thing done starts it afresh."""
        return patience - (time.monotonic() - self._failing_since)

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

    Raises:
        Stopped: `stop` was set while another importer held the lock.
        TrackerDown: the disk of the results folder is full or gone.
        UserError: the folder can't be written to.
    """
    stop, path = stop or Event(), results / LOCK_NAME
    lock = FileLock(path)
    try:
        try:
            lock.acquire(blocking=False)
        except Timeout:
            say(f"Another importer is writing to MLflow; waiting until it releases {path}.")
            lock.acquire(poll_interval=0.1, cancel_check=stop.is_set)
        follow_folder(path)
    except Timeout as cancelled:
        raise Stopped from cancelled
    except OSError as error:
        if error.errno == errno.ENOLCK:  # some network file systems
            say(
                f"The file system of {results} has no locks ({error.strerror}); "
                "make sure that only one importer runs at a time."
            )
        elif error.errno in WEATHER:
            raise TrackerDown(f"the lock {path} can't be written ({error.strerror})") from error
        else:
            raise UserError(
                f"The lock {path} can't be written ({error.strerror}); make it and its folder writable."
            ) from error
    try:
        yield
    finally:
        lock.release()


def patiently(
    operation: Callable[[], T], patience: float, progress: ImportProgress, stop: Event | None = None
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
    stop = stop or Event()

    def attempt() -> T:
        try:
            return operation()
        except TrackerDown as reason:
            progress.fail(str(reason), patience)
            raise

    def pause(_: object) -> float:
        left = progress.left(patience)
        return float(min(FIRST_PAUSE * 2 ** min(progress.failures - 1, 10), LONGEST_PAUSE, left))

    def sleep(seconds: float) -> None:
        if stop.wait(seconds):
            raise Stopped

    retrying = Retrying(
        retry=retry_if_exception_type(TrackerDown),
        wait=pause,
        stop=lambda _: progress.left(patience) <= 0,
        sleep=sleep,
        reraise=True,
    )
    try:
        with progress.watched():
            result = retrying(attempt)
    except TrackerDown as reason:
        raise TrackerDown(
            f"Gave up after {patience:g} seconds: {reason}. No record is lost: import again once it is back."
        ) from reason
    progress.up()
    return result
