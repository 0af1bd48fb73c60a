"""A store is opened by its URI, or a sentence says why not; a store of another MLflow is refused, untouched."""

import math
import os
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from made_records import make_rows, make_run, write_finished
from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore
from mlflow.tracking import MlflowClient
from places import Place, web_server
from small import listed
from sqlalchemy import create_engine
from sqlalchemy.exc import OperationalError

from shapelaw.advice.own_runs.experiments import read_experiment
from shapelaw.errors import UserError
from shapelaw.tracking.command import LOCK_NAME, TrackerDown, default_uri, one_writer
from shapelaw.tracking.store import open_store, tracker_errors
from shapelaw.tracking.summary import log_summary


@pytest.mark.parametrize(
    ("uri", "sentence"),
    [
        ("mysql+pymysql://nobody:hush@127.0.0.1:1/x", r"can be used \(No module named 'pymysql'\)"),
        ("sqlite:////proc/nothing/mlflow.db", "can be used"),
    ],
)
def test_a_store_that_can_not_be_opened_is_a_sentence(results: Path, uri: str, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence) as caught:
        open_store(uri, results)
    assert "hush" not in str(caught.value)


def test_a_creation_that_was_killed_leaves_no_store_and_the_next_one_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def die(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(SqlAlchemyStore, "delete_experiment", die)
        with pytest.raises(Killed):
            open_store(default_uri(tmp_path), tmp_path)
    assert not (tmp_path / "mlflow.db").exists()
    assert list(tmp_path.glob(".mlflow.db.*.new"))
    store = open_store(default_uri(tmp_path), tmp_path)
    assert store.client.search_experiments() == []  # no empty "Default" either
    assert os.listdir(tmp_path) == ["mlflow.db"]


@pytest.mark.parametrize(
    ("status", "body", "kind", "sentence"),
    [
        (404, b"<html>no</html>", UserError, "no store of MLflow's at"),
        (200, b"<html>hello</html>", UserError, "no store of MLflow's at"),
        (401, b"no", UserError, "refuses us"),
        (403, b'{"error_code": "PERMISSION_DENIED", "message": "no"}', UserError, "refuses us"),
        *((status, b"<html>hello</html>", TrackerDown, "http://") for status in (500, 502, 503, 429)),
    ],
)
def test_a_server_that_is_no_tracker_or_refuses_us_is_told_and_one_in_trouble_is_down(
    results: Path, status: int, body: bytes, kind: type[Exception], sentence: str
) -> None:
    with web_server(status, body) as uri, pytest.raises(kind, match=sentence):
        open_store(uri, results)


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("server closed the connection unexpectedly", TrackerDown),
        ("connection to server at 127.0.0.1 failed: Connection refused", TrackerDown),
        ("FATAL: the database system is starting up", TrackerDown),
        ('FATAL: password authentication failed for user "me"', UserError),
        ('FATAL: database "runs" does not exist', UserError),
    ],
)
def test_a_postgresql_that_crashed_is_down_and_one_that_refuses_us_is_told(
    said: str, kind: type[Exception]
) -> None:
    with (
        pytest.raises(kind, match=re.escape(said)) as caught,
        tracker_errors("postgresql://me:hush@host/runs"),
    ):
        raise OperationalError("SELECT 1", {}, Exception(f"{said} at postgresql://me:hush@host/runs\nadvice"))
    assert "hush" not in str(caught.value)


def change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


Damage = Callable[[Path], object]


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda path: path.write_text("The notes of the last meeting. " * 100), "file is not a database"),
        (lambda path: change(path, "DELETE FROM alembic_version"), "its schema is None"),
        (lambda path: change(path, "DROP TABLE params"), "made by another MLflow"),
        (
            lambda path: change(path, "UPDATE alembic_version SET version_num = 'feed'"),
            r"its schema is feed.*: back it up and run .*db upgrade",
        ),
        (lambda path: (path.unlink(), path.mkdir()), "unable to open database file"),
    ],
)
def test_what_is_no_store_of_this_mlflow_is_neither_read_nor_written_to(
    results: Path, damage: Damage, sentence: str
) -> None:
    path = results / "mlflow.db"
    damage(path)
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(UserError, match=sentence):
        open_store(default_uri(results), results)
    with pytest.raises(UserError, match=sentence):
        read_experiment(default_uri(results), "shapes")
    assert (path.read_bytes() if path.is_file() else b"") == before


