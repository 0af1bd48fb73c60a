"""What `make ui` shows is the store that the workflow imports into."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
import yaml
from made_records import ask, make_run, write_finished
from mlflow.tracking import MlflowClient
from places import SCRIPTS, Place, free_port, wait_for
from stored import active_runs

from shapelaw.specs.runs import Run

PASSWORD = "hush%21-hush"


def write_config(folder: Path, uri: str | None) -> Path:
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump({"scale": "demo", "tracking": {"uri": uri}}))
    return path


@contextmanager
def browsing(*arguments: object, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """The command, as Make starts it."""
    process = subprocess.Popen(
        [sys.executable, str(SCRIPTS / "browse_runs.py"), *map(str, arguments)],
        env={**os.environ, **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate()


def shown(uri: str, study: str, run: Run) -> bool:
    """Whether a server answers with that run."""
    try:
        return run.key in active_runs(Place(Path(), uri, study).store(), study)
    except Exception as error:  # not up yet; what else it is shows when waiting ends
        print(error)
        return False


def told(process: subprocess.Popen[str], start: str = "Open ") -> str:
    """Where to look, among what it and the importer say."""
    assert process.stderr
    return next(line for line in process.stderr if line.startswith(start))


@pytest.mark.slow
def test_the_store_of_the_config_is_served(tmp_path: Path) -> None:
    """On the loopback alone; no results/mlflow.db beside it."""
    results, run, port = tmp_path / "results", make_run(), free_port()
    write_finished(results, run)
    ask(results, "depth_width", run)
    uri = f"sqlite:///{tmp_path}/elsewhere.db"
    config = write_config(tmp_path, uri)
    with browsing("--results", results, "--config", config, "--port", port) as process:
        link = f"http://127.0.0.1:{port}/#/experiments/1/runs?workflowType=machine_learning&viewStateShareKey=runs"
        assert told(process, "depth_width, runs: ") == f"depth_width, runs: {link}\n"
        assert told(process).startswith(f"Open http://127.0.0.1:{port}/#/experiments")
        wait_for(lambda: shown(f"http://127.0.0.1:{port}", "depth_width", run))
        family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
        opened = [c for each in family for c in each.net_connections() if c.status == psutil.CONN_LISTEN]
        assert {c.laddr.ip for c in opened} == {"127.0.0.1"}
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=300)
        assert process.returncode == 0
        assert not psutil.wait_procs(family[1:], timeout=300)[1]
    assert not (results / "mlflow.db").exists()
    assert (tmp_path / "elsewhere.db").exists()


@pytest.mark.slow
def test_of_a_tracking_server_the_address_is_said(tmp_path: Path, server: str) -> None:
    """Of the environment, as the config names none. Without its password; no second server or store is begun; the
    records are followed into it.
    """
    results, run = tmp_path / "results", make_run()
    write_finished(results, run)
    ask(results, "browsed", run)
    config = write_config(tmp_path, None)
    secret = server.replace("://", f"://me:{PASSWORD}@")
    with browsing("--results", results, "--config", config, MLFLOW_TRACKING_URI=secret) as process:
        sentence = told(process)
        assert sentence == (
            f"Open {server}/#/experiments?workflowType=machine_learning: the runs are tracked by that server, "
            "so none is started here.\n"
        )
        assert told(process, "browsed, runs: ").startswith(f"browsed, runs: {server}/#/experiments/")
        wait_for(lambda: shown(server, "browsed", run))
        family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
        assert not [c for each in family for c in each.net_connections() if c.status == psutil.CONN_LISTEN]
        assert not [part for each in family for part in each.cmdline() if "hush" in part]
        process.send_signal(signal.SIGTERM)
        assert "hush" not in process.communicate(timeout=300)[1]
    assert MlflowClient(server).get_experiment_by_name("browsed") is not None
    assert not (results / "mlflow.db").exists()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("tracking: {url: http://example.org}\nscale: demo\n", "tracking.url"),
        ("scale: [demo\n", "line 2 is not YAML"),
    ],
)
def test_a_wrong_config_is_a_sentence(tmp_path: Path, content: str, sentence: str) -> None:
    (tmp_path / "config.yaml").write_text(content)
    command = [sys.executable, str(SCRIPTS / "browse_runs.py"), "--results", str(tmp_path)]
    command += ["--config", str(tmp_path / "config.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_make_gives_it_the_config_of_the_checkout() -> None:
    line = ["make", "--dry-run", "ui", "PORT=5999"]
    said = subprocess.run(line, cwd=SCRIPTS.parent, capture_output=True, text=True, check=True).stdout
    assert "scripts/browse_runs.py --results results --config config.yaml --port 5999" in said


@pytest.mark.parametrize("port", [99999, 0, -1])
def test_a_port_that_is_none_is_a_sentence(tmp_path: Path, port: int) -> None:
    with browsing("--results", tmp_path, "--port", port) as process:
        assert process.wait(60) == 2
        assert process.stderr is not None
        assert process.stderr.read() == (
            f"--port is {port}; a port is a number from 1 to 65535: make ui PORT=5001\n"
        )


def test_a_port_in_use_is_a_sentence(place: Place) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with browsing("--results", place.results, "--uri", place.uri, "--port", port) as process:
            assert process.wait(60) == 2
            assert process.stderr is not None
            said = process.stderr.read()
    assert said.startswith(
        f"Port {port} can't be used (Address already in use), by another UI perhaps; take another"
    )
