"""Show the runs in MLflow's UI, live while jobs run, until interrupted (Ctrl-C).

A database (SQLite, PostgreSQL, ...) is served on this machine's loopback interface. A tracking server has a UI already:
its address is printed. In both cases the records of all studies are followed into the store meanwhile.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

from shapelaw.campaign.config import load_config
from shapelaw.errors import UserError, command_line, say
from shapelaw.settings.loading import read_values
from shapelaw.tracking.command import URI_VARIABLE, check_results, exit_code, redact, tracking_uri

SCRIPTS = Path(__file__).resolve().parent
HOST = "127.0.0.1"
PAGE = "#/experiments?workflowType=machine_learning"  # of all studies


def _configured_uri(config: Path) -> str | None:
    """The tracking.uri of a config.yaml.

    Raises:
        UserError: the config can't be read or has problems.
    """
    return load_config(
        read_values(config), SCRIPTS.parent / "workflow" / "scales", config.parent
    ).tracking.uri


@contextmanager
def _started(command: Sequence[str], environment: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process and stop it at the end."""
    process = subprocess.Popen(command, env=environment)
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


def _browse(uri: str, results: Path, port: int) -> int:
    """Follow and, where the store is a database, serve; return the exit code of the process that ended.

    Raises:
        UserError: the port can't be used.
    """
    # through the environment: other users see command lines, and the URI may hold a password
    environment = {**os.environ, URI_VARIABLE: uri, "MLFLOW_BACKEND_STORE_URI": uri}
    environment["MLFLOW_SERVER_ENABLE_JOB_EXECUTION"] = (
        "false"  # eight helper processes that nothing here needs
    )
    follow = [sys.executable, str(SCRIPTS / "follow_runs.py"), "--results", str(results)]
    if urlsplit(uri).scheme in ("http", "https"):
        address = redact(uri, uri).replace("***@", "").partition("?")[0].rstrip("/")
        say(f"Open {address}/{PAGE}: the runs are tracked by that server, so none is started here.")
        with _started([*follow, "--address", address], environment) as follower:
            return follower.wait()
    _check_free(port)
    # one process prepares the store first; then the importer follows while the server shows it
    address = f"http://{HOST}:{port}"
    if code := subprocess.run(
        [*follow, "--once", "--address", address], env=environment, check=False
    ).returncode:
        return code
    serve = [sys.executable, "-m", "mlflow", "server", "--host", HOST, "--port", str(port), "--workers", "1"]
    serve += ["--artifacts-destination", str(results / "mlartifacts")]
    say(f"Open {address}/{PAGE} (Ctrl-C ends it).")
    with _started(follow, environment), _started(serve, environment) as server:
        return server.wait()


def _arguments() -> argparse.Namespace:
    parser = command_line(__doc__)
    parser.add_argument(
        "--results",
        type=Path,
        default=Path("results"),
        metavar="DIR",
        help="folder of runs/ and checkpoints/ (default: results)",
    )
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="a config.yaml: the store is its tracking.uri"
    )
    parser.add_argument(
        "--uri",
        help="tracking URI, before --config's (default: MLFLOW_TRACKING_URI, else SQLite at <results>/mlflow.db)",
    )
    parser.add_argument("--port", type=int, default=5000, help="port of the UI (default 5000)")
    return parser.parse_args()


def main() -> int:
    """Parse the command line and browse."""
    arguments = _arguments()
    signal.signal(signal.SIGTERM, signal.default_int_handler)

    def choose() -> None:
        if not 1 <= arguments.port <= 65535:
            raise UserError(
                f"--port is {arguments.port}; a port is a number from 1 to 65535: make ui PORT=5001"
            )
        if arguments.uri is None and arguments.config is not None:
            arguments.uri = _configured_uri(arguments.config)
        arguments.uri = tracking_uri(arguments, check_results(arguments.results))

    if code := exit_code(choose, arguments.uri):
        return code
    code = 0

    def browse() -> None:
        nonlocal code
        with suppress(KeyboardInterrupt):
            code = _browse(arguments.uri, arguments.results, arguments.port)

    return exit_code(browse, arguments.uri) or code


if __name__ == "__main__":
    sys.exit(main())
