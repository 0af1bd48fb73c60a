"""Import run records into MLflow, idempotently by key: one experiment for a study, one active run for a key.

There is one importer of a store, under `<results>/mlflow.lock`. It lists what MLflow has, once, and writes what
differs. A run's fingerprint tag is written last: a run without it was left half imported, and is imported again from
the start. So an import may be killed anywhere, and the next one completes it. A run without a record stays as it is.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from threading import Event

from mlflow.entities import Experiment, Metric, Run, RunTag
from mlflow.tracking import MlflowClient

from shapelaw.errors import UserError
from shapelaw.storage.files import FILES
from shapelaw.storage.pool import read_asked, studies_by_key
from shapelaw.storage.progress import Liveness, find_records, is_finished, moment, true_status
from shapelaw.storage.records import FINISHED, RUNNING, Record, read_record
from shapelaw.tracking import entities, store, summary
from shapelaw.tracking.command import PATIENCE, ImportProgress, Stopped, one_writer, patiently
from shapelaw.tracking.entities import Listed
from shapelaw.tracking.store import Store

IMPORT_FORMAT = 4  # part of every fingerprint: raise it when the importer writes something new
FEW = 30  # up to this many keys are looked up one by one, instead of listing the experiment
BATCH = 800  # metrics of a request; MLflow takes 1000 metrics, params and tags together


@dataclass
class Outcome:
    """The outcome of an import.

    Attributes:
        written: keys of the runs that were written.
        unchanged: number of runs that were up to date.
        problems: a sentence for each record that can't be read, by key.
        listed: the active runs of the experiment after it, by key; None where not all were looked at.
    """

    written: list[str] = field(default_factory=list)
    unchanged: int = 0
    problems: dict[str, str] = field(default_factory=dict)
    listed: Mapping[str, Sequence[Listed]] | None = None


@dataclass(frozen=True)
class Reading:
    """A record that was read for import."""

    record: Record
    status: str
    message: str
    started: datetime
    ended: datetime


@dataclass
class Importer:
    """The one writer of a store, who brings the records of a results folder into it.

    Attributes:
        patience: seconds without any progress after which to give up on a tracker that is down.
        stop: once set, waiting ends, and an import after the record that was begun.
        artifacts: place of the artifacts of new experiments; None: the store's own.
    """

    results: Path
    uri: str
    progress: ImportProgress
    patience: float = PATIENCE
    liveness: Liveness = field(default_factory=Liveness)
    stop: Event = field(default_factory=Event)
    artifacts: str | None = None
    # what the last look found; only files are remembered, MLflow is asked each time
    _states: dict[str, tuple[str, ...]] | None = None  # of each record; None before the first look
    _reported: set[str] = field(default_factory=set)

    def import_study(self, study: str, keys: Collection[str] | None = None) -> tuple[Store, Outcome]:
        """Import the records of a study; wait for the lock and for the tracker.

        Args:
            keys: of the study's runs; None takes all records of the folder.

        Raises:
            UserError: the URI or the store is wrong. Records that can't be read are in the outcome instead.
            TrackerDown: the tracker was down for longer than `patience` seconds.
        """

        def once() -> tuple[Store, Outcome]:
            with self._writing() as opened:
                on_disk, asked = find_records(self.results), studies_by_key(read_asked(self.results))
                items = {key: item for key, item in on_disk.items() if keys is None or key in keys}
                return opened, self._import(opened, study, items, asked)

        return patiently(once, self.patience, self.progress, self.stop)

    def follow(self, every: float | None, looked: Callable[[], None] | None = None) -> None:
        """Import the runs of all studies, finished and live, every `every` seconds (None: once) until `stop` is set.

        The lock of the one writer is held only while something is written, so that other commands get their turn.

        Args:
            looked: called once, after the first look.

        Raises:
            UserError: the URI or the store is wrong.
            TrackerDown: the tracker was down for longer than `patience` seconds.
        """
        with suppress(Stopped):
            while not self.stop.is_set():
                patiently(self.look, self.patience, self.progress, self.stop)
                if looked is not None:
                    looked()
                if every is None:
                    return
                looked = None
                self.stop.wait(every)

    def look(self) -> None:
        """Import what changed since the last look; the first one opens the store, and creates a SQLite one."""
        on_disk, asked, before = find_records(self.results), read_asked(self.results), self._states or {}
        studies, first = studies_by_key(asked), self._states is None
        # who asks for it belongs to it: where another study has since, its copies here and there say so
        states = {key: (_state(item, self.liveness), *studies.get(key, ())) for key, item in on_disk.items()}
        changed = {key for key, state in states.items() if state != before.get(key)}
        if not (changed or first):
            return
        with self._writing() as opened:
            for study, keys in asked.items():
                items = {key: on_disk[key] for key in sorted(changed.intersection(keys))}
                if items or first:
                    outcome = self._import(opened, study, items, studies, whole=first)
                    for sentence in set(outcome.problems.values()) - self._reported:
                        self._reported.add(sentence)
                        self.progress.say(sentence)
                    if outcome.written:
                        self.progress.say(f"{study}: {len(outcome.written)} of {len(items)} runs written.")
                if self.stop.is_set():
                    return
        self._states = states

    @contextmanager
    def _writing(self) -> Iterator[Store]:
        with one_writer(self.results, self.progress.say, self.stop):
            yield store.open_store(self.uri, self.results, self.artifacts)

    def _import(
        self,
        opened: Store,
        study: str,
        items: Mapping[str, Path],
        asked: Mapping[str, Sequence[str]],
        whole: bool = True,
    ) -> Outcome:
        """Bring these records of a study into the store, under the lock of the one writer.

        Args:
            items: folders of records by key.
            asked: the studies that ask for a run, by key; of several, a tag of each copy says which.
            whole: look at all runs of the experiment in MLflow, not only at those of the items.

        Raises:
            TrackerDown: the tracker failed on the way; what is missing is imported by the next call.
        """
        outcome = Outcome()
        with store.tracker_errors(opened.uri):
            if not items and not opened.find_experiment(study):
                return outcome
            experiment = opened.make_experiment(study)
            whole = whole or len(items) > FEW or not summary.has_views(experiment)
            filters = [""] if whole else [f"tags.{entities.KEY} = '{key}'" for key in items]
            known = entities.listed_runs(opened, experiment.experiment_id, filters)
            for key, item in items.items():
                if self.stop.is_set():
                    break
                studies = ", ".join(asked[key]) if len(asked.get(key, ())) > 1 else ""
                try:
                    if self._import_run(opened, experiment, item, studies, known.get(key, [])):
                        outcome.written.append(key)
                        self.progress.advance(
                            f"{study}: {len(outcome.written)} of {len(items)} runs written."
                        )
                except UserError as problem:
                    if item.exists():  # else it was moved while it was read, and will be found again
                        outcome.problems[key] = str(problem)
            outcome.unchanged = len(items.keys() - outcome.problems.keys() - set(outcome.written))
            if whole:
                if outcome.written:
                    known = entities.listed_runs(opened, experiment.experiment_id)
                outcome.listed = known
                summary.show_as_training(opened, experiment, known)
        return outcome

    def _import_run(
        self, opened: Store, experiment: Experiment, item: Path, studies: str, known: Sequence[Listed]
    ) -> bool:
        """Make a record's run whole and the only one of its key; False where it was, and agrees with the record."""
        reading = None if is_finished(item) else _read(item, self.liveness)
        fingerprint = (
            live_fingerprint(reading.record, reading.status) if reading else finished_fingerprint(item)
        )
        kept = next((run for run in known if run.fingerprint == fingerprint), None)
        if kept is None:
            reading = reading or _read(item, self.liveness)
            tags = entities.tags(reading.record, experiment.name, reading.message, studies)
            run_id = _write(opened.client, experiment.experiment_id, reading, tags, known)
            opened.client.set_tag(run_id, entities.FINGERPRINT, fingerprint)
        else:
            run_id = kept.run_id
            if studies and kept.studies != studies:
                opened.client.set_tag(run_id, entities.STUDIES, studies)
        for run in known:
            if run.run_id != run_id:
                opened.client.delete_run(run.run_id)
        return kept is None


