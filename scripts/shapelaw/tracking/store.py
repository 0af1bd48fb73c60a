"""The tracking store: its URI, its schema, its errors as sentences; created whole or not at all, opened, read.

MLflow brings an older database to its own schema as soon as it opens it, after which the older MLflow of others can't
use it. So the schema is looked at first: an older store is never opened to write, and of a file reading reads a copy.
"""

from __future__ import annotations

import glob
import logging
import re
import secrets
import shlex
import shutil
import socket
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote, urlsplit

import mlflow.store.db.utils
import requests
import sqlalchemy
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from mlflow.entities import Experiment, Run, ViewType
from mlflow.exceptions import MlflowException
from mlflow.store.db.db_types import DATABASE_ENGINES
from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore
from mlflow.tracking import MlflowClient
from sqlalchemy.exc import OperationalError, SQLAlchemyError
from urllib3.exceptions import ReadTimeoutError

from shapelaw.errors import UserError
from shapelaw.storage.files import follow_folder
from shapelaw.tracking.command import LOCK_NAME, WEATHER, TrackerDown, redact

KEY, STUDY, SUMMARY_OF = "key", "study", "summary_of"  # tags: of a training run; of a study's summary run
FINGERPRINT = "fingerprint"  # tag of a run that is whole, written last
IMPORTER = "importer"  # tag of a run and of an experiment: who wrote it
# a place below the folder that a server serves (`make ui`: results/mlartifacts): so results can be moved
SERVED = "mlflow-artifacts:/"
PAGE = 1000  # runs a page of a search
FORMS = "sqlite:///PATH.db, http(s)://HOST:PORT, or a database URI such as postgresql://..."
_MLFLOWS = {"experiments", "runs", "params", "metrics", "tags"}  # tables of any store of MLflow
_DOWN = {
    "INTERNAL_ERROR",
    "TEMPORARILY_UNAVAILABLE",
    "DEADLINE_EXCEEDED",
    "REQUEST_LIMIT_EXCEEDED",
    "RESOURCE_EXHAUSTED",
    "ABORTED",
    "RESOURCE_ALREADY_EXISTS",  # these two: an answer was lost, or a second importer got in between
    "RESOURCE_DOES_NOT_EXIST",
}
_WRONG = {  # what a store answers to a user's mistake
    "UNAUTHENTICATED|PERMISSION_DENIED|CUSTOMER_UNAUTHORIZED": "The tracker {shown} refuses the credentials; set "
    "MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN.",
    "ENDPOINT_NOT_FOUND|valid JSON format|Invalid url": "There is no MLflow tracking server at {shown}; check the URI.",
    "unsupported URI": f"MLflow has no tracking store for {{shown!r}}; use {FORMS}.",
    "ArgumentError": "The tracking URI {shown!r} is not a valid database URI.",
    "ModuleNotFoundError": "The store {shown} needs a Python package ({reason}); install it.",
    "readonly database|unable to open database file": "The database file of {shown} can't be opened ({reason}); make "
    "it yours to write to.",
    "authentication failed|no password supplied|Access denied|no pg_hba.conf entry|(role|database) .* does not exist": (
        "The database {shown} refuses us ({reason}); correct the URI."
    ),
    "disk image is malformed": "The store {shown} is not whole ({reason}); delete or repair it and import again: the "
    "records hold everything.",
}
_STATUS = re.compile(r"too many (\d+) error responses|failed with error code (5\d\d|429)")
_OF_DATABASE = re.compile(
    "psycopg|sqlalche.me|must be in the '?(active|deleted)'? state|No Experiment with id"
)


@dataclass(frozen=True)
class Store:
    """An open tracking store.

    Attributes:
        uri: tracking URI; it may hold a password, so show `redact(uri)`.
        client: MLflow's client of it.
        artifacts: folder of the artifacts; None where a tracking server keeps them.
    """

    uri: str
    client: MlflowClient
    artifacts: Path | None

    @property
    def shown(self) -> str:
        """The URI without secrets."""
        return redact(self.uri, self.uri)


