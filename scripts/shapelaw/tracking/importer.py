"""Import run records into MLflow, idempotently by key: one experiment for a study, one active run for a key.

A run's fingerprint tag is written last. A run without it was left half imported, and is imported again from the start.

Two importers of one results folder are kept apart by a lock. Two machines may still import into one server at
once, and MLflow can't make a key unique, so importers agree by what they see:

- An importer goes on only with runs that it made itself; it leaves alone what others have under way.
- Once a run of its own is whole, it looks again. Of several whole runs with the same content, the one with the
  smallest id stays; all others of that key are deleted.
- It looks again until it finds nothing to do. The last to change anything is the last to look, so one run stays.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

from mlflow.entities import Run
from mlflow.exceptions import MlflowException

from shapelaw.errors import UserError
from shapelaw.specs.kinds import AnyRun, Kind, kind_of
from shapelaw.storage.asked import read_asked, studies_by_key
from shapelaw.storage.records import KILLED, RUNNING
from shapelaw.tracking.disk import Liveness, RecordFolder, find_records
from shapelaw.tracking.entities import IMPORTER, MESSAGE, SPEC_DIGEST, STUDIES
from shapelaw.tracking.errors import is_conflict, tracker_errors
from shapelaw.tracking.redaction import redact
from shapelaw.tracking.store import (
    FEW,
    FINGERPRINT,
    LOOKS,
    Store,
    find_experiment,
    make_experiment,
    open_store,
    runs_by_key,
)
from shapelaw.tracking.views import show_as_training
from shapelaw.tracking.waiting import ImportProgress, Say, one_writer, patiently
from shapelaw.tracking.writing import continued, describe, is_own, read, write


@dataclass
class Outcome:
    """The outcome of an import: keys written, number of runs up to date, unreadable records, other writers."""

    written: list[str] = field(default_factory=list)
    unchanged: int = 0
    problems: dict[str, str] = field(default_factory=dict)  # key -> sentence
    rivals: set[str] = field(default_factory=set)  # importers of other machines or folders


@dataclass(frozen=True)
class _Import:
    """One call of `import_records`."""

    store: Store
    study: str
    experiment: str
    found: Mapping[str, RecordFolder]
    studies: Mapping[str, Sequence[str]]  # that ask for each run
    liveness: Liveness
    progress: ImportProgress
    outcome: Outcome
    fingerprints: dict[str, str] = field(default_factory=dict)  # by key, of the records when read
    kinds: list[Kind] = field(default_factory=list)  # of the runs written
    conflicts: list[MlflowException] = field(default_factory=list)  # another importer got in between

    def step(self, what: str) -> str:
        """The current step, for the user."""
        place = redact(self.store.uri, self.store.uri)
        return f"{what} in {place} ({len(self.outcome.written)} of {len(self.found)} runs written)"


def import_study(
    results: Path,
    study: str,
    uri: str,
    patience: float,
    say: Say,
    liveness: Liveness | None = None,
    progress: ImportProgress | None = None,
    keys: Collection[str] | None = None,
) -> tuple[Store, Outcome]:
    """Import the records of a study as the one writer; wait for the lock and for the tracker.

    Args:
        keys: of the study's runs; None takes all records of the folder.

    Raises:
        UserError: the URI or the store is wrong. Records that can't be read are in the outcome instead.
        TrackerDown: the tracker was down for longer than `patience` seconds.
    """
    progress, outcome = progress or ImportProgress(say), Outcome()

    def once() -> Store:
        with one_writer(results, say):
            progress.at(f"opening {redact(uri, uri)}")
            store = open_store(uri, results)
            on_disk = find_records(results)
            found = on_disk if keys is None else {key: on_disk[key] for key in on_disk.keys() & set(keys)}
            import_records(
                store,
                study,
                found,
                liveness or Liveness(),
                on_disk,
                None,
                progress,
                outcome,
                shared_of(read_asked(results)),
            )
            return store

    store = patiently(once, patience, say, progress=progress)
    tell_rivals(study, outcome, say)
    return store, outcome


def shared_of(asked: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """The studies of each run that several ask for; `asked` has the keys of each study."""
    return {key: studies for key, studies in studies_by_key(asked).items() if len(studies) > 1}


def tell_rivals(study: str, outcome: Outcome, say: Say) -> None:
    """Report other importers that wrote the same runs, if any."""
    if outcome.rivals:
        say(
            f"{study} is also imported by {', '.join(sorted(outcome.rivals))}; one copy of each run is kept. "
            "One importer is enough: stop the others."
        )


def import_records(
    store: Store,
    study: str,
    found: Mapping[str, RecordFolder],
    liveness: Liveness,
    on_disk: Collection[str] | None,
    stop: Event | None = None,
    progress: ImportProgress | None = None,
    outcome: Outcome | None = None,
    studies: Mapping[str, Sequence[str]] | None = None,
) -> Outcome:
    """Bring these records of a study into the store. Call it under `waiting.one_writer`.

    Args:
        found: records by key.
        on_disk: the keys of all records: any other run of this importer that says RUNNING in MLflow was killed; None
            where `found` is a part that changed, and nothing is said of others.
        stop: once set, the import ends after the records that were begun.
        outcome: outcome of an import that the tracker interrupted, to complete.
        studies: of runs that several studies ask for, their names, which a tag of each copy says.

    Raises:
        TrackerDown: the tracker failed on the way; what is missing is imported by the next call.
        UserError: another importer keeps writing other records of the same runs.
    """
    outcome, progress, stop = (
        outcome or Outcome(),
        progress or ImportProgress(lambda _: None),
        stop or Event(),
    )
    outcome.problems.clear()
    with tracker_errors(store.uri):
        progress.at(f"looking for {study} in {redact(store.uri, store.uri)}")
        if not found and not find_experiment(store, study):
            return outcome
        experiment = make_experiment(store, study)
        job = _Import(store, study, experiment, found, studies or {}, liveness, progress, outcome)
        for _ in range(LOOKS):
            progress.at(job.step(f"listing the runs of {study}"))
            known = runs_by_key(
                store, experiment, list(found) if on_disk is None and len(found) <= FEW else None
            )
            changed = _look(job, known, stop)
            if job.kinds:
                show_as_training(store, experiment, job.kinds[0])
            if on_disk is not None:
                for key in known.keys() - set(on_disk):
                    _bury(store, known[key])
            if not changed:
                break
            if job.conflicts:
                stop.wait(random.random() / 5)  # a random wait puts two competing importers out of step
        else:
            if job.conflicts:
                raise job.conflicts[-1]
            raise UserError(
                f"{', '.join(sorted(outcome.rivals)) or 'Someone else'} writes other records of {study} into "
                f"{redact(store.uri, store.uri)} at the same time; stop one of the two importers."
            )
    outcome.unchanged = len(found.keys() - outcome.problems.keys() - set(outcome.written))
    return outcome


def _look(job: _Import, known: Mapping[str, Sequence[Run]], stop: Event) -> bool:
    """Compare MLflow with the records once and correct what differs; True where anything did."""
    changed = False
    # in a random order, so that importers of two machines share the work and seldom meet
    for key in random.sample(list(job.found), len(job.found)):
        if stop.is_set() and key not in job.fingerprints:
            continue  # finish what was begun
        item = job.found[key]
        try:
            changed |= _settle(job, item, known.get(key, []))
        except UserError as problem:
            if item.directory.exists():  # else it was moved while it was read, and will be found again
                job.outcome.problems[key] = str(problem)
        except MlflowException as error:
            if not is_conflict(error):
                raise
            job.conflicts.append(error)
            changed = True
    return changed


def bury_vanished(store: Store, study: str, keys: Sequence[str]) -> None:
    """Mark as KILLED the runs of these keys that still say RUNNING: their records were deleted."""
    with tracker_errors(store.uri):
        experiment = find_experiment(store, study)
        if experiment is not None:
            for runs in runs_by_key(store, experiment.experiment_id, keys).values():
                _bury(store, runs)


def _bury(store: Store, runs: Sequence[Run]) -> None:
    for run in runs:
        if run.info.status == RUNNING and is_own(store, run):
            store.client.set_tag(run.info.run_id, MESSAGE, "Its record was deleted while it ran.")
            store.client.set_terminated(run.info.run_id, KILLED)


def _settle(job: _Import, item: RecordFolder, listed: Sequence[Run]) -> bool:
    """Make MLflow agree with the record, in one run; True where that took any writing.

    Args:
        listed: runs of that key in a listing, which may be out of date by now.
    """
    fingerprint, reading = job.fingerprints.get(item.key), None
    if fingerprint is None:
        fingerprint, reading = describe(item, job.liveness)
        job.fingerprints[item.key] = fingerprint
    if _is_settled(listed, fingerprint):
        _tell_studies(job, item.key, listed[0])
        return False
    store = job.store
    job.progress.at(job.step(f"looking up {item.key}"))
    known = runs_by_key(store, job.experiment, [item.key]).get(item.key, [])
    if _is_settled(known, fingerprint):
        return False
    if any(not is_own(store, run) for run in known):
        reading = reading or read(item, job.liveness)
        _refuse_others(job, known, reading.record.run)
    whole = sorted(run.info.run_id for run in known if run.data.tags.get(FINGERPRINT) == fingerprint)
    job.outcome.rivals.update(
        run.data.tags[IMPORTER]
        for run in known
        if not is_own(store, run) and run.data.tags.get(FINGERPRINT) in (None, fingerprint)
    )
    job.progress.at(job.step(f"writing {item.key}"))
    if whole:
        for run in known:
            if run.info.run_id != whole[0]:
                store.client.delete_run(run.info.run_id)
        return True
    if reading is None:  # another importer deleted what this one had found
        fingerprint, reading = describe(item, job.liveness)
        job.fingerprints[item.key] = fingerprint
    reading = reading or read(item, job.liveness)
    current, last_step = continued(store, reading, known)
    job.kinds.append(kind_of(reading.record.run))
    run_id = write(store, job.experiment, job.study, reading, fingerprint, current, last_step)
    if item.key in job.studies:
        store.client.set_tag(run_id, STUDIES, ", ".join(job.studies[item.key]))
    for run in known:  # replaced by it; runs of others wait for the next look and may be complete by then
        if run.info.run_id != run_id and is_own(store, run):
            store.client.delete_run(run.info.run_id)
    if item.key not in job.outcome.written:
        job.outcome.written.append(item.key)
    job.progress.advance()
    return True


def _tell_studies(job: _Import, key: str, run: Run) -> None:
    """Name in a run's tag all studies that ask for it, where several do."""
    said = ", ".join(job.studies.get(key, ()))
    if said and run.data.tags.get(STUDIES) != said and is_own(job.store, run):
        job.store.client.set_tag(run.info.run_id, STUDIES, said)


def _refuse_others(job: _Import, known: Sequence[Run], run: AnyRun) -> None:
    """Check that no other importer has a different run with this name, which would be lost by replacing it.

    Raises:
        UserError: one has.
    """
    for other in known:
        tags = other.data.tags
        if not is_own(job.store, other) and FINGERPRINT in tags and tags.get(SPEC_DIGEST) != run.digest:
            raise UserError(
                f"MLflow ({redact(job.store.uri, job.store.uri)}) has another run with the name {run.key} in "
                f"{job.study}, imported from {tags[IMPORTER]}; two results folders with different runs of that name "
                "can't share a tracking store: give one of them its own (tracking.uri), or delete that run there."
            )


def _is_settled(runs: Sequence[Run], fingerprint: str) -> bool:
    """True where there is exactly one run, and it agrees with the record."""
    return len(runs) == 1 and runs[0].data.tags.get(FINGERPRINT) == fingerprint
