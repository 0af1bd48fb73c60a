"""Import run records into MLflow, idempotently by key: one experiment for a study, one active run for a key.

There is one importer of a store, under `<results>/mlflow.lock`. It lists what MLflow has and writes what differs.
A run's fingerprint tag is written last: a run without it was left half imported, and is imported again from the start.
So an import may be killed anywhere, and the next one completes it.

A lock doesn't reach a second machine with a results folder of its own. There the experiment's tag `importer` says who
wrote last, and an importer that finds another there says so.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from threading import Event

from mlflow.entities import Experiment, Metric, Run, RunTag

from shapelaw.errors import UserError
from shapelaw.specs.kinds import kind_of
from shapelaw.storage.files import COPY, FILES, content
from shapelaw.storage.pool import read_asked, studies_by_key
from shapelaw.storage.progress import Liveness, RecordFolder, find_records, moment, true_status
from shapelaw.storage.records import FINISHED, KILLED, RUNNING, Record, read_record
from shapelaw.tracking import entities
from shapelaw.tracking.command import PATIENCE, ImportProgress, Stopped, one_writer, patiently, redact
from shapelaw.tracking.entities import CURVES, MESSAGE, SPEC_DIGEST, STUDIES, run_name
from shapelaw.tracking.store import (
    FINGERPRINT,
    IMPORTER,
    KEY,
    Store,
    find_experiment,
    importer_of,
    make_experiment,
    open_store,
    search_runs,
    tracker_errors,
)
from shapelaw.tracking.summary import show_as_training

IMPORT_FORMAT = 3  # part of every fingerprint: raise it when the importer writes something new
FEW = 30  # up to this many keys are looked up one by one, instead of listing the experiment
BATCH = 800  # metrics of a request; MLflow takes 1000 metrics, params and tags together


@dataclass
class Outcome:
    """The outcome of an import: keys written, number of runs up to date, unreadable records."""

    written: list[str] = field(default_factory=list)
    unchanged: int = 0
    problems: dict[str, str] = field(default_factory=dict)  # key -> sentence


@dataclass(frozen=True)
class Reading:
    """A record that was read for import."""

    record: Record
    status: str
    message: str
    started: datetime
    ended: datetime


@dataclass(frozen=True)
class Listed:
    """What the importer keeps of a run in MLflow, of which there may be ten thousands."""

    run_id: str
    status: str
    fingerprint: str | None
    importer: str | None
    studies: str | None


@dataclass
class Importer:
    """The one writer of a store, who brings the records of a results folder into it.

    Attributes:
        patience: seconds without any progress after which to give up on a tracker that is down.
        stop: once set, waiting ends, and an import after the record that was begun.
    """

    results: Path
    uri: str
    progress: ImportProgress
    patience: float = PATIENCE
    liveness: Liveness = field(default_factory=Liveness)
    stop: Event = field(default_factory=Event)
    # what the last look found; only files are remembered, MLflow is asked each time
    _states: dict[str, tuple[str, ...]] | None = None  # of each record; None before the first look
    _told: set[str] = field(default_factory=set)

    def import_study(self, study: str, keys: Collection[str] | None = None) -> tuple[Store, Outcome]:
        """Import the records of a study; wait for the lock and for the tracker.

        Args:
            keys: of the study's runs; None takes all records of the folder.

        Raises:
            UserError: the URI or the store is wrong. Records that can't be read are in the outcome instead.
            TrackerDown: the tracker was down for longer than `patience` seconds.
        """
        outcome = Outcome()

        def once() -> Store:
            with self._writing() as store:
                on_disk = find_records(self.results)
                found = on_disk if keys is None else {key: on_disk[key] for key in on_disk.keys() & set(keys)}
                import_records(self, store, study, found, on_disk, read_asked(self.results), outcome)
                return store

        return patiently(once, self.patience, self.progress, self.stop), outcome

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
        found, asked, before = find_records(self.results), read_asked(self.results), self._states or {}
        studies = studies_by_key(asked)
        # who asks for it belongs to it: where another study has since, its copies here and there say so
        states = {key: (_state(item, self.liveness), *studies.get(key, ())) for key, item in found.items()}
        changed = {key for key in states.keys() | before.keys() if states.get(key) != before.get(key)}
        first = self._states is None
        if not (changed or first):
            return
        with self._writing() as store:
            for study, keys in asked.items():
                touched, outcome = changed.intersection(keys), Outcome()
                items = {key: found[key] for key in sorted(touched) if key in found}
                if touched or first:
                    looked_at = None if first else touched
                    import_records(self, store, study, items, found, asked, outcome, looked_at)
                for sentence in outcome.problems.values():
                    self.say_once(sentence)
                if self.stop.is_set():
                    return
                if outcome.written:
                    self.progress.say(f"{study}: {len(outcome.written)} of {len(items)} runs written.")
        self._states = states

    def say_once(self, sentence: str) -> None:
        """Say what this importer has not said yet."""
        if sentence not in self._told:
            self._told.add(sentence)
            self.progress.say(sentence)

    @contextmanager
    def _writing(self) -> Iterator[Store]:
        with one_writer(self.results, self.progress.say, self.stop):
            self.progress.at(f"opening {redact(self.uri, self.uri)}")
            yield open_store(self.uri, self.results)


def import_records(
    importer: Importer,
    store: Store,
    study: str,
    found: Mapping[str, RecordFolder],
    on_disk: Collection[str],
    asked: Mapping[str, Sequence[str]],
    outcome: Outcome,
    touched: Collection[str] | None = None,
) -> None:
    """Bring these records of a study into the store, under the lock of the one writer.

    Args:
        found: records by key.
        on_disk: the keys of all records: any other run that says RUNNING in MLflow was killed.
        asked: keys by study; of a run that several studies ask for, a tag of each copy says which.
        outcome: what an import that the tracker interrupted has written; it is completed.
        touched: keys of the runs to look at in MLflow; None takes all of the experiment.

    Raises:
        TrackerDown: the tracker failed on the way; what is missing is imported by the next call.
    """
    outcome.problems.clear()
    progress, shared, kind = importer.progress, studies_by_key(asked), None
    with tracker_errors(store.uri):
        progress.at(f"looking for {study} in {store.shown}")
        if not found and not find_experiment(store, study):
            return
        made, this = make_experiment(store, study), importer_of(importer.results)
        experiment = str(made.experiment_id)
        _note_writer(importer, store, study, made, this)
        progress.at(f"listing the runs of {study} in {store.shown}")
        known = list_runs(store, experiment, touched)
        for key, item in found.items():
            if importer.stop.is_set():
                break
            written = f"{len(outcome.written)} of {len(found)} runs written"
            progress.at(f"writing {key} in {store.shown} ({written})")
            studies = ", ".join(shared[key]) if len(shared.get(key, ())) > 1 else ""
            there = known.get(key, [])
            try:
                fingerprint, reading = _described(item, importer.liveness)
                kept = _up_to_date(store, fingerprint, studies, there)
                if kept is None:
                    reading = reading or _read(item, importer.liveness)
                    texts = entities.tags(reading.record, study, reading.message, studies)
                    texts.append(RunTag(IMPORTER, this))
                    kept = _write(store, experiment, reading, fingerprint, texts, there)
                    kind = kind_of(reading.record.run)
                    outcome.written += [] if key in outcome.written else [key]
                    progress.advance()
            except UserError as problem:
                if item.directory.exists():  # else it was moved while it was read, and will be found again
                    outcome.problems[key] = str(problem)
            else:
                for run in there:
                    if run.run_id != kept:
                        store.client.delete_run(run.run_id)
        for run in (run for key in known.keys() - set(on_disk) for run in known[key]):
            # one that another folder's importer follows is none of ours
            if run.status == RUNNING and run.importer in (None, this):
                store.client.set_tag(run.run_id, MESSAGE, "Its record was deleted while it ran.")
                store.client.set_terminated(run.run_id, KILLED)
        if kind is not None:
            show_as_training(store, experiment, kind, touched is None)
    outcome.unchanged = len(found.keys() - outcome.problems.keys() - set(outcome.written))


def _note_writer(importer: Importer, store: Store, study: str, experiment: Experiment, this: str) -> None:
    """Say so where another importer wrote into the experiment last, and note that it is this one now."""
    last = experiment.tags.get(IMPORTER)
    if last == this:
        return
    store.client.set_experiment_tag(experiment.experiment_id, IMPORTER, this)
    if last is not None:
        importer.say_once(
            f"{study} in {store.shown} was imported from {last} so far, and is now from {this}; a study has one "
            "importer: stop the other one, or give one of them another store (tracking.uri)."
        )


def list_runs(store: Store, experiment: str, keys: Collection[str] | None) -> dict[str, list[Listed]]:
    """The active training runs by key: all of them, or those of a few keys with one request each."""
    runs: Iterable[Run]
    if keys is None or len(keys) > FEW:
        runs = search_runs(store.client, experiment)
    else:
        filters = [f"tags.`{KEY}` = '{key}'" for key in keys]
        runs = (run for each in filters for run in search_runs(store.client, experiment, each))
    known: dict[str, list[Listed]] = {}
    for run in runs:
        tags = run.data.tags
        if KEY in tags:
            kept = (tags.get(name) for name in (FINGERPRINT, IMPORTER, STUDIES))
            known.setdefault(tags[KEY], []).append(Listed(run.info.run_id, run.info.status, *kept))
    return known


def _up_to_date(store: Store, fingerprint: str, studies: str, known: Sequence[Listed]) -> str | None:
    """The id of the run that is whole and agrees with the record, which learns of the studies; None without one."""
    for run in known:
        if run.fingerprint == fingerprint:
            if studies and run.studies != studies:
                store.client.set_tag(run.run_id, STUDIES, studies)
            return run.run_id
    return None


def _described(item: RecordFolder, liveness: Liveness) -> tuple[str, Reading | None]:
    """The fingerprint of a record, and the record where it had to be read for that."""
    if item.finished:
        return finished_fingerprint(item.directory), None
    reading = _read(item, liveness)
    return live_fingerprint(reading.record, reading.status), reading


def _read(item: RecordFolder, liveness: Liveness) -> Reading:
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


def finished_fingerprint(directory: Path) -> str:
    """A hash of the bytes of a finished record.

    Raises:
        UserError: a file is missing or can't be read.
    """
    digest = hashlib.sha256(f"{IMPORT_FORMAT}".encode())
    for name in FILES:
        try:
            digest.update(hashlib.sha256(content(directory, name)).digest())
        except (OSError, ValueError) as error:
            raise UserError(
                f"The record {directory} is half written: {name} can't be read ({getattr(error, 'strerror', error)}); "
                f"write it again: rm -r {directory} && snakemake"
            ) from error
    return digest.hexdigest()[:32]


def live_fingerprint(record: Record, status: str) -> str:
    """A hash of the imported part of an unfinished record; a heartbeat alone does not change it."""
    steps = record.history["step"]
    values = {
        "format": IMPORT_FORMAT,
        "digest": record.run.digest,
        "status": status,
        "rows": len(steps),
        "last": steps[-1].as_py() if len(steps) else 0,
        "live": {k: v for k, v in record.live.items() if k not in ("step", "updated_at", "pid", "status")},
    }
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:32]


def _write(
    store: Store,
    experiment: str,
    reading: Reading,
    fingerprint: str,
    texts: Sequence[RunTag],
    known: Sequence[Listed],
) -> str:
    """Write what is missing: params, points, tags, inputs, status; the fingerprint last. Return the run's id."""
    client, record = store.client, reading.record
    current, last_step = _continued(store, reading, known)
    if current is None:
        run = client.create_run(
            experiment,
            start_time=entities.milliseconds(reading.started),
            tags={tag.key: tag.value for tag in texts},
            run_name=run_name(record.run),
        )
    else:
        run = current
        client.log_batch(run.info.run_id, tags=texts)
        if not reading.message and MESSAGE in current.data.tags:
            client.delete_tag(run.info.run_id, MESSAGE)
    run_id = str(run.info.run_id)
    new = [param for param in entities.params(record) if param.key not in run.data.params]
    batch: list[Metric] = entities.summary_metrics(record, reading.ended) if record.summary else []
    for points in entities.history_metrics(record, last_step, reading.started, reading.ended):
        if len(batch) + len(points) > BATCH:
            client.log_batch(run_id, metrics=batch)
            batch = []
        batch.extend(points)
    client.log_batch(run_id, metrics=batch, params=new)
    if record.summary:
        client.log_inputs(run_id, entities.datasets(record))
    if reading.status != RUNNING:
        client.set_terminated(run_id, reading.status, entities.milliseconds(reading.ended))
    elif run.info.status != RUNNING:  # it was killed and goes on
        client.update_run(run_id, status=RUNNING)
    client.set_tag(run_id, FINGERPRINT, fingerprint)
    return run_id