def open_store(uri: str, results: Path) -> Store:
    """Open a tracking store to write to it; create a SQLite one that does not exist. Call it under `one_writer`.

    Raises:
        UserError: the URI is wrong, credentials are refused, or the store is broken or another MLflow version's.
        TrackerDown: the store can't be reached or is locked.
    """
    with tracker_errors(uri):
        file = _checked(uri)
        if file is not None:
            _create_sqlite(file)
            _check_file(file, uri)
        if _is_database(uri) and _age(uri, redact(uri, uri)) == "older":
            raise UserError(
                f"The store {redact(uri, uri)} was made by an older MLflow, which can't use it any more once something "
                f"is imported. Where nobody else uses it: back it up and {_upgrade_command(uri)}; else give this "
                "folder another store (tracking.uri), such as the address of that MLflow's server."
            )
        client = MlflowClient(uri)
        client.search_experiments(max_results=1)
    artifacts = results.absolute() / "mlartifacts"
    return Store(uri, client, artifacts if _is_database(uri) else None)


@contextmanager
def reading(uri: str) -> Iterator[MlflowClient]:
    """A client of a store that nothing is written to: of a SQLite file a copy, in this MLflow's schema.

    Raises:
        UserError: the store can't be read, or reading would change it.
    """
    shown = redact(uri, uri)
    try:
        with tracker_errors(uri), TemporaryDirectory() as folder:
            if (file := _checked(uri)) is not None:
                _check_file(file, uri)
            read = uri if file is None else _copied(file, Path(folder))
            age = _age(read, shown) if _is_database(uri) else "current"
            if age == "empty":
                raise UserError(f"The database {shown} is empty: it has no table of MLflow's.")
            if age == "older" and file is None:
                raise UserError(
                    f"The store {shown} was made by an older MLflow, and reading would upgrade it: read it through "
                    "that MLflow's server (http://HOST:PORT), or, where nobody else uses it, back it up and "
                    f"{_upgrade_command(uri)}."
                )
            if age == "older":
                mlflow.store.db.utils._upgrade_db(sqlalchemy.create_engine(read))  # type: ignore[no-untyped-call]
            yield MlflowClient(read)
    except TrackerDown as error:
        raise UserError(f"The MLflow store can't be read: {error}.") from error


def _upgrade_command(uri: str) -> str:
    return f"run {shlex.quote(sys.executable)} -m mlflow db upgrade {shlex.quote(redact(uri, uri))}"


def _copied(file: Path, folder: Path) -> str:
    """The URI of a copy of a SQLite database, as it is between two writes of others."""
    copy = folder / "mlflow.db"
    journal = file.with_name(f"{file.name}-journal")
    try:
        source = sqlite3.connect(f"file:{quote(str(file.absolute()))}?mode=ro", uri=True, timeout=1)
        with closing(source), closing(sqlite3.connect(copy)) as target:
            source.backup(target)
    except sqlite3.Error as error:
        if "readonly" not in str(error) or not journal.exists():
            raise UserError(f"{file} can't be copied to {folder}, to be read there ({error}).") from error
        # its writer died in the middle of a write, which only a writer takes back: in the copy
        shutil.copy(file, copy)
        shutil.copy(journal, f"{copy}-journal")
    return f"sqlite:///{copy}"


def _is_database(uri: str) -> bool:
    return urlsplit(uri).scheme.partition("+")[0] in DATABASE_ENGINES


