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
from threading import Event
from typing import TypeVar
from urllib.parse import unquote, urlsplit

from filelock import FileLock, Timeout

from shapelaw import errors
from shapelaw.errors import UserError, command_line, say
from shapelaw.storage.files import follow_folder

T = TypeVar("T")
Say = Callable[[str], None]
PATIENCE = 600.0  # seconds
LOCAL = "http://127.0.0.1:5000"  # where `make ui` serves
LOCK_NAME = "mlflow.lock"
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0  # seconds between two attempts at a tracker that is down
REPEAT = 60.0  # seconds between two reports of a long import
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


def tracking_parser(description: str | None, of_study: bool = True) -> argparse.ArgumentParser:
    """A parser with the options of every tracking script, of one study or of all, without a limit of patience."""
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
        "--artifact-root",
        metavar="URI",
        help="folder or URI, such as s3://BUCKET/NAME, for the artifacts of new experiments (default: the store's own)",
    )
    if of_study:
        parser.set_defaults(patience=PATIENCE)
        parser.add_argument("--study", required=True, help="name of the study, and of its experiment")
        parser.add_argument("--submitted", type=Path, help="results/submitted/<digest>.json, with the grids")
    return parser


def default_uri(results: Path) -> str:
    """The SQLite store of a results folder."""
    return f"sqlite:///{results.absolute()}/mlflow.db"


def tracking_uri(arguments: argparse.Namespace, results: Path) -> str:
    """The tracking URI: from the command line, else from the environment, else SQLite in the results folder."""
    return arguments.uri or os.environ.get(URI_VARIABLE) or default_uri(results)


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
    """An import's progress: what was done, when the last of it was, and what was said of it.

    Args:
        say: prints a sentence.
        repeat: seconds between two reports of a long import.

    Attributes:
        done: number of things that are done for good.
        since: when the last one was done, by the monotonic clock.
    """

    def __init__(self, say: Say, repeat: float = REPEAT) -> None:
        self.say, self.repeat, self.done = say, repeat, 0
        self.since = self._said = time.monotonic()

    def advance(self, report: str) -> None:
        """Note that something is done for good, and report it where nothing was reported for long."""
        self.done, self.since = self.done + 1, time.monotonic()
        if self.since >= self._said + self.repeat:
            self._said = self.since
            self.say(report)


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
        if error.errno != errno.ENOLCK:
            kind = TrackerDown if error.errno in WEATHER else UserError
            raise kind(f"the lock {path} can't be written ({error.strerror})") from error
        # some network file systems
        say(f"The file system of {results} has no locks; make sure that only one importer runs at a time.")
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
    stop, start, pause, reasons = stop or Event(), time.monotonic(), FIRST_PAUSE, set[str]()
    while True:
        try:
            result = operation()
        except TrackerDown as down:
            if stop.is_set():
                raise Stopped from down
            reason, left = str(down), patience - (time.monotonic() - max(start, progress.since))
            if left <= 0:
                raise TrackerDown(
                    f"Gave up after {patience:g} seconds: {reason}. No record is lost: import again once it is back."
                ) from down
            if reason not in reasons:
                reasons.add(reason)
                limit = f" up to {left:.0f} seconds" if left < float("inf") else ""
                progress.say(f"Waiting{limit} for the tracker: {reason}.")
            stop.wait(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
        else:
            if reasons:
                progress.say("The tracker is back.")
            return result
