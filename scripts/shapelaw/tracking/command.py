"""Options and exit codes that the tracking scripts share. Light: no mlflow."""

from __future__ import annotations

import argparse
import os
import traceback
from collections.abc import Callable
from pathlib import Path

from shapelaw import errors
from shapelaw.errors import UserError, say
from shapelaw.tracking.redaction import URI_VARIABLE, redact
from shapelaw.tracking.waiting import NOTICE, TrackerDown

PATIENCE = 600.0  # seconds

EXIT_CODES = (
    "Exit codes: 0 done, 2 wrong input, 3 the tracker was down for too long (nothing is lost; repeat), 141 the "
    "reader of its output is gone."
)


def tracking_parser(description: str | None) -> argparse.ArgumentParser:
    """A parser with the options of every tracking script."""
    parser = argparse.ArgumentParser(
        description=description, epilog=EXIT_CODES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
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
        help=f"seconds after which it is said that the tracker is slow (default {NOTICE:g})",
    )
    return parser


def tracking_uri(arguments: argparse.Namespace, results: Path) -> str:
    """The tracking URI: from the command line, else from the environment, else SQLite in the results folder."""
    from shapelaw.tracking.store import default_uri

    return arguments.uri or os.environ.get(URI_VARIABLE) or default_uri(results)


def add_silence_option(parser: argparse.ArgumentParser) -> None:
    """Add the option that decides when a silent run counts as dead."""
    parser.add_argument(
        "--silence",
        type=float,
        default=10.0,
        help="minutes without a sign of life after which a run that says RUNNING is KILLED (default 10)",
    )


def exit_code(operation: Callable[[], None], uri: str | None) -> int:
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


def check_results(results: Path) -> Path:
    """The results folder.

    Raises:
        UserError: the folder doesn't exist.
    """
    if not results.is_dir():
        raise UserError(f"There is no results folder {results}; train first, or correct --results.")
    return results