def _checked(uri: str) -> Path | None:
    """The file of a SQLite URI; None for another store.

    Raises:
        UserError: the URI is not that of a store.
    """
    for chatty in ("mlflow", "alembic"):  # only chatter and tracebacks: every error is raised all the same
        logging.getLogger(chatty).setLevel(logging.CRITICAL)
    shown = redact(uri, uri)
    if not uri.strip():
        raise UserError(f"The tracking URI is empty; write {FORMS}.")
    try:
        scheme, host, _ = urlsplit(uri).scheme, urlsplit(uri).hostname, urlsplit(uri).port
    except ValueError:  # the error's text may hold a part of the password
        raise UserError(f"The tracking URI {shown!r} is not valid; check its host and port.") from None
    if scheme in ("", "file"):
        raise UserError(_not_a_uri(shown, Path(urlsplit(uri).path if scheme else uri)))
    if scheme in ("http", "https") and not host:
        raise UserError(f"The tracking URI {shown!r} names no host; write http(s)://HOST:PORT.")
    if not scheme.startswith("sqlite"):
        return None
    name = sqlalchemy.make_url(uri).database or ""
    if name in ("", ":memory:"):
        raise UserError(
            f"The tracking URI {shown!r} names no file; write sqlite:///PATH.db, four slashes before an absolute path."
        )
    return Path(name)


def _not_a_uri(shown: str, path: Path) -> str:
    said = f"The tracking URI {shown!r} is not that of a tracking store; "
    if not path.exists():
        return f"{said}use {FORMS}."
    file = path / "mlflow.db" if path.is_dir() else path
    if file.exists():
        return f"{said}write sqlite:///{file.absolute()}"
    command = f"{shlex.quote(sys.executable)} -m mlflow migrate-filestore --source {shlex.quote(str(path))}"
    return f"{said}if MLflow keeps runs in that folder, make a database of them first: {command} --target sqlite:///mlflow.db"


def _check_file(file: Path, uri: str) -> None:
    """Check that a SQLite database is there.

    Raises:
        UserError: it is missing, a folder, or another kind of file.
    """
    shown = redact(uri, uri)
    if not file.exists():
        raise UserError(
            f"There is no MLflow database at {shown}; sqlite needs three slashes, four before an absolute path."
        )
    if file.is_dir():
        raise UserError(f"{file} is a folder, and {shown} must name a file: the .db file in it.")
    with file.open("rb") as opened:
        start = opened.read(16)
    if start and start != b"SQLite format 3\0":
        raise UserError(f"{file} is no SQLite database, so {shown} is not a store of MLflow.")


def _age(uri: str, shown: str) -> str:
    """`empty`, `older` or `current`: a database's schema, from its tables and `alembic_version` alone.

    This connects once: MLflow alone would retry a database that is down for minutes, silently.

    Raises:
        UserError: it is not a store of MLflow, not a whole one, or a newer MLflow's.
    """
    arguments = {"timeout": 1} if uri.startswith("sqlite") else {}
    engine = sqlalchemy.create_engine(uri, connect_args=arguments, poolclass=sqlalchemy.NullPool)
    with engine.connect() as connection:
        tables = set(sqlalchemy.inspect(connection).get_table_names())
        revisions = set(MigrationContext.configure(connection).get_current_heads())
    if not tables - {"alembic_version"}:
        return "empty"
    if not tables & _MLFLOWS:
        others = ", ".join(sorted(tables)[:3])
        raise UserError(
            f"{shown} has tables of something else ({others}); give MLflow a database of its own."
        )
    if not tables >= _MLFLOWS or len(revisions) != 1:
        raise UserError(
            f"The store {shown} is not a whole MLflow store: tables are missing, or their version is; delete or repair "
            "it and import again: the records hold everything."
        )
    config = Config()
    config.set_main_option("script_location", str(Path(mlflow.__file__).parent / "store" / "db_migrations"))
    steps = ScriptDirectory.from_config(config)
    if revisions == {steps.get_current_head()}:
        return "current"
    if not revisions <= {step.revision for step in steps.walk_revisions()}:
        raise UserError(
            f"The store {shown} was made by a newer MLflow than {mlflow.__version__}, which doesn't know its schema "
            f"{revisions.pop()}; install that one, or give the address of its server."
        )
    return "older"


