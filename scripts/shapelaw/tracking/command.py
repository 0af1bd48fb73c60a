"""What the tracking scripts have in common: their options and exit codes. Light: no mlflow."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from shapelaw.errors import UserError
from shapelaw.tracking.waiting import TrackerDown

EXIT_CODES = (
    "Exit codes: 0 done, 2 wrong input, 3 the tracker was down for too long (nothing is lost; repeat)."
)


def tracking_parser(description: str | None) -> argparse.ArgumentParser:
    """A parser with the options that every tracking script has."""
    parser = argparse.ArgumentParser(
        description=description, epilog=EXIT_CODES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results", required=True, type=Path, help="results folder: runs/, checkpoints/")
    parser.add_argument(
        "--uri",
        help="tracking URI: sqlite:///PATH.db, http(s)://HOST:PORT, postgresql://...; credentials best in "
        "MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD (default: SQLite at <results>/mlflow.db)",
    )
    parser.add_argument(
        "--patience",
        type=float,
        default=600.0,
        help="seconds to wait for a tracker that is down (default 600)",
    )
    return parser


def add_silence_option(parser: argparse.ArgumentParser) -> None:
    """The option that decides when a silent run is dead."""
    parser.add_argument(
        "--silence",
        type=float,
        default=10.0,
        help="minutes without a sign of life after which a run that says RUNNING is KILLED (default 10)",
    )


def exit_code(operation: Callable[[], None]) -> int:
    """Do the operation; what the user or the tracker did wrong goes to standard error as a sentence."""
    try:
        operation()
    except UserError as error:
        say(str(error))
        return 2
    except TrackerDown as error:
        say(str(error))
        return 3
    return 0


def check_results(results: Path) -> Path:
    """The results folder.

    Raises:
        UserError: there is none.
    """
    if not results.is_dir():
        raise UserError(f"There is no results folder {results}; train first, or correct --results.")
    return results


def say(sentence: str) -> None:
    """Tell the user, on standard error."""
    print(sentence, file=sys.stderr, flush=True)
