"""The tracking store: opened, created whole or not at all, and its errors said in sentences without secrets."""

from __future__ import annotations

import logging
import os
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

import sqlalchemy
from mlflow.entities import Experiment, Run, ViewType
from mlflow.exceptions import MlflowException
from mlflow.store.db.db_types import DATABASE_ENGINES
from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore
from mlflow.tracking import MlflowClient
from sqlalchemy.exc import ArgumentError, OperationalError, SQLAlchemyError

from shapelaw.errors import UserError
from shapelaw.tracking.waiting import TrackerDown

KEY, STUDY, SUMMARY_OF = "key", "study", "summary_of"  # tags: of a training run; of a study's summary run
PAGE = 1000  # runs a page of a search
SECRETS = ("MLFLOW_TRACKING_PASSWORD", "MLFLOW_TRACKING_TOKEN")
_DOWN = {
    "INTERNAL_ERROR",
    "TEMPORARILY_UNAVAILABLE",
    "DEADLINE_EXCEEDED",
    "REQUEST_LIMIT_EXCEEDED",
    "RESOURCE_EXHAUSTED",
    "ABORTED",
    "RESOURCE_DOES_NOT_EXIST",  # someone deleted it meanwhile
}
_HALF_MIGRATED = re.compile("already exists|duplicate column|no such (table|column)")
_REFUSED = ("UNAUTHENTICATED", "PERMISSION_DENIED", "CUSTOMER_UNAUTHORIZED")


@dataclass(frozen=True)
class Store:
    """An open tracking store.

    Attributes:
        uri: the tracking URI; may hold a password, so show `redact(uri)`.
        client: MLflow's client of it.
        artifacts: URI of the folder for artifacts; None where a tracking server decides.
    """

    uri: str
    client: MlflowClient
    artifacts: str | None


def default_uri(results: Path) -> str:
    """The SQLite store of a results folder."""
    return f"sqlite:///{results.absolute()}/mlflow.db"


def open_store(uri: str, results: Path) -> Store:
    """Open a tracking store; create a SQLite one that does not exist. Call it under `waiting.one_writer`.

    Raises:
        UserError: the URI is wrong, credentials are refused, or the store is of another MLflow or broken.
        TrackerDown: it can't be reached or is locked.
    """
    for name in (
        "mlflow",
        "alembic",
    ):  # their chatter and their tracebacks; every error is raised all the same
        logging.getLogger(name).setLevel(logging.CRITICAL)
    scheme = urlsplit(uri).scheme
    if scheme in ("", "file"):
        raise UserError(
            f"The tracking URI {redact(uri)!r} is not one of a tracking store; use sqlite:///PATH.db, "
            "http(s)://HOST:PORT, or a database URI such as postgresql://..."
        )
    if scheme in ("http", "https") and not urlsplit(uri).hostname:
        raise UserError(f"The tracking URI {redact(uri)!r} names no host; write http(s)://HOST:PORT.")
    artifacts = (results.absolute() / "mlartifacts").as_uri()
    with tracker_errors(uri, opening=True):
        if scheme.startswith("sqlite"):
            _create_sqlite(uri, artifacts)
        if scheme.partition("+")[0] in DATABASE_ENGINES:
            _probe(uri)
        client = MlflowClient(uri)
        client.search_experiments(max_results=1)
    return Store(uri, client, None if scheme in ("http", "https") else artifacts)


def _create_sqlite(uri: str, artifacts: str) -> None:
    """Create a SQLite store under another name and rename it: a half-migrated one never has the name."""
    path = Path(unquote(urlsplit(uri).path.removeprefix("/")))
    if path.name in ("", ":memory:"):
        raise UserError(f"The tracking URI {uri!r} names no file; write sqlite:///PATH.db.")
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.new")
    unfinished.unlink(missing_ok=True)  # of a process that was killed here
    store = SqlAlchemyStore(f"sqlite:///{unfinished}", artifacts)  # type: ignore[no-untyped-call]
    store.engine.dispose()
    unfinished.rename(path)


def _probe(uri: str) -> None:
    """Connect once: MLflow alone would retry a database that is down for minutes, without a word."""
    arguments = {"timeout": 1} if uri.startswith("sqlite") else {}
    engine = sqlalchemy.create_engine(uri, connect_args=arguments, poolclass=sqlalchemy.NullPool)
    with engine.connect() as connection:
        sqlalchemy.inspect(connection).get_table_names()


