"""The tracking store: its URI, its schema, its errors as sentences; created whole or not at all, opened.

MLflow brings an older database to its own schema as soon as it opens it, after which the older MLflow of others can't
use it. So the schema is looked at first, and a store with another one is refused, untouched.
"""

from __future__ import annotations

import glob
import logging
import re
import secrets
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import mlflow
import requests
import sqlalchemy
from mlflow.entities import Experiment, Run, ViewType
from mlflow.exceptions import MlflowException
from mlflow.store.db.db_types import DATABASE_ENGINES
from mlflow.store.db.utils import _all_tables_exist, _get_latest_schema_revision, _get_schema_version
from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore
from mlflow.tracking import MlflowClient
from sqlalchemy.exc import SQLAlchemyError

from shapelaw.errors import UserError
from shapelaw.storage.files import follow_folder
from shapelaw.tracking.command import WEATHER, TrackerDown, redact

# a place below the folder that a server serves (`make ui`: results/mlartifacts): so results can be moved
SERVED = "mlflow-artifacts:/"
PAGE = 1000  # runs a page of a search
FORMS = "sqlite:///PATH.db, http(s)://HOST:PORT, or a database URI such as postgresql://..."
# what a store answers to a user's mistake
_REFUSED = re.compile(
    "UNAUTHENTICATED|PERMISSION_DENIED|CUSTOMER_UNAUTHORIZED|authentication failed|no password supplied|Access denied|"
    "no pg_hba.conf entry|(role|database) .* does not exist"
)
_UNUSABLE = re.compile(
    "ENDPOINT_NOT_FOUND|valid JSON format|Invalid url|ArgumentError|ModuleNotFoundError|readonly database|"
    "unable to open database file|file is not a database|disk image is malformed"
)
_BUGS = {
    "INVALID_PARAMETER_VALUE",
    "BAD_REQUEST",
}  # but for what a server's database says, or a colleague deletes
_NO_BUG = re.compile("psycopg|sqlalche.me|must be in the '?(active|deleted)'? state|No Experiment with id")


@dataclass(frozen=True)
class Store:
    """An open tracking store.

    Attributes:
        uri: tracking URI; it may hold a password, so show `redact(uri)`.
        client: MLflow's client of it.
        served: folder of the artifacts that `make ui` serves; None where a tracking server keeps them.
        artifacts: the place below which a new experiment keeps its artifacts; None: where the server says.
    """

    uri: str
    client: MlflowClient
    served: Path | None
    artifacts: str | None

    @property
    def shown(self) -> str:
        """The URI without secrets."""
        return redact(self.uri, self.uri)

    def find_experiment(self, study: str) -> Experiment | None:
        """The study's experiment; None where it doesn't exist or is in MLflow's trash."""
        experiment = self.client.get_experiment_by_name(study)
        return experiment if experiment and experiment.lifecycle_stage == "active" else None

    def make_experiment(self, study: str) -> Experiment:
        """The study's experiment, which is created where needed.

        An experiment in the trash is restored empty: MLflow would also restore runs that were replaced long ago.
        """
        experiment = self.client.get_experiment_by_name(study)
        if experiment is None:
            folder = re.sub("[^A-Za-z0-9_.-]+", "-", study)
            location = self.artifacts and f"{self.artifacts.rstrip('/')}/{folder}"
            made = self.client.create_experiment(study, artifact_location=location)
            return self.client.get_experiment(made)
        if experiment.lifecycle_stage != "active":
            self.client.restore_experiment(experiment.experiment_id)
            for run in list(search_runs(self.client, experiment.experiment_id)):
                self.client.delete_run(run.info.run_id)
        return experiment


def open_store(uri: str, results: Path, artifacts: str | None = None) -> Store:
    """Open a tracking store to write to it; create a SQLite one that does not exist. Call it under `one_writer`.

    Args:
        artifacts: a folder or URI for the artifacts of new experiments; None: the store's own place.

    Raises:
        UserError: the URI is wrong, credentials are refused, or the store is broken or has another schema.
        TrackerDown: the store can't be reached or is locked.
    """
    with tracker_errors(uri):
        file = file_of(uri)
        if file is not None:
            _create_sqlite(file)
        has_schema(uri)
        client = MlflowClient(uri)
        client.search_experiments(max_results=1)
    served = None if _is_server(uri) else results.absolute() / "mlartifacts"
    if artifacts is not None and not urlsplit(artifacts).scheme:
        artifacts = str(Path(artifacts).absolute())
    return Store(uri, client, served, artifacts or (None if served is None else SERVED))


def _is_server(uri: str) -> bool:
    return urlsplit(uri).scheme in ("http", "https")


