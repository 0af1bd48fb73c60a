"""A password in the tracking URI, or beside it in the environment, is in no sentence, no log and no record."""

import json
import logging
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import script
from made_records import ask, make_run, write_finished, write_live
from places import Place, active_runs, free_port, web_server
from small import listed

from shapelaw.tracking.command import redact

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
