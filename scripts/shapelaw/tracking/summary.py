"""What users browse of a study in MLflow: its summary run with figures and tables, and its pages.

A shared view is a tag of the experiment, as MLflow's own button "Share" makes it: the state of the page as compressed
JSON. A link names it by its key.
"""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import zlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mlflow.entities import Experiment, Metric, Run, SourceType
from mlflow.utils import mlflow_tags

from shapelaw.errors import UserError
from shapelaw.specs.kinds import KINDS, Kind
from shapelaw.storage.records import FINISHED
from shapelaw.tracking.entities import FINGERPRINT, SHAPE, SIZE_CLASS, SIZES, STUDY, Listed, milliseconds
from shapelaw.tracking.store import SERVED, Store, search_runs, tracker_errors

SUMMARY_OF = "summary_of"  # tag of a study's summary run
# of artifacts, by the ending of a file
FOLDERS = {".svg": "figures", ".png": "figures", **dict.fromkeys((".csv", ".html", ".md", ".tex"), "tables")}
RUNS, SEEDS, SUMMARY = "runs", "seeds averaged", "summary"  # pages of a study
EQUAL_SIZES = "equal sizes"
SEED, BITS = "seed", "bits_per_byte"
_TEXTS = ("corpus", "vocab_size")  # params: where they differ, losses compare in bits per byte alone
_LETTER, _MARGIN = 7, 34  # pixels of a heading's letter, and beside it
_EXPERIMENT_KIND = "mlflow.experimentKind"
_TRAINING = "custom_model_development"  # else a click on the experiment opens GenAI's traces
_VIEW, _DEFLATED = "mlflow.sharedViewState.", "deflate;"
_KEYS = {RUNS: "runs", SEEDS: "seeds", EQUAL_SIZES: "sizes"}  # of the shared views


def log_summary(
    store: Store, study: str, artifacts: Sequence[Path], numbers: Mapping[str, float], note: str = ""
) -> str:
    """Make the study's one summary run hold these, and return its id. Logging the same again changes nothing.

    Args:
        artifacts: figures, tables and other files, stored by their names.
        numbers: its metrics.
        note: description of the run.

    Raises:
        UserError: a file is missing.
        TrackerDown: the tracker failed; log again, nothing is doubled.
    """
    if missing := [str(file) for file in artifacts if not file.is_file()]:
        raise UserError(f"There is no file {', '.join(missing)}; make it first, or leave it out.")
    contents = sorted((file.name, hashlib.sha256(file.read_bytes()).hexdigest()) for file in artifacts)
    fingerprint = hashlib.sha256(json.dumps([contents, dict(numbers)]).encode()).hexdigest()[:32]
    client = store.client
    with tracker_errors(store.uri):
        experiment = store.make_experiment(study)
        known = list(_summaries(store, experiment))
        kept = next((run for run in known if run.data.tags.get(FINGERPRINT) == fingerprint), None)
        if kept is None:
            tags = {SUMMARY_OF: study, STUDY: study, mlflow_tags.MLFLOW_SOURCE_NAME: "scripts/analyse.py"}
            tags |= {mlflow_tags.MLFLOW_SOURCE_TYPE: SourceType.to_string(SourceType.LOCAL)}
            tags |= {mlflow_tags.MLFLOW_RUN_NOTE: note} if note else {}
            kept = client.create_run(experiment.experiment_id, tags=tags, run_name=f"{study} summary")
            run_id, now = kept.info.run_id, milliseconds(datetime.now(UTC))
            client.log_batch(run_id, metrics=[Metric(name, value, now, 0) for name, value in numbers.items()])
            keep_files(store, kept, artifacts)
            client.set_terminated(run_id, FINISHED)
            client.set_tag(run_id, FINGERPRINT, fingerprint)  # last: without it the run is written anew
        for run in known:
            if run.info.run_id != kept.info.run_id:
                client.delete_run(run.info.run_id)
        tags = experiment.tags
        states = {tag: _unpacked(tags[tag]) for key in _KEYS.values() if (tag := _VIEW + key) in tags}
        pinned = {"runsPinned": [kept.info.run_id]}
        _set_tags(store, experiment, {tag: _packed(state | pinned) for tag, state in states.items()})
        return str(kept.info.run_id)


def _summaries(store: Store, experiment: Experiment) -> Iterable[Run]:
    return search_runs(store.client, experiment.experiment_id, f"tags.{SUMMARY_OF} = '{experiment.name}'")


def keep_files(store: Store, run: Run, files: Sequence[Path]) -> None:
    """Make files artifacts of a run: figures and tables in folders of their own, what is neither on top.

    A store that is a database keeps only their place below what `mlflow server` serves, so the results folder can be
    moved; its files are written there directly.
    """
    with TemporaryDirectory() as name:
        folder = Path(name) / "artifacts"  # its own folder is this user's alone, and its mode would be copied
        folder.mkdir()
        for file in files:
            part = folder / FOLDERS.get(file.suffix, "")
            part.mkdir(exist_ok=True)
            shutil.copyfile(file, part / file.name)
        uri = str(run.info.artifact_uri)
        if store.served is not None and uri.startswith(SERVED):
            shutil.copytree(folder, store.served / uri.removeprefix(SERVED), dirs_exist_ok=True)
        else:
            store.client.log_artifacts(run.info.run_id, str(folder))