def _continued(store: Store, reading: Reading, known: Sequence[Listed]) -> tuple[Run | None, int]:
    """The MLflow run that this record continues, and the last step in it; (None, 0) where a new run is needed.

    The last step is read back from MLflow: a tag of it could be older than the points if an importer died
    between the two. The points of a row are written together or not at all.
    """
    record = reading.record
    losses = dict(zip(*(record.history[name].to_pylist() for name in ("step", "train_loss")), strict=True))
    for listed in known:
        if listed.fingerprint is None or listed.status == FINISHED:
            continue
        run = store.client.get_run(listed.run_id)
        half_written = run.data.metrics.keys() - set(CURVES.values())
        if half_written or run.data.tags.get(SPEC_DIGEST) != record.run.digest:
            continue
        points = store.client.get_metric_history(run.info.run_id, CURVES["train_loss"])
        agree = all(entities.same_value(p.value, losses[p.step]) for p in points if p.step in losses)
        agree &= reading.status != FINISHED or all(p.step in losses for p in points)
        if agree and len({p.step for p in points}) == len(points):
            return run, max((p.step for p in points), default=0)
    return None, 0


def _state(item: RecordFolder, liveness: Liveness) -> str:
    """A text that changes when the record has something to import. A finished record's never changes, unless it is
    trained again, which writes another summary.json; that of a run under way also changes when it falls silent.
    """
    try:
        if item.finished:
            one = next(path for name in ("summary.json", COPY) if (path := item.directory / name).exists())
            status = one.stat()
            return f"{item.directory} {status.st_ino} {status.st_mtime_ns} {status.st_size}"
        record = read_record(item.directory)
        return live_fingerprint(record, true_status(record, liveness, datetime.now(UTC))[0])
    except (UserError, OSError, StopIteration) as problem:
        # reported when it is imported; looked at again when its text changes
        return f"unreadable: {problem}"
