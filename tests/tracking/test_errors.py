"""What servers and databases answer, in sentences; what is merely down is told from what is wrong."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from places import web_server
from sqlalchemy import create_engine

from shapelaw.errors import UserError
from shapelaw.tracking.store import default_uri, open_store
from shapelaw.tracking.waiting import TrackerDown


@pytest.mark.parametrize(
    ("status", "body", "sentence"),
    [
        (404, b"<html>no</html>", "no MLflow tracking server"),
        (200, b"<html>hello</html>", "no MLflow tracking server"),
        (401, b"no", "refuses the credentials"),
        (403, b'{"error_code": "PERMISSION_DENIED", "message": "no"}', "refuses the credentials"),
    ],
)
def test_a_server_that_is_no_tracker_or_refuses_us(
    results: Path, status: int, body: bytes, sentence: str
) -> None:
    with web_server(status, body) as uri, pytest.raises(UserError, match=sentence):
        open_store(uri, results)


@pytest.mark.parametrize("status", [500, 502, 503, 429])
def test_a_server_in_trouble_is_down(results: Path, status: int) -> None:
    with web_server(status) as uri, pytest.raises(TrackerDown, match=uri):
        open_store(uri, results)


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "mlflow.db").write_text("These are the notes of the last meeting. " * 100)
    with pytest.raises(UserError, match=r"not a whole MLflow store"):
        open_store(default_uri(tmp_path), tmp_path)


def test_a_store_that_others_left_half_migrated(results: Path) -> None:
    connection = sqlite3.connect(results / "mlflow.db")
    with connection:
        connection.execute("DELETE FROM alembic_version")
        connection.execute("DROP TABLE trace_info")
    connection.close()
    with pytest.raises(UserError, match=r"not a whole MLflow store .*duplicate column.*import again"):
        open_store(default_uri(results), results)


def test_a_store_of_another_version(results: Path) -> None:
    engine = create_engine(default_uri(results))
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = 'feedface'")
    engine.dispose()
    with pytest.raises(UserError, match="mlflow db upgrade"):
        open_store(default_uri(results), results)
