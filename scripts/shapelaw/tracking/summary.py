"""A study's summary run: its figures and tables as artifacts, its fits' numbers as metrics and params."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mlflow.entities import Metric, Param, RunTag, SourceType
from mlflow.exceptions import MlflowException
from mlflow.utils.mlflow_tags import MLFLOW_RUN_NOTE, MLFLOW_SOURCE_NAME, MLFLOW_SOURCE_TYPE

from shapelaw.errors import UserError
from shapelaw.storage.records import FINISHED
from shapelaw.tracking.artifacts import keep_files
from shapelaw.tracking.entities import TEXT_LIMIT, is_number, milliseconds, valid_name
from shapelaw.tracking.errors import is_conflict, tracker_errors
from shapelaw.tracking.redaction import redact
from shapelaw.tracking.store import (
    FINGERPRINT,
    LOOKS,
    STUDY,
    SUMMARY_OF,
    Store,
    make_experiment,
    search_runs,
)

FIT = "fit/"  # group of the metrics; the images, in "figures", come before it
SAID = ("answer", "findings")  # of fit.json: sentences, which are the summary run's description


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
        UserError: a file is missing, two have one name, or `metrics` is not a JSON object,
            or another machine keeps logging other results of this study.
        TrackerDown: the tracker failed; log again, nothing is doubled.
    """
    files = [*artifacts, *([metrics] if metrics else [])]
    _check_files(files)
    numbers, texts = _flatten_file(metrics) if metrics else ({}, {})
    fingerprint = _fingerprint(files)
    with tracker_errors(store.uri):
        experiment = make_experiment(store, study)
        for _ in range(LOOKS):  # another machine may log the same study now: look until one whole run is left
            known = search_runs(store, experiment, f"tags.`{SUMMARY_OF}` = '{study}'")
            whole = sorted(run.info.run_id for run in known if run.data.tags.get(FINGERPRINT) == fingerprint)
            if whole and len(known) == 1:
                return str(whole[0])
            try:
                kept = (
                    whole[0]
                    if whole
                    else _write(store, experiment, study, files, numbers, texts, fingerprint, note)
                )
                for run in known:
                    if run.info.run_id != kept:
                        store.client.delete_run(run.info.run_id)
            except MlflowException as error:
                if not is_conflict(error):
                    raise
    raise UserError(
        f"Another machine logs other results of {study} into {redact(store.uri, store.uri)} at the same time; "
        "stop one of the two."
    )


def _write(
    store: Store,
    experiment: str,
    study: str,
    files: Sequence[Path],
    numbers: Mapping[str, float],
    texts: Mapping[str, str],
    fingerprint: str,
    note: str,
) -> str:
    """Write a new summary run, its fingerprint last, and return its id."""
    client, tags = store.client, {SUMMARY_OF: study, STUDY: study}
    tags |= {
        MLFLOW_SOURCE_NAME: "scripts/analyse.py",
        MLFLOW_SOURCE_TYPE: SourceType.to_string(SourceType.LOCAL),
    }
    if note:
        tags[MLFLOW_RUN_NOTE] = note
    run = client.create_run(experiment, tags=tags, run_name=f"{study} summary")
    run_id = str(run.info.run_id)
    now = milliseconds(datetime.now(UTC))
    points = [Metric(name, value, now, 0) for name, value in numbers.items()]
    words = [Param(name, text) for name, text in texts.items()]
    for start in range(0, len(points), 1000):  # MLflow's limits for one request
        client.log_batch(run_id, metrics=points[start : start + 1000])
    for start in range(0, len(words), 100):
        client.log_batch(run_id, params=words[start : start + 100])
    keep_files(store, run, files)
    client.set_terminated(run_id, FINISHED)
    client.log_batch(run_id, tags=[RunTag(FINGERPRINT, fingerprint)])
    return run_id


def _check_files(files: Sequence[Path]) -> None:
    if missing := [str(file) for file in files if not file.is_file()]:
        raise UserError(f"There is no file {', '.join(missing)}; make it first, or leave it out.")
    names = [file.name for file in files]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise UserError(f"Two artifacts are named {', '.join(twice)}; rename one, they are stored by name.")


def _fingerprint(files: Sequence[Path]) -> str:
    contents = sorted((file.name, hashlib.sha256(file.read_bytes()).hexdigest()) for file in files)
    return hashlib.sha256(json.dumps(contents).encode()).hexdigest()[:32]


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
