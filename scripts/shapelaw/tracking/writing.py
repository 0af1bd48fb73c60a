"""Write a record as one MLflow run: read it whole, continue an older run where that is safe, fingerprint last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from mlflow.entities import Metric, Run

from shapelaw.errors import UserError
from shapelaw.storage.records import FINISHED, RUNNING, Record, read_record
from shapelaw.tracking import entities
from shapelaw.tracking.disk import (
    Liveness,
    RecordFolder,
    finished_fingerprint,
    live_fingerprint,
    moment,
    true_status,
)
from shapelaw.tracking.entities import IMPORTER, MESSAGE, SPEC_DIGEST
from shapelaw.tracking.names import CURVES, run_name
from shapelaw.tracking.store import FINGERPRINT, Store

BATCH = 800  # metrics of a request; MLflow takes 1000 metrics, params and tags together


@dataclass(frozen=True)
class Reading:
    """A record that was read for import."""

    record: Record
    status: str
    message: str
    started: datetime
    ended: datetime


def describe(item: RecordFolder, liveness: Liveness) -> tuple[str, Reading | None]:
    """The fingerprint of a record, and the record where it had to be read for that."""
    if item.finished:
        return finished_fingerprint(item.directory), None
    reading = read(item, liveness)
    return live_fingerprint(reading.record, reading.status), reading


def read(item: RecordFolder, liveness: Liveness) -> Reading:
    record = read_record(item.directory)
    if record.run.key != item.key:
        raise UserError(
            f"The record {item.directory} is of the run {record.run.key}; "
            f"rename the folder, or train it again: rm -r {item.directory} && snakemake"
        )
    status, message = true_status(record, liveness, datetime.now(UTC))
    values, end = (record.summary, "finished_at") if record.summary else (record.live, "updated_at")
    started, ended = (moment(values, name, item.directory) for name in ("started_at", end))
    return Reading(record, status, message, started, max(started, ended))


def continued(store: Store, reading: Reading, known: Sequence[Run]) -> tuple[Run | None, int]:
    """The MLflow run that this record continues, and the last step in it; (None, 0) where a new run is needed.

    The last step is read back from MLflow: a tag of it could be older than the points if an importer died
    between the two. The points of a row are written together or not at all.
    """
    record = reading.record
    losses = dict(zip(*(record.history[name].to_pylist() for name in ("step", "train_loss")), strict=True))
    for run in known:
        if not is_own(store, run):  # its importer may be adding points as well
            continue
        tags = run.data.tags
        half_written = FINGERPRINT not in tags or run.data.metrics.keys() - set(CURVES.values())
        if half_written or tags.get(SPEC_DIGEST) != record.run.digest or run.info.status == FINISHED:
            continue
        points = store.client.get_metric_history(run.info.run_id, CURVES["train_loss"])
        agree = all(entities.same_value(p.value, losses[p.step]) for p in points if p.step in losses)
        agree &= reading.status != FINISHED or all(p.step in losses for p in points)
        if agree and len({p.step for p in points}) == len(points):
            return run, max((p.step for p in points), default=0)
    return None, 0


def write(
    store: Store,
    experiment: str,
    study: str,
    reading: Reading,
    fingerprint: str,
    current: Run | None,
    last_step: int,
) -> str:
    """Write what is missing: params, points after `last_step`, tags, inputs, status; the fingerprint last."""
    client, record = store.client, reading.record
    texts = entities.tags(record, study, reading.message, store.importer)
    if current is None:
        run = client.create_run(
            experiment,
            start_time=entities.milliseconds(reading.started),
            tags={tag.key: tag.value for tag in texts},
            run_name=run_name(record.run),
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
        client.log_batch(run_id, params=entities.constants(record))
    client.log_batch(run_id, metrics=batch)
    if reading.status != RUNNING:
        client.set_terminated(run_id, reading.status, entities.milliseconds(reading.ended))
    elif run.info.status != RUNNING:  # it was killed and goes on
        client.update_run(run_id, status=RUNNING)
    client.set_tag(run_id, FINGERPRINT, fingerprint)
    return str(run_id)


def is_own(store: Store, run: Run) -> bool:
    """True where this importer made the run, or the run is older than the tag that says who did."""
    return bool(run.data.tags.get(IMPORTER, store.importer) == store.importer)
