"""The tracking store: opened, created whole or not at all, and searched."""

from __future__ import annotations

import glob
import logging
import os
import secrets
import shlex
import socket
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import sqlalchemy
from mlflow.entities import Experiment, Run, ViewType
from mlflow.exceptions import MlflowException
from mlflow.store.db.db_types import DATABASE_ENGINES, POSTGRES
from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore
from mlflow.tracking import MlflowClient

from shapelaw.errors import UserError
from shapelaw.storage.files import follow_folder
from shapelaw.tracking.errors import is_conflict, tracker_errors
from shapelaw.tracking.redaction import redact
from shapelaw.tracking.waiting import LOCK_NAME

KEY, STUDY, SUMMARY_OF = "key", "study", "summary_of"  # tags: of a training run; of a study's summary run
FINGERPRINT = "fingerprint"  # tag of a run that is whole, written last
# a place below the folder that a server serves (`make ui`: results/mlartifacts): so results can be moved
SERVED = "mlflow-artifacts:/"
PAGE = 1000  # runs a page of a search
FEW = 30  # up to this many keys are looked up one by one, instead of listing the experiment
LOOKS = 20  # after this many looks at a store, two writers can't agree
_CREATION_LOCK = 0x73686170656C6177  # of a PostgreSQL database in which MLflow's tables are made


@dataclass(frozen=True)
class Store:
    """An open tracking store.

    Attributes:
        uri: tracking URI; it may hold a password, so show `redact(uri)`.
        client: MLflow's client of it.
        artifacts: folder of the artifacts; None where a tracking server keeps them.
        importer: the writer: a machine and its results folder.
    """

    uri: str
    client: MlflowClient
    artifacts: Path | None
    importer: str


def default_uri(results: Path) -> str:
    """The SQLite store of a results folder."""
    return f"sqlite:///{results.absolute()}/mlflow.db"


def open_store(uri: str, results: Path) -> Store:
    """Open a tracking store; create a SQLite one that does not exist. Call it under `waiting.one_writer`.

    Raises:
        UserError: the URI is wrong, credentials are refused, or the store is broken or another MLflow version's.
        TrackerDown: the store can't be reached or is locked.
    """
    for name in ("mlflow", "alembic"):  # only chatter and tracebacks: every error is raised all the same
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        scheme, host, _ = urlsplit(uri).scheme, urlsplit(uri).hostname, urlsplit(uri).port
    except ValueError:  # the error's text may hold a part of the password
        raise UserError(
            f"The tracking URI {redact(uri, uri)!r} is not valid; check its host and port."
        ) from None
    if scheme in ("", "file"):
        raise UserError(
            f"The tracking URI {redact(uri, uri)!r} is not that of a tracking store; use sqlite:///PATH.db, "
            "http(s)://HOST:PORT, or a database URI such as postgresql://..."
        )
    if scheme in ("http", "https") and not host:
        raise UserError(f"The tracking URI {redact(uri, uri)!r} names no host; write http(s)://HOST:PORT.")
    artifacts = results.absolute() / "mlartifacts"
    with tracker_errors(uri, opening=True):
        if scheme.startswith("sqlite"):
            _create_sqlite(uri)
        if scheme.partition("+")[0] in DATABASE_ENGINES:
            _probe(uri)
        with _one_creator(uri):
            client = MlflowClient(uri)
            client.search_experiments(max_results=1)
    return Store(uri, client, None if scheme in ("http", "https") else artifacts, _importer_of(results))


def _importer_of(results: Path) -> str:
    """The importer of this results folder: the machine that imported from it first, and the folder.

    It is kept in the importers' lock file, so that the login nodes of a cluster are one importer and not rivals.
    """
    path, folder = results / LOCK_NAME, str(results.absolute())
    try:
        kept = path.read_text().strip()
        if kept.partition(":")[2] == folder:
            return kept
    except FileNotFoundError:
        pass  # the first import
    importer = f"{socket.gethostname()}:{folder}"
    with suppress(OSError):  # on a full disk: the next import keeps it
        path.write_text(importer + "\n")
    return importer