@contextmanager
def tracker_errors(uri: str, opening: bool = False) -> Iterator[None]:
    """Turn what MLflow and the database raise into `UserError` or `TrackerDown`, secrets removed.

    An error that is neither, such as a value that MLflow refuses, is a bug and passes unchanged.
    """
    shown = redact(uri)
    try:
        yield
    except MlflowException as error:
        reason, cause = _one_line(redact(str(error))), error.__cause__
        code = error.error_code
        if code in _REFUSED:
            raise UserError(
                f"The tracker {shown} refuses the credentials; set MLFLOW_TRACKING_USERNAME and "
                "MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN."
            ) from error
        if "unsupported URI" in reason:
            raise UserError(
                f"MLflow knows no tracking store of the kind of {shown!r}; use sqlite:///PATH.db, "
                "http(s)://HOST:PORT, or a database URI such as postgresql://..."
            ) from error
        if code == "ENDPOINT_NOT_FOUND" or "valid JSON format" in reason or "Invalid url" in reason:
            raise UserError(f"There is no MLflow tracking server at {shown}; check the URI.") from error
        if "out-of-date database schema" in reason:
            raise UserError(
                f"The store {shown} is of another MLflow version; back it up and run `mlflow db upgrade` on it."
            ) from error
        if isinstance(cause, sqlite3.Error | SQLAlchemyError) or code in _DOWN:
            raise TrackerDown(f"{shown} does not answer as it should ({reason})") from error
        raise
    except OperationalError as error:
        reason = _one_line(redact(str(error.orig)))
        if "unable to open database file" in reason:
            raise UserError(f"The database file of {shown} can't be opened ({reason}).") from error
        if opening and _HALF_MIGRATED.search(reason):
            raise UserError(_broken(shown, reason)) from error
        raise TrackerDown(f"{shown} is not available ({reason})") from error
    except ArgumentError as error:
        raise UserError(f"The tracking URI {shown!r} is not a valid one of a database.") from error
    except SQLAlchemyError as error:
        raise UserError(_broken(shown, _one_line(redact(str(error))))) from error
    except ModuleNotFoundError as error:
        raise UserError(f"The store {shown} needs the Python package {error.name}; install it.") from error
    except OSError as error:
        if opening:
            raise UserError(f"The store {shown} can't be opened ({redact(str(error))}).") from error
        raise TrackerDown(f"{shown} is not available ({_one_line(redact(str(error)))})") from error


def _broken(shown: str, reason: str) -> str:
    return (
        f"The store {shown} is not a whole MLflow store ({reason}); delete or repair it and import again: "
        "the records hold everything."
    )


def _one_line(text: str, limit: int = 300) -> str:
    line = " ".join(text.split()).rstrip(".")
    return line if len(line) <= limit else line[:limit] + " ..."


def redact(text: str) -> str:
    """The text without user information and queries of URIs, and without MLflow's credentials."""
    for name in SECRETS:
        if secret := os.environ.get(name):
            text = text.replace(secret, "***")
    text = re.sub(r"(\w://)[^\s'\"]*@", r"\1***@", text)
    return re.sub(r"(\w://[^\s'\"?]*)\?[^\s'\"]*", r"\1?***", text)


def find_experiment(store: Store, study: str) -> Experiment | None:
    """The study's experiment, None if there is none or it is in MLflow's trash."""
    experiment = store.client.get_experiment_by_name(study)
    return experiment if experiment and experiment.lifecycle_stage == "active" else None


def make_experiment(store: Store, study: str) -> str:
    """The id of the study's experiment, created if need be.

    An experiment in the trash comes back empty: MLflow would revive runs with it that were replaced long ago.
    """
    experiment = store.client.get_experiment_by_name(study)
    if experiment is None:
        location = f"{store.artifacts}/{study}" if store.artifacts else None
        return str(store.client.create_experiment(study, artifact_location=location))
    if experiment.lifecycle_stage != "active":
        store.client.restore_experiment(experiment.experiment_id)
        for run in search_runs(store, experiment.experiment_id):
            store.client.delete_run(run.info.run_id)
    return str(experiment.experiment_id)


def search_runs(
    store: Store, experiment_id: str, filter_string: str = "", page_size: int = PAGE
) -> Sequence[Run]:
    """All active runs of an experiment that the filter lets through, however many pages they fill."""
    runs: list[Run] = []
    token = None
    while True:
        page = store.client.search_runs(
            [experiment_id], filter_string, ViewType.ACTIVE_ONLY, max_results=page_size, page_token=token
        )
        runs += page
        token = page.token
        if not token:
            return runs
