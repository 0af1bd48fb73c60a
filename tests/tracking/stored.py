"""What a tracking store holds, read through MLflow alone, to compare with the records."""

import sqlite3
from pathlib import Path
from typing import Any

from mlflow.entities import Run, ViewType

from shapelaw.storage.records import read_record
from shapelaw.tracking.store import Store

COLUMNS = ("train_loss", "test_loss", "learning_rate", "gradient_norm")


def active_runs(store: Store, study: str) -> dict[str, Run]:
    """The active runs by key, the summary run by its name; fails if one is there twice."""
    experiment = store.client.get_experiment_by_name(study)
    runs = store.client.search_runs([experiment.experiment_id], run_view_type=ViewType.ACTIVE_ONLY)
    by_name = {run.data.tags.get("key", run.info.run_name): run for run in runs}
    assert len(by_name) == len(runs)
    return by_name


def curves(store: Store, run: Run) -> dict[str, list[tuple[int, float]]]:
    """Each curve as (step, value) points, in order of step."""
    points = {name: store.client.get_metric_history(run.info.run_id, name) for name in COLUMNS}
    return {name: sorted((m.step, m.value) for m in points[name]) for name in COLUMNS}


def recorded_curves(directory: Path) -> dict[str, list[tuple[int, float]]]:
    """The same of a record on disk."""
    rows = read_record(directory).history.to_pydict()
    return {
        name: [(s, v) for s, v in zip(rows["step"], rows[name], strict=True) if v is not None]
        for name in COLUMNS
    }


def content(store: Store, study: str) -> dict[str, Any]:
    """All that matters of a study's active runs: no ids, no times of points, no fingerprints, not who imported."""
    return {
        name: (
            run.info.status,
            run.info.start_time,
            run.data.params,
            run.data.metrics,
            {k: v for k, v in run.data.tags.items() if k not in ("fingerprint", "importer")},
            "fingerprint" in run.data.tags,
            curves(store, run),
            {name: len(store.client.get_metric_history(run.info.run_id, name)) for name in run.data.metrics},
            sorted(digest for digest, _ in logged_inputs(store, run)),
        )
        for name, run in active_runs(store, study).items()
    }


def dump(results: Path) -> list[str]:
    """Every row of a SQLite store."""
    connection = sqlite3.connect(results / "mlflow.db")
    try:
        return list(connection.iterdump())
    finally:
        connection.close()


def logged_inputs(store: Store, run: Run) -> set[tuple[str, str]]:
    """(digest, context) of each data set that the run logged."""
    inputs = store.client.get_run(run.info.run_id).inputs
    assert inputs is not None
    return {(each.dataset.digest, each.tags[0].value) for each in inputs.dataset_inputs}
