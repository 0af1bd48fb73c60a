"""Real stores: SQLite files, and an MLflow server on the loopback interface."""

import shutil
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from places import Place, serve

from shapelaw.tracking.command import SECRETS, URI_VARIABLE, default_uri


@pytest.fixture(autouse=True)
def no_tracker_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests may have a tracking server of their own."""
    for name in (URI_VARIABLE, *SECRETS, "MLFLOW_TRACKING_USERNAME"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def results(tmp_path: Path, empty_store: Path) -> Path:
    folder = tmp_path / "results"
    folder.mkdir()
    shutil.copy(empty_store, folder / "mlflow.db")
    return folder


@pytest.fixture
def place(results: Path) -> Place:
    """A results folder with its SQLite store."""
    return Place(results, default_uri(results), "depth_width")


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, empty_store: Path) -> Iterator[str]:
    """The URI of a tracking server."""
    folder = tmp_path_factory.mktemp("server")
    shutil.copy(empty_store, folder / "mlflow.db")
    with serve(default_uri(folder), folder) as uri:
        yield uri


@pytest.fixture(scope="session")
def study_names() -> Iterator[str]:
    """A name that no other test uses, for the experiments of the shared server."""
    return (f"study{number}" for number in count())


@pytest.fixture(params=["sqlite", "http"])
def any_place(request: pytest.FixtureRequest, results: Path, study_names: Iterator[str]) -> Place:
    """The same results folder over either kind of store."""
    http = request.param == "http"
    uri = request.getfixturevalue("server") if http else default_uri(results)
    return Place(results, uri, next(study_names))
