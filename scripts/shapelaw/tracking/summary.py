"""What users browse of a study in MLflow: its summary run with figures, tables and fits, and its pages.

A shared view is a tag of the experiment, as MLflow's own button "Share" makes it: the state of the page as compressed
JSON. A link names it by its key.
"""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import uuid
import zlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mlflow.entities import Metric, Param, Run, SourceType
from mlflow.utils.mlflow_tags import (
    MLFLOW_LOGGED_IMAGES,
    MLFLOW_RUN_NOTE,
    MLFLOW_SOURCE_NAME,
    MLFLOW_SOURCE_TYPE,
)
from PIL import Image

from shapelaw.errors import UserError
from shapelaw.specs.kinds import Kind
from shapelaw.storage.records import FINISHED
from shapelaw.tracking.entities import (
    SHAPE,
    TEXT_LIMIT,
    is_number,
    milliseconds,
    shown_name,
    valid_name,
)
from shapelaw.tracking.store import (
    FINGERPRINT,
    KEY,
    SERVED,
    STUDY,
    SUMMARY_OF,
    Store,
    find_experiment,
    make_experiment,
    search_runs,
    tracker_errors,
)

FIT = "fit/"  # group of the metrics; the images, in "figures", come before it
SAID = ("answer", "findings")  # of fit.json: sentences, which are the summary run's description
FOLDERS = {".svg": "figures", ".png": "figures"} | dict.fromkeys((".html", ".csv", ".md", ".tex"), "tables")
IMAGES = "images"  # MLflow's folder for images that its charts show
PREVIEW = 1000  # pixels of a preview's longer side
RUNS, SEEDS, SUMMARY = "runs", "seeds averaged", "summary"  # pages of a study
CORPUS, SEED = "corpus", "seed"  # params
_LETTER, _MARGIN = 7, 34  # pixels of a heading's letter, and beside it
_EXPERIMENT_KIND = "mlflow.experimentKind"
_TRAINING = "custom_model_development"  # else a click on the experiment opens GenAI's traces
_VIEW = "mlflow.sharedViewState."
_KEYS = {RUNS: "runs", SEEDS: "seeds"}  # of the shared views
_BY_SHAPE = {"aggregateFunction": "average", "groupByKeys": [{"mode": "tag", "groupByData": SHAPE}]}


def log_summary(
    store: Store, study: str, artifacts: Sequence[Path], metrics: Path | None, note: str = ""
) -> str:
    """Make the study's one summary run hold these files, and return its id. Logging equal files again changes nothing.

    Args:
        artifacts: figures and tables, stored by their names.
        metrics: file of a JSON object, nested at will: its numbers become metrics, its texts params, under
            names such as `fit/line.slope` and `line.status`; the file itself is an artifact too.
        note: description of the run.

    Raises:
        UserError: a file is missing, two have one name, or `metrics` is not a JSON object.
        TrackerDown: the tracker failed; log again, nothing is doubled.
    """
    files = [*artifacts, *([metrics] if metrics else [])]
    if missing := [str(file) for file in files if not file.is_file()]:
        raise UserError(f"There is no file {', '.join(missing)}; make it first, or leave it out.")
    names = [file.name for file in files]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise UserError(f"Two artifacts are named {', '.join(twice)}; rename one, they are stored by name.")
    numbers, texts = _flatten_file(metrics) if metrics else ({}, {})
    contents = sorted((file.name, hashlib.sha256(file.read_bytes()).hexdigest()) for file in files)
    fingerprint = hashlib.sha256(json.dumps(contents).encode()).hexdigest()[:32]
    client = store.client
    with tracker_errors(store.uri):
        experiment = str(make_experiment(store, study).experiment_id)
        known = list(search_runs(client, experiment, f"tags.`{SUMMARY_OF}` = '{study}'"))
        kept = next((run for run in known if run.data.tags.get(FINGERPRINT) == fingerprint), None)
        if kept is None:
            tags = {SUMMARY_OF: study, STUDY: study, MLFLOW_SOURCE_NAME: "scripts/analyse.py"}
            tags |= {MLFLOW_SOURCE_TYPE: SourceType.to_string(SourceType.LOCAL)}
            tags |= {MLFLOW_RUN_NOTE: note} if note else {}
            kept = client.create_run(experiment, tags=tags, run_name=f"{study} summary")
            run_id, now = kept.info.run_id, milliseconds(datetime.now(UTC))
            points = [Metric(name, value, now, 0) for name, value in numbers.items()]
            words = [Param(name, text) for name, text in texts.items()]
            for start in range(0, len(points), 1000):  # MLflow's limits for one request
                client.log_batch(run_id, metrics=points[start : start + 1000])
            for start in range(0, len(words), 100):
                client.log_batch(run_id, params=words[start : start + 100])
            keep_files(store, kept, files)
            client.set_terminated(run_id, FINISHED)
            client.set_tag(run_id, FINGERPRINT, fingerprint)  # last: without it the run is written anew
        for run in known:
            if run.info.run_id != kept.info.run_id:
                client.delete_run(run.info.run_id)
        return str(kept.info.run_id)


