"""A results folder over a tracking store, what that holds, read through MLflow alone, and what runs beside it."""

import os
import socket
import sqlite3
import threading
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from job_server import WarmProcess, warm_python
from mlflow.entities import Run, ViewType

from shapelaw.storage.records import read_record
from shapelaw.tracking.command import ImportProgress
from shapelaw.tracking.importer import Importer, Outcome
from shapelaw.tracking.store import Store, open_store

HERE = Path(__file__).resolve()
SCRIPTS = HERE.parents[2] / "scripts"


def silent(_: str) -> None:
    """Say nothing: the sentences have tests of their own."""


@dataclass(frozen=True)
class Place:
    """A results folder and the tracking store that its records are imported into."""

    results: Path
    uri: str
    study: str

    def store(self) -> Store:
        return open_store(self.uri, self.results)

    def importer(self, say: Callable[[str], None] = silent, **options: Any) -> Importer:
        return Importer(self.results, self.uri, **{"progress": ImportProgress(say), "patience": 0, **options})

    def import_all(self) -> Outcome:
        return self.importer().import_study(self.study)[1]


@contextmanager
def serve(store_uri: str, folder: Path) -> Iterator[str]:
    """The URI of an `mlflow server` over an existing store; killed at the end, without a word of goodbye."""
    port = free_port()
    uri = f"http://127.0.0.1:{port}"
    command = [warm_python(), HERE.with_name("served.py"), "server", "--workers", "1"]
    command += ["--host", "127.0.0.1", "--port", str(port), "--backend-store-uri", store_uri]
    command += ["--artifacts-destination", str(folder / "served")]
    environment = {**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    with (folder / "server.log").open("a") as log:
        server = WarmProcess(command, cwd=folder, env=environment, stdout=log, stderr=log)
    try:
        wait_for(lambda: _answers(f"{uri}/health"))
        yield uri
    finally:
        server.kill()
        server.wait()


class QuietHandler(BaseHTTPRequestHandler):
    """What is asked is not printed among the test's output."""

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def listening(handler: type[QuietHandler]) -> Iterator[str]:
    """The address of a web server whose requests are answered by this handler."""
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=httpd.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{httpd.server_port}"
    finally:
        httpd.shutdown()
        thread.join()
        httpd.server_close()


@contextmanager
def web_server(status: int, body: bytes) -> Iterator[str]:
    """A web server that is no tracker: it gives everyone the same answer."""

    class Handler(QuietHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET

    with listening(Handler) as uri:
        yield uri


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def _answers(url: str) -> bool:
    try:
        return bool(urllib.request.urlopen(url, timeout=30).status == 200)
    except OSError:
        return False


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until the condition is true; so long in vain is a failure on the slowest machine."""
    end = time.monotonic() + 600
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.05)


COLUMNS = ("train_loss", "test_loss", "learning_rate", "gradient_norm")


def active_runs(store: Store, study: str) -> dict[str, Run]:
    """The active runs by key, the summary run by its name; fails if one is there twice."""
    experiment = store.client.get_experiment_by_name(study)
    runs = store.client.search_runs([experiment.experiment_id], run_view_type=ViewType.ACTIVE_ONLY)
    by_name = {run.data.tags.get("key", run.info.run_name): run for run in runs}
    assert len(by_name) == len(runs)
    return by_name


def curves(store: Store, run: Run, names: Iterable[str] = COLUMNS) -> dict[str, list[tuple[int, float]]]:
    """Each curve as (step, value) points, in order of step."""
    points = {name: store.client.get_metric_history(run.info.run_id, name) for name in names}
    return {name: sorted((m.step, m.value) for m in points[name]) for name in points}


def recorded_curves(directory: Path) -> dict[str, list[tuple[int, float]]]:
    """The same of a record on disk."""
    rows = read_record(directory).history.to_pydict()
    return {
        name: [(s, v) for s, v in zip(rows["step"], rows[name], strict=True) if v is not None]
        for name in COLUMNS
    }


def content(store: Store, study: str) -> dict[str, Any]:
    """All that matters of a study's active runs: no ids, no times of points, no fingerprints, not who imported."""
    return {
        name: (
            run.info.status,
            run.info.start_time,
            run.data.params,
            run.data.metrics,
            {k: v for k, v in run.data.tags.items() if k not in ("fingerprint", "importer")},
            "fingerprint" in run.data.tags,
            curves(store, run, run.data.metrics),
            sorted(digest for digest, _ in logged_inputs(store, run)),
        )
        for name, run in active_runs(store, study).items()
    }


def dump(results: Path) -> list[str]:
    """Every row of a SQLite store."""
    connection = sqlite3.connect(results / "mlflow.db")
    try:
        return list(connection.iterdump())
    finally:
        connection.close()


def logged_inputs(store: Store, run: Run) -> set[tuple[str, str]]:
    """(digest, context) of each data set that the run logged."""
    inputs = store.client.get_run(run.info.run_id).inputs
    assert inputs is not None
    return {(each.dataset.digest, each.tags[0].value) for each in inputs.dataset_inputs}
