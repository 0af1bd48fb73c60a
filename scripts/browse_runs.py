"""Show the runs in MLflow's UI, live while jobs run, until interrupted (Ctrl-C).

A database (SQLite, PostgreSQL, ...) is served on this machine's loopback interface; a tracking server has a UI already.
The records of all studies are imported first, and followed into the store meanwhile. The last line is the link to the
runs of what was submitted last; what the server and the importer say goes to <results>/logs/mlflow.log.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from shapelaw.campaign.config import load_config
from shapelaw.errors import UserError, command_line, say
from shapelaw.settings.loading import read_values
from shapelaw.storage.files import disk_errors
from shapelaw.tracking.command import URI_VARIABLE, address, check_results, exit_code, tracking_uri

SCRIPTS = Path(__file__).resolve().parent
HOST = "127.0.0.1"
PAGE = "#/experiments?workflowType=machine_learning"  # of all studies
LOG = Path("logs") / "mlflow.log"  # in the results
PATIENCE = 120  # seconds that the server may take to start


@contextmanager
def _started(
    command: Sequence[str], environment: Mapping[str, str], log: IO[bytes]
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process that says what it says to a log, and stop it at the end."""
    process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def _check_free(port: int) -> None:
    """Check that nothing listens on a port of this machine.

    Raises:
        UserError: something does, or this user may not.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise UserError(
                f"Port {port} can't be used ({error.strerror}), by another UI perhaps; take another one: "
                f"make ui PORT={port + 1 if 1024 <= port < 65535 else 5001}"
            ) from error


def _browse(uri: str, artifacts: str | None, results: Path, port: int) -> int:
    """Import, follow and, where the store is a database, serve; return the exit code of the process that ended.

    Raises:
        UserError: the port can't be used, or the log can't be written.
    """
    # through the environment: other users see command lines, and the URI may hold a password
    environment = {**os.environ, URI_VARIABLE: uri, "MLFLOW_BACKEND_STORE_URI": uri}
    environment["MLFLOW_SERVER_ENABLE_JOB_EXECUTION"] = "false"  # eight processes that nothing here needs
    remote = urlsplit(uri).scheme in ("http", "https")
    if not remote:
        _check_free(port)
    at = address(uri) if remote else f"http://{HOST}:{port}"
    follow = [sys.executable, str(SCRIPTS / "follow_runs.py"), "--results", str(results)]
    follow += ["--artifact-root", artifacts] if artifacts else []
    # one process prepares the store first; then the importer follows while the server shows it
    once = [*follow, "--once", "--address", at, *(["--patience", "inf"] if remote else [])]
    done = subprocess.run(once, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        return done.returncode
    link = done.stdout.strip() or f"{at}/{PAGE}"
    with disk_errors(results / LOG):
        (results / LOG).parent.mkdir(parents=True, exist_ok=True)
        opened = (results / LOG).open("wb")
    with opened as log, _started(follow, environment, log) as follower:
        say(f"What {'the importer says' if remote else 'the server says'}: {results / LOG}. Ctrl-C ends it.")
        if remote:
            say(f"Open {link}")
            return follower.wait()
        serve = [sys.executable, "-m", "mlflow", "server", "--host", HOST, "--port", str(port)]
        serve += ["--workers", "1", "--artifacts-destination", str(results / "mlartifacts")]
        with _started(serve, environment, log) as server:
            if not _answers(port, server):
                raise UserError(f"MLflow's server did not start; why is in {results / LOG}.")
            say(f"Open {link}")
            return server.wait()


def _answers(port: int, server: subprocess.Popen[bytes]) -> bool:
    """Wait until something listens on the port; False where the server ended or took too long."""
    last = time.monotonic() + PATIENCE
    while server.poll() is None and time.monotonic() < last:
        with suppress(OSError), socket.create_connection((HOST, port), timeout=1):
            return True
        time.sleep(0.1)
    return False


def main() -> int:
    """Parse the command line and browse."""
    parser = command_line(__doc__)
    add = parser.add_argument
    add(
        "--results",
        type=Path,
        default=Path("results"),
        metavar="DIR",
        help="folder of runs/ and checkpoints/ (default: results)",
    )
    add("--config", type=Path, metavar="FILE", help="a config.yaml: the store is its tracking.uri")
    add(
        "--uri",
        help="tracking URI, before --config's (default: MLFLOW_TRACKING_URI, else SQLite at <results>/mlflow.db)",
    )
    add("--port", type=int, default=5000, help="port of the UI (default 5000)")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)

    def work() -> int:
        if not 1 <= arguments.port <= 65535:
            raise UserError(
                f"--port is {arguments.port}; a port is a number from 1 to 65535: make ui PORT=5001"
            )
        artifacts = None
        if arguments.uri is None and arguments.config is not None:
            values, scales = read_values(arguments.config), SCRIPTS.parent / "workflow" / "scales"
            tracking = load_config(values, scales, arguments.config.parent).tracking
            arguments.uri, artifacts = tracking.uri, tracking.artifacts
        uri = tracking_uri(arguments, check_results(arguments.results))
        with suppress(KeyboardInterrupt):
            return _browse(uri, artifacts, arguments.results, arguments.port)
        return 0

    return exit_code(work, arguments.uri)


if __name__ == "__main__":
    sys.exit(main())