@pytest.mark.parametrize(("uri", "sentence"), listed("tracking/uris.yaml", "unreadable"))
def test_a_store_that_can_not_be_read_is_a_sentence_and_nothing_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uri: str, sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mlruns" / "0").mkdir(parents=True)
    (tmp_path / "empty.db").touch()
    before = {path: path.stat().st_size for path in tmp_path.rglob("*")}
    with pytest.raises(UserError) as caught:
        read_experiment(uri.format(folder=tmp_path), "shapes")
    assert sentence.format(folder=tmp_path) in str(caught.value)
    assert {path: path.stat().st_size for path in tmp_path.rglob("*")} == before


def test_a_store_is_its_folder_s_users_and_is_where_the_uri_says(tmp_path: Path) -> None:
    """SQLite makes files 0644 whatever the umask; in a URI nothing is decoded, and # ends nothing.

    An empty file becomes a store too.
    """
    for mode in (0o770, 0o700):
        folder = tmp_path / f"#{mode:o} %41;&"
        folder.mkdir()
        folder.chmod(mode)
        (folder / "mlflow.db").touch()
        before = os.umask(0o022)
        try:
            with one_writer(folder, print):
                open_store(default_uri(folder), folder)
        finally:
            os.umask(before)
        files = {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}
        assert files == {"mlflow.db": mode & 0o666, LOCK_NAME: mode & 0o666}


def test_a_store_that_we_may_not_write_to_is_said_at_once(results: Path) -> None:
    read_only = f"file:{results}/mlflow.db?mode=ro"
    engine = create_engine("sqlite://", creator=lambda: sqlite3.connect(read_only, uri=True))
    with (
        pytest.raises(UserError, match=r"can be used \(attempt to write a readonly database\)"),
        tracker_errors("sqlite:///theirs.db"),
        engine.begin() as connection,
    ):
        connection.exec_driver_sql("DELETE FROM params")


def test_parameters_last_metrics_and_states_of_runs(place: Place) -> None:
    client = MlflowClient(place.uri)
    experiment = client.create_experiment("mine")
    for state in ("FINISHED", "RUNNING", "FAILED"):
        run = client.create_run(experiment, run_name=f"run {state}").info.run_id
        client.log_param(run, "n_layer", "4")
        client.log_param(run, "text", "4a")
        for step, loss in enumerate((4.0, math.nan if state == "FAILED" else 3.5)):
            client.log_metric(run, "val/loss", loss, step=step)
        if state != "RUNNING":
            client.set_terminated(run, state)
    empty = client.create_run(client.create_experiment("empty")).info.run_id
    client.set_terminated(empty, "FINISHED")
    with pytest.raises(UserError, match="has no run with parameters and metrics"):
        read_experiment(place.uri, "empty")
    with pytest.raises(UserError, match="has no experiment 'min'; it has empty, mine"):
        read_experiment(place.uri, "min")
    table = read_experiment(place.uri, "mine")
    assert sorted(table.index) == ["run FAILED", "run FINISHED", "run RUNNING"]
    same = {"n_layer": 4, "text": "4a", "_step": 1}
    for state, loss in (("FINISHED", 3.5), ("RUNNING", 3.5), ("FAILED", math.inf)):
        row = table.loc[f"run {state}"].to_dict()
        assert row == {**same, "val/loss": loss, "Name": f"run {state}", "State": state}


def test_our_own_runs_are_read_with_their_shape_and_recipe(place: Place) -> None:
    """Not with the last point of the learning rate's curve; a full rank is none, and there is no summary run."""
    run = make_run()
    write_finished(place.results, run)
    place.import_all()
    log_summary(place.store(), place.study, [], {"effect.heads_1_to_2": 1.0})
    (row,) = read_experiment(place.uri, place.study).to_dict("records")
    assert (row["depth"], row["width"], row["bits_per_byte"], row["learning_rate"]) == (2, 16, 1.75, 3e-3)
    assert (row["test_loss"], row["block_params"]) == (make_rows(run)[-1][4], 12 * 2 * 16**2)
    assert not {name for name in row if "/" in str(name) or name == "embedding_rank"}
