"""The pages of a study in MLflow's UI: its runs as model training, with columns that answer the study's question.

A shared view is a tag of the experiment, as MLflow's own button "Share" makes it: the state of the page as compressed
JSON. A link names it by its key.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from mlflow.exceptions import MlflowException
from mlflow.utils.mlflow_tags import MLFLOW_RUN_NOTE

from shapelaw.specs.kinds import Kind
from shapelaw.tracking.entities import SHAPE
from shapelaw.tracking.errors import is_conflict, tracker_errors
from shapelaw.tracking.names import result_name
from shapelaw.tracking.redaction import redact
from shapelaw.tracking.store import SUMMARY_OF, Store, find_experiment, search_runs

LOCAL = "http://127.0.0.1:5000"  # where `make ui` serves
RUNS, SEEDS, SUMMARY = "runs", "seeds averaged", "summary"  # pages of a study
_EXPERIMENT_NOTE, _EXPERIMENT_KIND = (
    MLFLOW_RUN_NOTE,
    "mlflow.experimentKind",
)  # experiments have the same tag for notes
_TRAINING = "custom_model_development"  # else a click on the experiment opens GenAI's traces
_VIEW = "mlflow.sharedViewState."
_KEYS = {RUNS: "runs", SEEDS: "seeds"}  # of the shared views
_BY_SHAPE = {"aggregateFunction": "average", "groupByKeys": [{"mode": "tag", "groupByData": SHAPE}]}


def view(kind: Kind, averaged: bool) -> dict[str, Any]:
    """The state of the run list: the columns that matter for a kind of run, best first.

    Args:
        averaged: runs that differ by their seed alone are one row, with the means of their metrics.
    """
    columns = [f"params.`{column.logged_as}`" for column in kind.params if column.name in kind.shown]
    results = [result_name(column.logged_as) for column in kind.metrics if column.name in kind.shown]
    numbers = [f"metrics.`{name}`" for name in results]
    return {
        "selectedColumns": [*columns, *numbers],
        "columnOrder": [*columns, *numbers],
        "columnWidths": dict.fromkeys(columns, 80) | dict.fromkeys(numbers, 165),
        "runsHiddenMode": "FIRST_20_RUNS",
        "groupBy": _BY_SHAPE if averaged else None,
        "useGroupedValuesInCharts": averaged,
        "orderByKey": numbers[0],
        "orderByAsc": results[0].endswith("loss"),
    }


def show_as_training(store: Store, experiment_id: str, kind: Kind) -> None:
    """Make an experiment open as model training, and give it its shared views; what is there already is not written."""
    wanted = {_EXPERIMENT_KIND: _TRAINING}
    wanted |= {_VIEW + key: _packed(view(kind, page == SEEDS)) for page, key in _KEYS.items()}
    _set_tags(store, experiment_id, wanted)


def write_note(store: Store, study: str, text: str) -> None:
    """Write the description of a study's experiment, where there is one.

    Raises:
        TrackerDown: the tracker failed.
    """
    with tracker_errors(store.uri):
        experiment = find_experiment(store, study)
        if experiment is not None:
            _set_tags(store, str(experiment.experiment_id), {_EXPERIMENT_NOTE: text})


def _set_tags(store: Store, experiment_id: str, wanted: Mapping[str, str]) -> None:
    tags = store.client.get_experiment(experiment_id).tags
    for name, text in wanted.items():
        if tags.get(name) != text:
            _set_tag(store, experiment_id, name, text)


def _set_tag(store: Store, experiment_id: str, name: str, text: str) -> None:
    """Set one tag. A database refuses it where another importer inserts the same one now: then it exists."""
    try:
        store.client.set_experiment_tag(experiment_id, name, text)
    except MlflowException as error:
        if not is_conflict(error):
            raise
        store.client.set_experiment_tag(experiment_id, name, text)


def _packed(state: Mapping[str, Any]) -> str:
    """A page's state as MLflow's UI keeps it."""
    return "deflate;" + base64.b64encode(zlib.compress(json.dumps(state).encode())).decode()


def address(uri: str) -> str:
    """The UI's address for a tracking URI, without a password: the server's, or that of `make ui`."""
    if urlsplit(uri).scheme not in ("http", "https"):
        return LOCAL
    return redact(uri, uri).replace("***@", "").partition("?")[0].rstrip("/")


def pages(store: Store, study: str, at: str) -> dict[str, str]:
    """Links to the pages of a study's experiment, by name; none where it has no experiment.

    Args:
        at: the UI's address.

    Raises:
        TrackerDown: the tracker failed.
    """
    with tracker_errors(store.uri):
        experiment = find_experiment(store, study)
        if experiment is None:
            return {}
        place = f"{at}/#/experiments/{experiment.experiment_id}/runs"
        found = {
            page: f"{place}?workflowType=machine_learning&viewStateShareKey={key}"
            for page, key in _KEYS.items()
            if _VIEW + key in experiment.tags
        } or {RUNS: f"{place}?workflowType=machine_learning"}
        for run in search_runs(store, experiment.experiment_id, f"tags.`{SUMMARY_OF}` = '{study}'"):
            found[SUMMARY] = f"{place}/{run.info.run_id}/artifacts?workflowType=machine_learning"
        return found
