"""The searches of docs/mlflow.md work as they are typed, on SQLite and, where it is installed, on PostgreSQL."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import mlflow
import pandas as pd
import pytest
from made_records import make_run, write_finished
from places import free_port
from small import REPOSITORY

from shapelaw.tracking.command import ImportProgress, default_uri
from shapelaw.tracking.importer import Importer
from shapelaw.tracking.store import open_store
from shapelaw.tracking.summary import log_summary

PAGE = REPOSITORY / "docs" / "mlflow.md"
URI = "sqlite:///results/mlflow.db"  # as the page has it
NUMBERS = {"effect.heads_1_to_2": -0.02, "best_depth.at_100K": 4.0}
LOSSES = {(1, 0): 4.5, (1, 1): 4.25, (2, 0): 4.0, (2, 1): 3.5}  # of a depth and a seed
POSTGRES = shutil.which("initdb") and shutil.which("pg_ctl")


def test_the_page_is_short() -> None:
    assert len(PAGE.read_text(encoding="utf-8").splitlines()) <= 60


@contextmanager
def postgresql(folder: Path) -> Iterator[str]:
    """The URI of a database of a server of its own, which root starts as another user."""
    user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.getuid() == 0 else []
    folder.mkdir()
    if user:
        shutil.chown(folder, "postgres")
        for parent in folder.parents:  # pytest's are its user's alone
            if parent.stat().st_uid == 0 and parent != Path("/"):
                parent.chmod(parent.stat().st_mode | 0o011)
    port, data = free_port(), folder / "data"
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder}"

    def run(*words: object) -> None:
        subprocess.run([*user, *map(str, words)], cwd=folder, check=True, stdout=subprocess.DEVNULL)

    run("initdb", "-D", data, "-U", "me", "-A", "trust", "-N")
    run("pg_ctl", "-D", data, "-w", "-l", folder / "log", "-o", options, "start")
    try:
        run("createdb", "-h", "127.0.0.1", "-p", port, "-U", "me", "runs")
        yield f"postgresql://me@127.0.0.1:{port}/runs"
    finally:
        run("pg_ctl", "-D", data, "-m", "immediate", "stop")


@pytest.fixture(
    params=[
        "sqlite",
        pytest.param(
            "postgresql", marks=[pytest.mark.slow, pytest.mark.skipif(not POSTGRES, reason="no PostgreSQL")]
        ),
    ]
)
def store(request: pytest.FixtureRequest, tmp_path: Path, empty_store: Path) -> Iterator[str]:
    """The URI of a store with the runs of a grid `mine`, two depths and two seeds, and its summary."""
    results = tmp_path / "results"
    results.mkdir()
    with (
        postgresql(tmp_path / "database") if request.param == "postgresql" else _sqlite(results, empty_store)
    ) as uri:
        for (depth, seed), loss in LOSSES.items():
            rows = [(2, 6.0, 1e-3, 1.0, loss + 1), (4, 5.0, 0.0, 1.0, loss)]
            write_finished(results, make_run(seed, depth), rows)
        assert len(Importer(results, uri, ImportProgress(print)).import_study("mine")[1].written) == len(
            LOSSES
        )
        log_summary(open_store(uri, results), "mine", [], NUMBERS)
        yield uri


@contextmanager
def _sqlite(results: Path, empty_store: Path) -> Iterator[str]:
    shutil.copy(empty_store, results / "mlflow.db")
    yield default_uri(results)


def test_the_five_searches_work_as_typed(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (block,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(re.findall(r"\bruns\(", block)) == 5 + 1, "five searches, and the function"
    assert URI in block
    monkeypatch.chdir(tmp_path)
    found: dict[str, Any] = {}
    try:
        exec(block.replace(URI, store), found)
    finally:
        mlflow.set_tracking_uri(None)  # and with it the variable that later tests' commands would obey
    assert "MLFLOW_TRACKING_URI" not in os.environ
    (best,) = found["best"].to_dict("records")
    assert (best["params.depth"], best["metrics.test_loss"]) == ("2", 3.5)
    printed = capsys.readouterr().out
    assert re.search(r" 3\.75 +0\.35\d+ +2\n", printed), "mean, deviation and number of depth 2's seeds"
    assert "[(2, 4.5), (4, 3.5)]\n[(2, 5.0), (4, 4.0)]\n" in printed
    assert found["summary"].data.metrics == NUMBERS
    table = pd.read_csv(tmp_path / "runs.csv")
    assert sorted(table["metrics.test_loss"]) == sorted(LOSSES.values())
