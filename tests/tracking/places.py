"""A results folder over a tracking store, and what runs beside it: a server, a command."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from shapelaw.tracking.importer import Outcome, import_study
from shapelaw.tracking.store import Store, open_store

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


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

    def import_all(self) -> Outcome:
        return import_study(self.results, self.study, self.uri, patience=0, say=silent)[1]


@contextmanager
def serve(store_uri: str, folder: Path, port: int = 0) -> Iterator[str]:
    """`mlflow server` as `make ui` starts it, over an existing store; stopped at the end."""
    port = port or free_port()
    command = [sys.executable, "-m", "mlflow", "server", "--backend-store-uri", store_uri]
    command += ["--artifacts-destination", str(folder / "served"), "--workers", "1"]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    environment = {**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    with (folder / "server.log").open("w") as log:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
    try:
        wait_for(lambda: _answers(f"http://127.0.0.1:{port}/health"), 60)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(20)


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def _answers(url: str) -> bool:
    try:
        return bool(urllib.request.urlopen(url, timeout=2).status == 200)
    except OSError:
        return False


def wait_for(condition: Callable[[], bool], seconds: float = 20) -> None:
    """Fail if the condition does not come true in time."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.05)


@dataclass(frozen=True)
class Done:
    """What a command that ended left: its exit code, standard output and standard error."""

    code: int
    output: str
    errors: str


Script = Callable[..., Done]