def _flatten_file(path: Path) -> tuple[dict[str, float], dict[str, str]]:
    try:
        values = json.loads(path.read_text())
    except ValueError as error:
        raise UserError(f"The metrics {path} are not JSON ({error}).") from error
    if not isinstance(values, dict):
        raise UserError(f"The metrics {path} are not a JSON object; write names and numbers in braces.")
    said = {name: value for name, value in values.items() if name not in SAID}
    leaves = {valid_name(name): value for name, value in _leaves(said, "")}
    numbers = {f"{FIT}{name}": float(value) for name, value in leaves.items() if is_number(value)}
    texts = {name: str(value)[:TEXT_LIMIT] for name, value in leaves.items() if not is_number(value)}
    return numbers, texts


def _leaves(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """The numbers and texts of nested JSON with their paths as names; null is left out."""
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for part, inner in items:
            yield from _leaves(inner, f"{name}.{part}" if name else str(part))
    elif value is not None:
        yield name, value


def keep_files(store: Store, run: Run, files: Sequence[Path]) -> None:
    """Make files artifacts of a run: figures as images, tables in `tables/`, what is neither on top.

    Nothing is kept twice. An .svg is its image where the .png of its name lies beside it, and in `figures/` where none
    does; a .csv is left to the .html of its name, which has the CSV to download.

    A store that is a database keeps only their place below what `mlflow server` serves, so the results folder can be
    moved; its files are written there directly.
    """
    with TemporaryDirectory() as name:
        folder = Path(name) / "artifacts"  # its own folder is this user's alone, and its mode would be copied
        folder.mkdir()
        figures = {file: file.with_suffix(".png") for file in files if file.suffix in (".svg", ".png")}
        shown = {file: image for file, image in figures.items() if image.is_file()}
        for file in files:
            if file in shown or (file.suffix == ".csv" and file.with_suffix(".html") in files):
                continue
            there = folder / FOLDERS.get(file.suffix, "") / file.name
            there.parent.mkdir(exist_ok=True)
            shutil.copyfile(file, there)
        for image in sorted(set(shown.values())):  # under the names by which charts find it, with its preview
            (folder / IMAGES).mkdir(exist_ok=True)
            name = f"figures~{image.stem}+step+0+timestamp+{milliseconds(datetime.now(UTC))}+{uuid.uuid4()}"
            shutil.copyfile(image, folder / IMAGES / f"{name}.png")
            with Image.open(image) as opened:
                opened.thumbnail((PREVIEW, PREVIEW))
                opened.save(folder / IMAGES / f"{name}+compressed.webp")
        uri = str(run.info.artifact_uri)
        if store.artifacts is not None and uri.startswith(SERVED):
            shutil.copytree(folder, store.artifacts / uri.removeprefix(SERVED), dirs_exist_ok=True)
        else:
            store.client.log_artifacts(run.info.run_id, str(folder))
        if (folder / IMAGES).exists():
            store.client.set_tag(run.info.run_id, MLFLOW_LOGGED_IMAGES, "True")


def varied_columns(kind: Kind, runs: Sequence[Mapping[str, str]]) -> list[str]:
    """The params that tell runs of a kind apart, as MLflow names them; the corpus is always one.

    Of the kind's own columns those that vary, then any other that differs between runs that are equal in all before it:
    a size that follows from the shape is none.

    Args:
        runs: the params of the runs; fewer than two don't vary, and all of the kind's columns are taken.
    """
    names = {column.name: column.logged_as for column in kind.params}
    shown = [names[name] for name in kind.shown if name in names]
    if len(runs) < 2:
        return shown
    found = [name for name in shown if name == CORPUS or len({run.get(name) for run in runs}) > 1]
    for name in names.values():
        before = {tuple(run.get(one) for one in found) for run in runs}
        with_it = {tuple(run.get(one) for one in (*found, name)) for run in runs}
        if len(with_it) > len(before):
            found.insert(-1 if found[-1:] == [SEED] else len(found), name)
    return found


def view(kind: Kind, averaged: bool, runs: Sequence[Mapping[str, str]] = ()) -> dict[str, Any]:
    """The state of the run list: the columns that tell these runs apart and their results, best first.

    Args:
        averaged: runs that differ by their seed alone are one row, with the means of their metrics, and without a
            column of the seed, whose mean says nothing.
        runs: the params of the runs.
    """
    params = [name for name in varied_columns(kind, runs) if not (averaged and name == SEED)]
    named = {column.name: column.logged_as for column in kind.metrics}
    results = [shown_name(named[name]) for name in kind.shown if name in named]
    columns = [f"params.`{name}`" for name in params]
    numbers = [f"metrics.`{name}`" for name in results]
    widths = [_LETTER * len(name) + _MARGIN for name in (*params, *results)]
    return {
        "selectedColumns": [*columns, *numbers],
        "columnOrder": [*columns, *numbers],
        "columnWidths": dict(zip([*columns, *numbers], widths, strict=True)),
        "runsHiddenMode": "FIRST_20_RUNS",
        "groupBy": _BY_SHAPE if averaged else None,
        "useGroupedValuesInCharts": averaged,
        "orderByKey": numbers[0],
        "orderByAsc": results[0].endswith("loss"),
    }


def show_as_training(store: Store, experiment_id: str, kind: Kind, whole: bool) -> None:
    """Make an experiment open as model training, and give it its shared views; what is there already is not written.

    Args:
        whole: all runs of the experiment were looked at. Else views that are there stay: they take all to make.
    """
    views = {page: _VIEW + key for page, key in _KEYS.items()}
    tags = store.client.get_experiment(experiment_id).tags
    if not whole and all(tag in tags for tag in views.values()):
        return
    runs = [run.data.params for run in search_runs(store.client, experiment_id) if KEY in run.data.tags]
    wanted = {_EXPERIMENT_KIND: _TRAINING}
    wanted |= {tag: _packed(view(kind, page == SEEDS, runs)) for page, tag in views.items()}
    _set_tags(store, experiment_id, wanted)


def write_note(store: Store, study: str, text: str) -> None:
    """Write the description of a study's experiment, where there is one, with links to its pages.

    Raises:
        TrackerDown: the tracker failed.
    """
    with tracker_errors(store.uri):
        experiment = find_experiment(store, study)
        if experiment is not None:
            links = [f"[{name}]({link.lstrip('/')})" for name, link in pages(store, study, "").items()]
            _set_tags(
                store,
                str(experiment.experiment_id),
                {MLFLOW_RUN_NOTE: f"{text}\n\nPages: {', '.join(links)}."},
            )


def _set_tags(store: Store, experiment_id: str, wanted: Mapping[str, str]) -> None:
    tags = store.client.get_experiment(experiment_id).tags
    for name, text in wanted.items():
        if tags.get(name) != text:
            store.client.set_experiment_tag(experiment_id, name, text)


def _packed(state: Mapping[str, Any]) -> str:
    """A page's state as MLflow's UI keeps it."""
    return "deflate;" + base64.b64encode(zlib.compress(json.dumps(state).encode())).decode()


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
        for run in search_runs(store.client, experiment.experiment_id, f"tags.`{SUMMARY_OF}` = '{study}'"):
            found[SUMMARY] = f"{place}/{run.info.run_id}?workflowType=machine_learning"
        return found