def _create_sqlite(uri: str) -> None:
    """Create a SQLite store under another name and rename it, so that the store is never half migrated.

    MLflow's experiment "Default", in which nothing is ever logged, goes into the trash.
    """
    path = Path(sqlalchemy.make_url(uri).database or "")  # as MLflow finds it: nothing in it is decoded
    if path.name in ("", ":memory:"):
        raise UserError(f"The tracking URI {redact(uri, uri)!r} names no file; write sqlite:///PATH.db.")
    if path.exists():
        _check_writable(path)
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


def _check_writable(path: Path) -> None:
    """Refuse a SQLite store that this user may not write to: SQLite would say so after minutes of waiting.

    Raises:
        UserError: the file, or its folder, which takes SQLite's journal, can't be written to.
    """
    for place in (path, path.parent):
        if not os.access(place, os.W_OK):
            raise UserError(
                f"The MLflow store {path} can't be written to: {place} is {_owner(place)}'s, with the mode "
                f"{stat.filemode(place.stat().st_mode)}, or its disk is read-only. For a group that shares it: "
                f"chmod g+w {shlex.quote(str(place))}"
            )


def _owner(path: Path) -> str:
    try:
        return path.owner()
    except KeyError:  # a user without a name, as in containers
        return f"user {path.stat().st_uid}"


def _probe(uri: str) -> None:
    """Connect once: MLflow alone would retry a database that is down for minutes, silently."""
    arguments = {"timeout": 1} if uri.startswith("sqlite") else {}
    engine = sqlalchemy.create_engine(uri, connect_args=arguments, poolclass=sqlalchemy.NullPool)
    with engine.connect() as connection:
        sqlalchemy.inspect(connection).get_table_names()


@contextmanager
def _one_creator(uri: str) -> Iterator[None]:
    """Let one importer at a time make MLflow's tables in a PostgreSQL database; its own lock holds for one machine."""
    if not uri.startswith(POSTGRES):
        yield
        return
    engine = sqlalchemy.create_engine(uri, poolclass=sqlalchemy.NullPool)
    with engine.connect() as connection:
        connection.execute(sqlalchemy.select(sqlalchemy.func.pg_advisory_lock(_CREATION_LOCK)))
        yield  # closing the connection releases the lock


def find_experiment(store: Store, study: str) -> Experiment | None:
    """The study's experiment; None where it doesn't exist or is in MLflow's trash."""
    experiment = store.client.get_experiment_by_name(study)
    return experiment if experiment and experiment.lifecycle_stage == "active" else None


def make_experiment(store: Store, study: str) -> str:
    """The id of the study's experiment, which is created where needed.

    An experiment in the trash is restored empty: MLflow would also restore runs that were replaced long ago.
    """
    experiment = store.client.get_experiment_by_name(study)
    if experiment is None:
        location = f"{SERVED}{study}" if store.artifacts else None
        try:
            return str(store.client.create_experiment(study, artifact_location=location))
        except MlflowException as error:
            experiment = store.client.get_experiment_by_name(study)
            if experiment is None or not is_conflict(error):  # else another importer was first
                raise
    if experiment.lifecycle_stage != "active":
        store.client.restore_experiment(experiment.experiment_id)
        for run in search_runs(store, experiment.experiment_id):
            store.client.delete_run(run.info.run_id)
    return str(experiment.experiment_id)


def search_runs(
    store: Store, experiment_id: str, filter_string: str = "", page_size: int = PAGE
) -> Sequence[Run]:
    """All active runs of an experiment that pass the filter, each once, from all pages.

    Where other importers write meanwhile, pages shift: a run of more than one page of them may be left out.
    """
    runs: dict[str, Run] = {}
    token = None
    while True:
        page = store.client.search_runs(
            [experiment_id], filter_string, ViewType.ACTIVE_ONLY, max_results=page_size, page_token=token
        )
        runs |= {run.info.run_id: run for run in page}
        token = page.token
        if not token:
            return list(runs.values())


def runs_by_key(store: Store, experiment_id: str, keys: Iterable[str] | None) -> dict[str, list[Run]]:
    """The active training runs by key: all of them, or those of a few keys with one request each."""
    if keys is None:
        runs = search_runs(store, experiment_id)
    else:
        runs = [run for key in keys for run in search_runs(store, experiment_id, f"tags.`{KEY}` = '{key}'")]
    known: dict[str, list[Run]] = {}
    for run in runs:
        if KEY in run.data.tags:
            known.setdefault(run.data.tags[KEY], []).append(run)
    return known