def importer_of(results: Path) -> str:
    """The importer of a results folder: the machine that imported from it first, and the folder.

    It is kept in the importers' lock file, so that the login nodes of a cluster are one importer and not rivals.
    """
    path, folder = results / LOCK_NAME, str(results.absolute())
    kept = path.read_text().strip() if path.exists() else ""
    if kept.partition(":")[2] == folder:
        return kept
    importer = f"{socket.gethostname()}:{folder}"
    with suppress(OSError):  # on a full disk: the next import keeps it
        path.write_text(importer + "\n")
    return importer


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


def find_experiment(store: Store, study: str) -> Experiment | None:
    """The study's experiment; None where it doesn't exist or is in MLflow's trash."""
    experiment = store.client.get_experiment_by_name(study)
    return experiment if experiment and experiment.lifecycle_stage == "active" else None


def make_experiment(store: Store, study: str) -> Experiment:
    """The study's experiment, which is created where needed.

    An experiment in the trash is restored empty: MLflow would also restore runs that were replaced long ago.
    """
    experiment = store.client.get_experiment_by_name(study)
    if experiment is None:
        location = f"{SERVED}{study}" if store.artifacts else None
        made = store.client.create_experiment(study, artifact_location=location)
        return store.client.get_experiment(made)
    if experiment.lifecycle_stage != "active":
        store.client.restore_experiment(experiment.experiment_id)
        for run in list(search_runs(store.client, experiment.experiment_id)):
            store.client.delete_run(run.info.run_id)
    return experiment


def search_runs(
    client: MlflowClient, experiment_id: str, filter_string: str = "", page_size: int = PAGE
) -> Iterator[Run]:
    """The active runs of an experiment that pass the filter, page by page: nothing may be written meanwhile."""
    token = None
    while True:
        page = client.search_runs(
            [experiment_id], filter_string, ViewType.ACTIVE_ONLY, max_results=page_size, page_token=token
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
    causes = _causes(error)
    known = _known_reason(error, causes)
    reason = " ".join(redact(known or str(error), uri).split()).rstrip(".")[:300]
    code = getattr(error, "error_code", type(error).__name__)
    for words, sentence in _WRONG.items():
        if re.search(words, f"{code} {reason}"):
            return UserError(sentence.format(shown=shown, reason=reason))
    if isinstance(error, OSError) and not known and error.errno not in WEATHER:
        return UserError(f"The store {shown} can't be opened ({reason}).")
    down = known or code in _DOWN or not isinstance(error, MlflowException)
    if (
        down
        or _OF_DATABASE.search(reason)
        or any(isinstance(one, sqlite3.Error | SQLAlchemyError) for one in causes)
    ):
        return TrackerDown(f"{shown} is not available ({reason})")
    return None


def _causes(error: BaseException) -> list[BaseException]:
    """An error and those that led to it, the latest first."""
    causes: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in causes:
        causes.append(cause)
        cause = cause.__cause__ or cause.__context__
    return causes


def _known_reason(error: Exception, causes: Sequence[BaseException]) -> str:
    """What the database, the server or the network said, in a few words; empty where it was something else."""
    for each in causes:
        if isinstance(each, OperationalError):  # without the advice that some add
            return (str(each.orig).strip().splitlines() or [type(each.orig).__name__])[0]
    if status := _STATUS.search(str(error)):
        return f"HTTP status {status[1] or status[2]}; its log says why"
    if any(isinstance(each, requests.exceptions.Timeout | ReadTimeoutError) for each in causes):
        return "no answer in time"
    if any(isinstance(each, requests.exceptions.RequestException | ConnectionError) for each in causes):
        systems = [each for each in causes if isinstance(each, OSError) and each.errno]
        return (systems[-1].strerror if systems else None) or "the connection broke"
    return ""