def file_of(uri: str) -> Path | None:
    """The file of a SQLite URI; None for another store.

    Raises:
        UserError: the URI is not that of a store.
    """
    for chatty in ("mlflow", "alembic"):  # only chatter and tracebacks: every error is raised all the same
        logging.getLogger(chatty).setLevel(logging.CRITICAL)
    shown = redact(uri, uri)
    try:
        scheme, host, _ = urlsplit(uri).scheme, urlsplit(uri).hostname, urlsplit(uri).port
    except ValueError:  # the error's text may hold a part of the password
        raise UserError(f"The tracking URI {shown!r} is not valid; check its host and port.") from None
    kind = scheme.partition("+")[0]
    if not (_is_server(uri) and host) and kind not in DATABASE_ENGINES:
        raise UserError(f"The tracking URI {shown!r} is not that of a tracking store; use {FORMS}.")
    if kind != "sqlite":
        return None
    name = sqlalchemy.make_url(uri).database or ""
    if name in ("", ":memory:"):
        raise UserError(
            f"The tracking URI {shown!r} names no file; write sqlite:///PATH.db, four slashes before an absolute path."
        )
    return Path(name)


def has_schema(uri: str) -> bool:
    """True for a database with the tables of this MLflow, and for a server, which looks at its own; False if empty.

    This connects once: MLflow alone would retry a database that is down for minutes, silently.

    Raises:
        UserError: it has other tables, or those of an older or a newer MLflow.
    """
    if _is_server(uri):
        return True
    arguments = {"timeout": 1} if uri.startswith("sqlite") else {}
    engine = sqlalchemy.create_engine(uri, connect_args=arguments, poolclass=sqlalchemy.NullPool)
    if not set(sqlalchemy.inspect(engine).get_table_names()) - {"alembic_version"}:
        return False
    schema, ours = _get_schema_version(engine), _get_latest_schema_revision()  # type: ignore[no-untyped-call]
    if schema != ours or not _all_tables_exist(engine):  # type: ignore[no-untyped-call]
        shown = redact(uri, uri)
        command = f"{shlex.quote(sys.executable)} -m mlflow db upgrade {shlex.quote(shown)}"
        raise UserError(
            f"The store {shown} was made by another MLflow: its schema is {schema}, and that of MLflow "
            f"{mlflow.__version__} is {ours}. Nothing was changed in it. Of an older MLflow, which can't use it "
            f"afterwards: back it up and run {command}; else give this folder another store (tracking.uri)."
        )
    return True


def _create_sqlite(path: Path) -> None:
    """Create a SQLite store under another name and rename it, so that the store is never half migrated.

    MLflow's experiment "Default", in which nothing is ever logged, goes into the trash. Whoever may write to the folder
    may write to the store.
    """
    if path.exists() and (path.is_dir() or path.stat().st_size):
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.new*"):  # left by an attempt that ended here
        left.unlink(missing_ok=True)
    # a new name: MLflow keeps connections by name, and would go on with a deleted file
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}.new")
    store = SqlAlchemyStore(f"sqlite:///{unfinished}", SERVED)  # type: ignore[no-untyped-call]
    store.delete_experiment(str(store.DEFAULT_EXPERIMENT_ID))  # type: ignore[no-untyped-call]
    store.engine.dispose()
    follow_folder(unfinished)
    unfinished.rename(path)


def search_runs(client: MlflowClient, experiment_id: str, filter_string: str = "") -> Iterator[Run]:
    """The active runs of an experiment that pass the filter, page by page: nothing may be written meanwhile."""
    token = None
    while True:
        page = client.search_runs(
            [experiment_id], filter_string, ViewType.ACTIVE_ONLY, max_results=PAGE, page_token=token
        )
        yield from page
        token = page.token
        if not token:
            return


@contextmanager
def tracker_errors(uri: str) -> Iterator[None]:
    """Turn errors of MLflow, the network and the database into `UserError` or `TrackerDown`, with secrets removed.

    An error that is neither, such as a value that MLflow refuses, is a bug and passes unchanged.
    """
    try:
        yield
    except (MlflowException, SQLAlchemyError, ModuleNotFoundError, OSError) as error:
        translated = _translated(error, uri, redact(uri, uri))
        if translated is None:
            raise
        raise translated from error


def _translated(error: Exception, uri: str, shown: str) -> Exception | None:
    causes: list[BaseException] = [error]
    while (deeper := causes[-1].__cause__ or causes[-1].__context__) is not None:
        causes.append(deeper)
    lines = [str(cause).strip() for cause in (causes[-1], error)] + [type(error).__name__]
    reason = redact(next(filter(None, lines)).splitlines()[0], uri).rstrip(".")[:300]
    code = getattr(error, "error_code", type(error).__name__)
    if _REFUSED.search(f"{code} {reason}"):
        return UserError(
            f"The store {shown} refuses us ({reason}); correct the URI, or set MLFLOW_TRACKING_USERNAME and "
            "MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN."
        )
    network = isinstance(error, requests.RequestException | ConnectionError)
    of_disk = isinstance(error, OSError) and not network and error.errno not in WEATHER
    if of_disk or _UNUSABLE.search(f"{code} {reason}"):
        return UserError(
            f"There is no store of MLflow's at {shown} that can be used ({reason}); check the URI."
        )
    of_database = any(isinstance(cause, SQLAlchemyError) for cause in causes) or _NO_BUG.search(reason)
    if code in _BUGS and not of_database:
        return None
    return TrackerDown(f"{shown} is not available ({reason})")
