"""Errors of MLflow, the network and the database as sentences: wrong, down, or changed by another writer."""

from __future__ import annotations

import errno
import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

import requests
from mlflow.exceptions import MlflowException
from sqlalchemy.exc import ArgumentError, OperationalError, SQLAlchemyError
from urllib3.exceptions import ReadTimeoutError

from shapelaw.errors import UserError
from shapelaw.tracking.redaction import redact
from shapelaw.tracking.waiting import WEATHER, TrackerDown

_DOWN = {
    "INTERNAL_ERROR",
    "TEMPORARILY_UNAVAILABLE",
    "DEADLINE_EXCEEDED",
    "REQUEST_LIMIT_EXCEEDED",
    "RESOURCE_EXHAUSTED",
    "ABORTED",
}
_HALF_MIGRATED = re.compile("already exists|duplicate column|no such (table|column)")
_REFUSED = ("UNAUTHENTICATED", "PERMISSION_DENIED", "CUSTOMER_UNAUTHORIZED")
_REFUSED_BY_DATABASE = re.compile(
    "authentication failed|no password supplied|Access denied|no pg_hba.conf entry|(role|database) .* does not exist"
)
_LOST_CONNECTION = re.compile("connection|cursor|SSL|server closed", re.IGNORECASE)
_NOT_UNIQUE = re.compile("unique constraint|UniqueViolation|Duplicate entry", re.IGNORECASE)
_NOT_ACTIVE = re.compile("must be in the '?(active|deleted)'? state|No Experiment with id", re.IGNORECASE)


def is_conflict(error: MlflowException) -> bool:
    """True where MLflow refuses because another writer got in between: read the store again."""
    code, text = error.error_code, str(error)
    return (
        code in ("RESOURCE_ALREADY_EXISTS", "RESOURCE_DOES_NOT_EXIST")
        or _NOT_UNIQUE.search(text) is not None
        or (code == "INVALID_PARAMETER_VALUE" and _NOT_ACTIVE.search(text) is not None)
    )


@contextmanager
def tracker_errors(uri: str, opening: bool = False) -> Iterator[None]:
    """Turn errors of MLflow and the database into `UserError` or `TrackerDown`, with secrets removed.

    An error that is neither, such as a value that MLflow refuses, is a bug and passes unchanged.
    """
    shown = redact(uri, uri)
    try:
        yield
    except MlflowException as error:
        translated = _from_mlflow(error, uri, shown)
        if translated is None:
            raise
        raise translated from error
    except OperationalError as error:
        reason = _first_line(error, uri)
        if opening and "unable to open database file" in reason:
            raise UserError(f"The database file of {shown} can't be opened ({reason}).") from error
        if opening and _HALF_MIGRATED.search(reason):
            raise UserError(_broken(shown, reason)) from error
        if opening and _REFUSED_BY_DATABASE.search(reason):
            raise UserError(f"The database {shown} refuses us ({reason}); correct the URI.") from error
        raise TrackerDown(f"{shown} is not available ({reason})") from error
    except ArgumentError as error:
        raise UserError(f"The tracking URI {shown!r} is not a valid database URI.") from error
    except SQLAlchemyError as error:
        reason = _one_line(redact(str(error), uri))
        if not opening or _LOST_CONNECTION.search(reason):
            raise TrackerDown(f"{shown} is not available ({reason})") from error
        raise UserError(_broken(shown, reason)) from error
    except ModuleNotFoundError as error:
        raise UserError(f"The store {shown} needs the Python package {error.name}; install it.") from error
    except OSError as error:
        if opening and error.errno not in WEATHER:
            raise UserError(f"The store {shown} can't be opened ({redact(str(error), uri)}).") from error
        raise TrackerDown(f"{shown} is not available ({_one_line(redact(str(error), uri))})") from error


def _from_mlflow(error: MlflowException, uri: str, shown: str) -> Exception | None:
    reason, code = _one_line(redact(str(error), uri)), error.error_code
    if code in _REFUSED:
        return UserError(
            f"The tracker {shown} refuses the credentials; set MLFLOW_TRACKING_USERNAME and "
            "MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN."
        )
    if "unsupported URI" in reason:
        return UserError(
            f"MLflow has no tracking store for {shown!r}; use sqlite:///PATH.db, "
            "http(s)://HOST:PORT, or a database URI such as postgresql://..."
        )
    if code == "ENDPOINT_NOT_FOUND" or "valid JSON format" in reason or "Invalid url" in reason:
        return UserError(f"There is no MLflow tracking server at {shown}; check the URI.")
    if "out-of-date database schema" in reason:
        return UserError(
            f"The store {shown} was made by another version of MLflow; back it up and run `mlflow db upgrade` on it."
        )
    if status := re.search(r"too many (\d+) error responses|failed with error code (5\d\d|429)", reason):
        return TrackerDown(f"{shown} is in trouble (HTTP status {status[1] or status[2]}; its log says why)")
    if plain := _network_reason(error):
        return TrackerDown(f"{shown} does not answer ({plain})")
    causes = _causes(error)
    database = next((each for each in causes if isinstance(each, sqlite3.Error | SQLAlchemyError)), None)
    if isinstance(database, OperationalError):
        return TrackerDown(f"{shown} is not available ({_first_line(database, uri)})")
    if database is not None or code in _DOWN or _database_trouble(reason):
        return TrackerDown(f"{shown} does not answer as it should ({reason})")
    if is_conflict(error):
        return TrackerDown(f"{shown} was changed by someone else meanwhile ({reason})")
    return None


def _causes(error: BaseException) -> list[BaseException]:
    """The exceptions that led to this one, the latest first."""
    causes: list[BaseException] = []
    cause = error.__cause__ or error.__context__
    while cause is not None and cause not in causes:
        causes.append(cause)
        cause = cause.__cause__ or cause.__context__
    return causes


def _network_reason(error: MlflowException) -> str:
    """The network's error in two or three words; empty where it was another one."""
    causes = _causes(error)
    if any(isinstance(each, requests.exceptions.Timeout | ReadTimeoutError) for each in causes):
        return "no answer in time"
    if any(isinstance(each, requests.exceptions.RequestException) for each in causes):
        for each in reversed(causes):  # the operating system's error comes last
            if isinstance(each, OSError) and each.errno:
                return each.strerror or errno.errorcode.get(each.errno, str(each.errno))
        return "the connection broke"
    return ""


def _database_trouble(reason: str) -> bool:
    """True where a server's refusal is its database's error, which it sends as a bad request."""
    return "psycopg" in reason or "sqlalche.me" in reason


def _broken(shown: str, reason: str) -> str:
    return (
        f"The store {shown} is not a whole MLflow store ({reason}); delete or repair it and import again: "
        "the records hold everything."
    )


def _first_line(error: OperationalError, uri: str) -> str:
    """The database's error, without the advice that some add."""
    lines = str(error.orig).strip().splitlines() or [type(error.orig).__name__]
    return _one_line(redact(lines[0], uri))


def _one_line(text: str, limit: int = 300) -> str:
    line = " ".join(text.split()).rstrip(".")
    return line if len(line) <= limit else line[:limit] + " ..."
