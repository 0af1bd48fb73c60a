"""Run records into MLflow, idempotently by key: one experiment a study, one active run a key.

A run's fingerprint tag is written last. A run without it was left half imported and is made anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from threading import Event

from mlflow.entities import Metric, Run

from shapelaw.errors import UserError
from shapelaw.records import FINISHED, KILLED, RUNNING, Record, read_record
from shapelaw.tracking import entities
from shapelaw.tracking.disk import (
    Found,
    Liveness,
    find_records,
    finished_fingerprint,
    live_fingerprint,
    moment,
    true_status,
)
from shapelaw.tracking.entities import FINGERPRINT, MESSAGE, SPEC_DIGEST
from shapelaw.tracking.store import (
    KEY,
    Store,
    find_experiment,
    make_experiment,
    open_store,
    search_runs,
    tracker_errors,
)
from shapelaw.tracking.waiting import Say, one_writer, patiently

BATCH = 800  # metrics a request; MLflow takes 1000 metrics, params and tags together
FEW = 30  # up to so many keys are looked up one by one instead of listing the experiment


@dataclass
class Outcome:
    """What an import did: the keys it wrote, how many were up to date, and what it could not read."""

    written: list[str] = field(default_factory=list)
    unchanged: int = 0
    problems: dict[str, str] = field(default_factory=dict)  # key -> sentence


@dataclass(frozen=True)
class Reading:
    """A record as it is imported."""

    record: Record
    status: str
    message: str
    started: datetime
    ended: datetime


def import_study(
    results: Path,
    study: str,
    uri: str,
    patience: float,
    say: Say,
    liveness: Liveness | None = None,
) -> tuple[Store, Outcome]:
    """Import the records of a study as the one writer, waiting where that is needed.

    Raises:
        UserError: the URI or the store is wrong. Records that can't be read are in the outcome instead.
        TrackerDown: the tracker was down for longer than `patience` seconds.
    """

    def once() -> tuple[Store, Outcome]:
        with one_writer(results, say):
            store = open_store(uri, results)
            found = {item.key: item for item in find_records(results, study).values()}
            return store, import_records(store, study, found, liveness or Liveness(), whole=True)

    return patiently(once, patience, say)


def import_records(
    store: Store,
    study: str,
    found: Mapping[str, Found],
    liveness: Liveness,
    whole: bool,
    stop: Event | None = None,
) -> Outcome:
    """Bring these records of a study into the store. Call it under `waiting.one_writer`.

    Args:
        found: the records by key.
        whole: `found` is all there is on disk: whatever else still says RUNNING in MLflow was killed.
        stop: set, it ends the import after the record at hand.

    Raises:
        TrackerDown: the tracker failed on the way; what is missing is imported by the next call.
    """
    outcome = Outcome()
    with tracker_errors(store.uri):
        if not found and not find_experiment(store, study):
            return outcome
        experiment = make_experiment(store, study)
        known = _known_runs(store, experiment, None if whole or len(found) > FEW else list(found))
        for key, item in found.items():
            if stop and stop.is_set():
                return outcome
            try:
                changed = _import_one(store, experiment, item, known.get(key, []), liveness)
            except UserError as problem:
                if item.directory.exists():  # else it was moved away while it was read, and is found again
                    outcome.problems[key] = str(problem)
                continue
            if changed:
                outcome.written.append(key)
            else:
                outcome.unchanged += 1
        if whole:
            for key in known.keys() - found.keys():
                _bury(store, known[key])
    return outcome


def bury_vanished(store: Store, study: str, keys: Sequence[str]) -> None:
    """Mark as KILLED the runs of these keys that still say RUNNING: their records were deleted."""
    with tracker_errors(store.uri):
        experiment = find_experiment(store, study)
        if experiment is not None:
            for runs in _known_runs(store, experiment.experiment_id, keys).values():
                _bury(store, runs)


def _bury(store: Store, runs: Sequence[Run]) -> None:
    for run in runs:
        if run.info.status == RUNNING:
            store.client.set_tag(run.info.run_id, MESSAGE, "Its record was deleted while it ran.")
            store.client.set_terminated(run.info.run_id, KILLED)


def _known_runs(store: Store, experiment: str, keys: Sequence[str] | None) -> dict[str, list[Run]]:
    """The active training runs by key: all, or those of a few keys."""
    if keys is None:
        runs = search_runs(store, experiment)
    else:
        runs = [run for key in keys for run in search_runs(store, experiment, f"tags.`{KEY}` = '{key}'")]
    known: dict[str, list[Run]] = {}
    for run in runs:
        if KEY in run.data.tags:
            known.setdefault(run.data.tags[KEY], []).append(run)
    return known


def _import_one(store: Store, experiment: str, item: Found, known: Sequence[Run], liveness: Liveness) -> bool:
    """Make MLflow say what the record says; whether that took any writing."""
    reading = None
    if item.finished:
        fingerprint = finished_fingerprint(item.directory)
    else:
        reading = _read(item, liveness)
        fingerprint = live_fingerprint(reading.record, reading.status)
    if len(known) == 1 and known[0].data.tags.get(FINGERPRINT) == fingerprint:
        return False
    reading = reading or _read(item, liveness)
    current, last_step = _continued(store, reading, known)
    for run in known:
        if current is None or run.info.run_id != current.info.run_id:
            store.client.delete_run(run.info.run_id)
    _write(store, experiment, reading, fingerprint, current, last_step)
    return True


def _read(item: Found, liveness: Liveness) -> Reading:
    record = read_record(item.directory)
    if record.run.key != item.key or record.run.study != item.study:
        raise UserError(
            f"The record {item.directory} is of the run {record.run.study}/{record.run.key}; "
            "rename the folder, or delete it and run again."
        )
    status, message = true_status(record, liveness, datetime.now(UTC))
    values, end = (record.summary, "finished_at") if record.summary else (record.live, "updated_at")
    started, ended = (moment(values, name, item.directory) for name in ("started_at", end))
    return Reading(record, status, message, started, max(started, ended))


def _continued(store: Store, reading: Reading, known: Sequence[Run]) -> tuple[Run | None, int]:
    """The MLflow run that this record goes on, and the last step it holds; (None, 0) where a new one is due.

    The last step is read back from MLflow: a tag of it could be older than the points if an importer died
    between the two. The points of a row are written together or not at all.
    """
    record = reading.record
    losses = dict(zip(*(record.history[name].to_pylist() for name in ("step", "train_loss")), strict=True))
    for run in known:
        tags = run.data.tags
        half_written = FINGERPRINT not in tags or run.data.metrics.keys() - set(entities.CURVES)
        if half_written or tags.get(SPEC_DIGEST) != record.run.digest or run.info.status == FINISHED:
            continue
        points = store.client.get_metric_history(run.info.run_id, "train_loss")
        agree = all(entities.same_value(p.value, losses[p.step]) for p in points if p.step in losses)
        agree &= reading.status != FINISHED or all(p.step in losses for p in points)
        if agree and len({p.step for p in points}) == len(points):
            return run, max((p.step for p in points), default=0)
    return None, 0


def _write(
    store: Store, experiment: str, reading: Reading, fingerprint: str, current: Run | None, last_step: int
) -> None:
    """Write what is missing: params, points after `last_step`, tags, inputs, status; the fingerprint last."""
    client, record = store.client, reading.record
    texts = entities.tags(record, reading.message)
    if current is None:
        run = client.create_run(
            experiment,
            start_time=entities.milliseconds(reading.started),
            tags={tag.key: tag.value for tag in texts},
            run_name=record.run.key,
        )
        client.log_batch(run.info.run_id, params=entities.params(record))
    else:
        run = current
        client.log_batch(run.info.run_id, tags=texts)
        if not reading.message and MESSAGE in current.data.tags:
            client.delete_tag(run.info.run_id, MESSAGE)
    run_id = run.info.run_id
    batch: list[Metric] = []
    for points in entities.history_metrics(record, last_step, reading.started, reading.ended):
        if len(batch) + len(points) > BATCH:
            client.log_batch(run_id, metrics=batch)
            batch = []
        batch.extend(points)
    if record.summary:
        batch += entities.summary_metrics(record, reading.ended)
        client.log_inputs(run_id, entities.datasets(record))
    client.log_batch(run_id, metrics=batch)
    if reading.status != RUNNING:
        client.set_terminated(run_id, reading.status, entities.milliseconds(reading.ended))
    elif run.info.status != RUNNING:  # it was killed and goes on
        client.update_run(run_id, status=RUNNING)
    client.set_tag(run_id, FINGERPRINT, fingerprint)