def _read(item: Path, liveness: Liveness) -> Reading:
    record = read_record(item)
    if record.run.key != item.name:
        raise UserError(
            f"The record {item} is of the run {record.run.key}; "
            f"rename the folder, or train it again: rm -r {item} && snakemake"
        )
    status, message = true_status(record, liveness, datetime.now(UTC))
    values, end = (record.summary, "finished_at") if record.summary else (record.live, "updated_at")
    started, ended = (moment(values, name, item) for name in ("started_at", end))
    return Reading(record, status, message, started, max(started, ended))


def finished_fingerprint(directory: Path) -> str:
    """A hash of the bytes of a finished record.

    Raises:
        UserError: a file is missing or can't be read.
    """
    try:
        parts = [hashlib.sha256((directory / name).read_bytes()).hexdigest() for name in FILES]
    except (OSError, ValueError):
        read_record(directory)  # says which, and what to do
        raise
    return hashlib.sha256(json.dumps([IMPORT_FORMAT, *parts]).encode()).hexdigest()[:32]


def live_fingerprint(record: Record, status: str) -> str:
    """A hash of the imported part of an unfinished record; a heartbeat alone does not change it."""
    steps = record.history["step"].to_pylist()
    live = {k: v for k, v in record.live.items() if k not in ("step", "updated_at", "pid", "status")}
    values = [IMPORT_FORMAT, record.run.digest, status, len(steps), steps[-1:], live]
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:32]


