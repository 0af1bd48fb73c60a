"""A study's summary run: one, with its files and numbers."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path

import pytest
from made_records import make_run, write_finished
from places import Place, Script
from stored import active_runs

from shapelaw.errors import UserError
from shapelaw.tracking.summary import log_summary
from shapelaw.tracking.table import read_runs


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    figure, table = tmp_path / "figure.svg", tmp_path / "transitions.csv"
    figure.write_text("<svg/>")
    table.write_text("depth,width\n2,16\n")
    return [figure, table]


@pytest.fixture
def fit(tmp_path: Path) -> Path:
    path = tmp_path / "fit.json"
    values = {"line": {"slope": 5.039e-2, "slope_error": None, "status": "converged"}, "r_squared": [0.5, 1]}
    path.write_text(json.dumps({**values, "many": {f"n{i}": i for i in range(1200)}, "usable": True}))
    return path


def test_figures_and_fits_arrive_in_one_run(any_place: Place, files: list[Path], fit: Path) -> None:
    run = make_run()
    write_finished(any_place.results, run)
    any_place.import_all()
    store = any_place.store()
    run_id = log_summary(store, any_place.study, files, fit)
    name = f"{any_place.study} summary"
    summary = active_runs(store, any_place.study)[name]
    assert (summary.info.run_id, summary.info.status) == (run_id, "FINISHED")
    assert len(summary.data.metrics) == 1203
    assert summary.data.metrics["fit/line.slope"] == 5.039e-2
    assert summary.data.metrics["fit/r_squared.1"] == 1
    assert summary.data.params == {"line.status": "converged", "usable": "True"}
    assert log_summary(store, any_place.study, files, fit) == run_id

    files[0].write_text("<svg><path/></svg>")
    assert log_summary(store, any_place.study, files, fit) != run_id
    runs = active_runs(store, any_place.study)
    assert set(runs) == {run.key, name}
    assert [row["key"] for row in read_runs(store, any_place.study).to_pylist()] == [run.key]
    assert any_place.import_all().unchanged == 1


def test_a_server_over_the_store_serves_the_figures(place: Place, server: str, files: list[Path]) -> None:
    """Artifacts of a SQLite store lie in the results folder; a server sends what its own experiments hold."""
    run_id = log_summary(place.store(), place.study, files, None)
    location = place.results / "mlartifacts" / place.study / run_id / "artifacts" / "figures" / "figure.svg"
    assert location.read_text() == "<svg/>"
    through = Place(place.results, server, f"{place.study} served")
    run_id = log_summary(through.store(), through.study, files, None)
    with urllib.request.urlopen(f"{server}/get-artifact?path=figures/figure.svg&run_uuid={run_id}") as answer:
        assert answer.read() == b"<svg/>"


@pytest.mark.parametrize(
    ("content", "sentence"), [("{", "are not JSON"), ("[1]", "not a JSON object"), (None, "There is no file")]
)
def test_wrong_metrics_are_a_sentence(
    place: Place, tmp_path: Path, content: str | None, sentence: str
) -> None:
    path = tmp_path / "fit.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(UserError, match=sentence):
        log_summary(place.store(), place.study, [], path)


def test_two_artifacts_of_one_name(place: Place, files: list[Path]) -> None:
    (files[0].parent / "other").mkdir()
    twin = files[0].rename(files[0].parent / "other" / "transitions.csv")
    with pytest.raises(UserError, match=r"Two artifacts are named transitions\.csv"):
        log_summary(place.store(), place.study, [files[1], twin], None)


def test_the_command(place: Place, files: list[Path], fit: Path, script: Script) -> None:
    arguments = ["--results", place.results, "--study", place.study, "--metrics", fit, "--artifacts", *files]
    done = script("log_study.py", *arguments)
    assert (done.code, done.output) == (0, ""), done.errors
    summary = active_runs(place.store(), place.study)[f"{place.study} summary"]
    assert summary.info.run_id in done.errors
    assert script("log_study.py", *arguments, files[0].with_name("none.png")).code == 2
