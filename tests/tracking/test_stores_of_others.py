"""A store is opened by its URI, or a sentence says why not; passwords in it, or beside it, are shown nowhere."""

import json
import logging
import math
import os
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from commands import script
from made_records import ask, make_rows, make_run, write_finished, write_live
from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore
from mlflow.tracking import MlflowClient
from places import Place, active_runs, free_port, web_server
from small import listed
from sqlalchemy import create_engine
from sqlalchemy.exc import OperationalError

from shapelaw.advice.own_runs.experiments import read_experiment
from shapelaw.errors import UserError
from shapelaw.tracking.command import LOCK_NAME, TrackerDown, default_uri, one_writer, redact
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


@pytest.mark.parametrize(("mode", "killed"), [(0o770, True), (0o700, False)])
def test_a_store_is_whole_its_folder_s_users_and_where_the_uri_says(
    mode: int, killed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite makes files 0644 whatever the umask; in a URI nothing is decoded, and # ends nothing.

    An empty file becomes a store too; a creation that was killed leaves none.
    """
    folder = tmp_path / f"#{mode:o} %41;&"
    folder.mkdir()
    folder.chmod(mode)

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    if killed:
        with monkeypatch.context() as patch:
            patch.setattr(SqlAlchemyStore, "delete_experiment", die)
            with pytest.raises(KeyboardInterrupt):
                open_store(default_uri(folder), folder)
        assert not (folder / "mlflow.db").exists()
        assert list(folder.glob(".mlflow.db.*.new"))
    else:
        (folder / "mlflow.db").touch()
    before = os.umask(0o022)
    try:
        with one_writer(folder, print):
            store = open_store(default_uri(folder), folder)
    finally:
        os.umask(before)
    assert store.client.search_experiments() == []  # no empty "Default" either
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


PASSWORD = "hush%21-hush"


COMMANDS = [
    ("import_runs", "--study", "depth_width", "--out", "runs.parquet"),
    ("follow_runs", "--once"),
    ("log_study", "--study", "depth_width", "--artifacts", "figure.svg"),
]


Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Run:
    """Run a command against a URI; its exit code and all that it said or logged."""
    (tmp_path / "figure.svg").write_text("<svg/>")
    write_finished(tmp_path / "results", make_run())
    write_live(tmp_path / "results", make_run(1))
    ask(tmp_path / "results", "depth_width", make_run(), make_run(1))

    def start(command: tuple[str, ...], uri: str, how: str) -> tuple[int, str]:
        caplog.set_level(logging.DEBUG)
        monkeypatch.setenv("MLFLOW_TRACKING_URI", uri if how == "environment" else "http://wrong:wrong@wrong")
        given = ["--uri", uri] if how == "option" else []
        done = script(*command, "--results", "results", "--patience", 0.5, *given, cwd=tmp_path)
        ours = [record.getMessage() for record in caplog.records if record.name.startswith("shapelaw")]
        return done.returncode, "\n".join([done.stdout, done.stderr, *ours])

    return start


def with_password(uri: str) -> str:
    return uri.replace("://", f"://me:{PASSWORD}@")


def shows(text: str) -> bool:
    return "hush" in text or "me:" in text


@pytest.mark.parametrize(
    ("command", "how"), [(COMMANDS[0], "option"), *((command, "environment") for command in COMMANDS)]
)
def test_no_command_shows_it(
    run: Run, server: str, command: tuple[str, ...], how: str, tmp_path: Path
) -> None:
    """Nor does the store hold it: neither our tags nor MLflow's."""
    code, text = run(command, with_password(server), how)
    assert code == 0, text
    assert not shows(text)
    runs = active_runs(Place(tmp_path, server, "depth_width").store(), "depth_width").values()
    assert runs
    assert not shows(json.dumps([one.to_dictionary() for one in runs]))
    code, text = run(command, with_password(f"http://127.0.0.1:{free_port()}"), how)
    assert code == 3
    assert "http://***@127.0.0.1" in text
    assert not shows(text)
    files = [path for path in (tmp_path / "results").rglob("*") if path.is_file()]
    assert not [path for path in files if shows(path.read_bytes().decode(errors="replace"))]


def test_the_traceback_of_a_bug_does_not_show_it(run: Run) -> None:
    """A server that refuses a value is a bug of ours: its traceback is shown, without the secret."""
    body = {"error_code": "INVALID_PARAMETER_VALUE", "message": f"http://me:{PASSWORD}@here and {PASSWORD}"}
    with web_server(400, json.dumps(body).encode()) as uri:
        code, text = run(COMMANDS[0], with_password(uri), "option")
    assert code == 1
    assert "Traceback" in text
    assert "INVALID_PARAMETER_VALUE" in text
    assert not shows(text)


def test_a_wrong_uri_does_not_show_it(run: Run) -> None:
    for uri in (
        f"ftp://me:{PASSWORD}@host",
        f"postgresql://me:{PASSWORD}@host:port/x",
        f"//me:{PASSWORD}@host",
        f"me:{PASSWORD}@host",
        f"http://me:{PASSWORD}/x@host",
    ):
        code, text = run(COMMANDS[0], uri, "environment")
        assert (code, shows(text)) == (2, False), text


@pytest.mark.parametrize(("text", "shown"), listed("tracking/uris.yaml", "secrets"))
def test_secrets_are_removed(monkeypatch: pytest.MonkeyPatch, text: str, shown: str) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "t0ps3cret")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://me:p%40ss%20word@host")
    assert redact(text) == shown
    assert redact(text.replace("hush", "quiet"), "http://me:quiet@host").count("quiet") == 0


def test_no_results_folder_is_a_sentence(tmp_path: Path) -> None:
    done = script("import_runs", "--study", "a", "--out", "a.parquet", "--results", tmp_path / "resluts")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("There is no results folder")