def _write(
    client: MlflowClient, experiment: str, reading: Reading, tags: Sequence[RunTag], known: Sequence[Listed]
) -> str:
    """Write what is missing but the fingerprint: params, points, tags, inputs, status. Return the run's id."""
    record = reading.record
    started, ended = (entities.milliseconds(time) for time in (reading.started, reading.ended))
    run, last_step = _continued(client, reading, known)
    batch: list[Metric] = []
    if run is None:
        names = {tag.key: tag.value for tag in tags}
        run = client.create_run(experiment, started, names, entities.run_name(record.run))
        batch = entities.size_metrics(record, reading.started)
    else:
        client.log_batch(run.info.run_id, tags=tags)
        if not reading.message and entities.MESSAGE in run.data.tags:
            client.delete_tag(run.info.run_id, entities.MESSAGE)
    run_id = str(run.info.run_id)
    params = [param for param in entities.params(record) if param.key not in run.data.params]
    batch += entities.summary_metrics(record, reading.ended) if record.summary else []
    for points in entities.history_metrics(record, last_step, reading.started, reading.ended):
        if len(batch) + len(points) > BATCH:
            client.log_batch(run_id, metrics=batch)
            batch = []
        batch.extend(points)
    client.log_batch(run_id, metrics=batch, params=params)
    if record.summary:
        client.log_inputs(run_id, entities.datasets(record))
    if reading.status != RUNNING:
        client.set_terminated(run_id, reading.status, ended)
    elif run.info.status != RUNNING:  # it was killed and goes on
        client.update_run(run_id, status=RUNNING)
    return run_id


def _continued(client: MlflowClient, reading: Reading, known: Sequence[Listed]) -> tuple[Run | None, int]:
    """The MLflow run that this record continues, and the last step in it; (None, 0) where a new run is needed.

    The last step is read back from MLflow: a tag of it could be older than the points if an importer died
    between the two. The points of a row are written together or not at all.
    """
    record = reading.record
    losses = dict(zip(*(record.history[name].to_pylist() for name in ("step", "train_loss")), strict=True))
    for listed in known:
        if listed.fingerprint is None or listed.status == FINISHED:
            continue
        run = client.get_run(listed.run_id)
        half_written = run.data.metrics.keys() - {*entities.CURVES, *entities.SIZES}
        if half_written or run.data.tags.get(entities.SPEC_DIGEST) != record.run.digest:
            continue
        points = client.get_metric_history(run.info.run_id, "train_loss")
        agree = all(entities.same_value(p.value, losses[p.step]) for p in points if p.step in losses)
        agree &= reading.status != FINISHED or all(p.step in losses for p in points)
        if agree and len({p.step for p in points}) == len(points):
            return run, max((p.step for p in points), default=0)
    return None, 0


def _state(item: Path, liveness: Liveness) -> str:
    """A text that changes when the record has something to import. A finished record's never changes, unless it is
    trained again, which writes another summary.json; that of a run under way also changes when it falls silent.
    """
    try:
        if is_finished(item):
            status = (item / "summary.json").stat()
            return f"{item} {status.st_ino} {status.st_mtime_ns} {status.st_size}"
        record = read_record(item)
        return live_fingerprint(record, true_status(record, liveness, datetime.now(UTC))[0])
    except (UserError, OSError) as problem:
        # reported when it is imported; looked at again when its text changes
        return f"unreadable: {problem}"