def varied_params(kind: Kind, rows: Sequence[Mapping[str, object]]) -> list[str]:
    """The params that tell runs of a kind apart.

    Of the kind's own columns those that vary, then any other that differs between runs that are equal in all before it.

    Args:
        rows: the runs' rows of the table; fewer than two don't vary, and all of the kind's columns are taken.
    """
    names = [column.name for column in kind.params if column.name not in SIZES]
    shown = [name for name in kind.shown if name in names]
    if len(rows) < 2:
        return shown
    varied = [name for name in shown if len({row[name] for row in rows}) > 1]
    for name in names:
        before = {tuple(row[each] for each in varied) for row in rows}
        with_it = {tuple(row[each] for each in (*varied, name)) for row in rows}
        if len(with_it) > len(before):
            varied.insert(-1 if varied[-1:] == [SEED] else len(varied), name)
    return varied


def view(
    kind: Kind, page: str, rows: Sequence[Mapping[str, object]] = (), pinned: Sequence[str] = ()
) -> dict[str, Any]:
    """The state of the run list: results, the size and what tells these runs apart, best first.

    The result is the loss, or, where texts or vocabularies differ, the bits per byte, in which alone these compare.
    Where seeds are averaged, runs that differ by their seed alone are one row, with the means of their metrics. At
    equal sizes, so are those of one size class that differ in depth, width and seed alone, with the best of each.

    Args:
        rows: the runs' rows of the table.
        pinned: ids of runs that stay on top.
    """
    metrics = {column.name for column in kind.metrics}
    results = [name for name in kind.shown if name in metrics]
    if BITS in results and any(len({row[name] for row in rows}) > 1 for name in _TEXTS):
        results.sort(key=BITS.__ne__)
    ascending = results[0] != "accuracy"
    shown = [*results, next(name for name in SIZES if name in {column.name for column in kind.params})]
    params = varied_params(kind, rows)
    if page != RUNS:
        params = [name for name in params if name != SEED]
    groups: list[dict[str, str]] | None = None
    if page == SEEDS:
        groups = [{"mode": "tag", "groupByData": SHAPE}]
    elif page == EQUAL_SIZES:
        others = [name for name in params if name not in ("depth", "width")]
        groups = [{"mode": "tag", "groupByData": SIZE_CLASS}]
        groups += [{"mode": "param", "groupByData": name} for name in others]
    best = "average" if page == SEEDS else "min" if ascending else "max"
    columns = {f"metrics.`{name}`": name for name in shown} | {f"params.`{name}`": name for name in params}
    return {
        "selectedColumns": [*columns],
        "columnOrder": [*columns],
        "columnWidths": {column: _LETTER * len(name) + _MARGIN for column, name in columns.items()},
        "runsHiddenMode": "FIRST_20_RUNS",
        "runsPinned": [*pinned],
        "groupBy": groups and {"aggregateFunction": best, "groupByKeys": groups},
        "useGroupedValuesInCharts": groups is not None,
        "orderByKey": f"metrics.`{results[0]}`",
        "orderByAsc": ascending,
    }


def has_views(experiment: Experiment) -> bool:
    """True for an experiment that has its shared views."""
    return all(_VIEW + key in experiment.tags for key in _KEYS.values())


def show_as_training(store: Store, experiment: Experiment, listed: Mapping[str, Sequence[Listed]]) -> None:
    """Make an experiment open as model training, and give it its shared views; what is there already is not written.

    Args:
        listed: its runs.
    """
    runs = [run for several in listed.values() for run in several]
    kind, rows = runs[0].kind if runs else KINDS[None], [run.row for run in runs]
    pinned = [run.info.run_id for run in _summaries(store, experiment)]
    views = {_VIEW + key: _packed(view(kind, page, rows, pinned)) for page, key in _KEYS.items()}
    _set_tags(store, experiment, {_EXPERIMENT_KIND: _TRAINING, **views})


def write_note(store: Store, study: str, text: str) -> None:
    """Write the description of a study's experiment, where there is one, with links to its pages.

    Raises:
        TrackerDown: the tracker failed.
    """
    with tracker_errors(store.uri):
        experiment = store.find_experiment(study)
        if experiment is not None:
            links = [f"[{name}]({link.lstrip('/')})" for name, link in pages(store, study, "").items()]
            _set_tags(
                store, experiment, {mlflow_tags.MLFLOW_RUN_NOTE: f"{text}\n\nPages: {', '.join(links)}."}
            )


def _set_tags(store: Store, experiment: Experiment, wanted: Mapping[str, str]) -> None:
    for name, text in wanted.items():
        if experiment.tags.get(name) != text:
            store.client.set_experiment_tag(experiment.experiment_id, name, text)


def _packed(state: Mapping[str, Any]) -> str:
    """A page's state as MLflow's UI keeps it."""
    return _DEFLATED + base64.b64encode(zlib.compress(json.dumps(state).encode())).decode()


def _unpacked(text: str) -> dict[str, Any]:
    return dict(json.loads(zlib.decompress(base64.b64decode(text.removeprefix(_DEFLATED)))))


def pages(store: Store, study: str, at: str) -> dict[str, str]:
    """Links to the pages of a study's experiment, by name; none where it has no experiment.

    Args:
        at: the UI's address.

    Raises:
        TrackerDown: the tracker failed.
    """
    with tracker_errors(store.uri):
        experiment = store.find_experiment(study)
        if experiment is None:
            return {}
        place = f"{at}/#/experiments/{experiment.experiment_id}/runs"
        links = {
            page: f"{place}?workflowType=machine_learning&viewStateShareKey={key}"
            for page, key in _KEYS.items()
            if _VIEW + key in experiment.tags
        } or {RUNS: f"{place}?workflowType=machine_learning"}
        for run in _summaries(store, experiment):
            links[SUMMARY] = f"{place}/{run.info.run_id}?workflowType=machine_learning"
        return links
