"""Follow mode: look at the results folder again and again, and import what changed into MLflow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from threading import Event

from shapelaw.errors import UserError
from shapelaw.storage.asked import read_asked
from shapelaw.storage.copies import COPY
from shapelaw.storage.records import read_record
from shapelaw.tracking.disk import Liveness, RecordFolder, find_records, live_fingerprint, true_status
from shapelaw.tracking.importer import bury_vanished, import_records, shared_of, tell_rivals
from shapelaw.tracking.redaction import redact
from shapelaw.tracking.store import open_store
from shapelaw.tracking.waiting import ImportProgress, Say, Stopped, one_writer, patiently


@dataclass
class Seen:
    """The findings of the last looks. Only files are remembered; MLflow is asked each time."""

    states: dict[str, str] = field(default_factory=dict)  # the state that was imported, by `_state`
    asked: dict[str, list[str]] = field(default_factory=dict)  # keys by study
    told: set[str] = field(default_factory=set)  # problems and rivals that were reported already
    first: bool = True


def _nothing() -> None:
    pass


def follow(
    results: Path,
    uri: str,
    every: float | None,
    patience: float,
    say: Say,
    stop: Event,
    liveness: Liveness | None = None,
    progress: ImportProgress | None = None,
    looked: Callable[[], None] = _nothing,
) -> None:
    """Import the runs of all studies, finished and live, every `every` seconds (None: once) until `stop` is set.

    The lock of the one writer is held only while something is written, so that other importers get their turn.

    Args:
        looked: called once, after the first look.

    Raises:
        UserError: the URI or the store is wrong.
        TrackerDown: the tracker was down for longer than `patience` seconds.
    """
    seen, liveness, progress = Seen(), liveness or Liveness(), progress or ImportProgress(say)
    try:
        while not stop.is_set():
            patiently(
                lambda: look(results, uri, seen, liveness, say, stop, progress), patience, say, stop, progress
            )
            looked()
            looked = _nothing
            if every is None:
                return
            stop.wait(every)
    except Stopped:
        return


def look(
    results: Path,
    uri: str,
    seen: Seen,
    liveness: Liveness,
    say: Say,
    stop: Event,
    progress: ImportProgress | None = None,
) -> None:
    """Import what changed since the last look; the first one opens the store, and creates a SQLite one."""
    found, asked = find_records(results), read_asked(results)
    states = {key: _state(item, liveness) for key, item in found.items()}
    changed = {key: item for key, item in found.items() if seen.states.get(key) != states[key]}
    vanished = seen.states.keys() - found.keys()
    anew = {key for study, keys in asked.items() for key in set(keys) - set(seen.asked.get(study, ()))}
    if not (changed or vanished or seen.first or anew):
        return
    progress = progress or ImportProgress(say)

    def say_once(sentence: str) -> None:
        if sentence not in seen.told:
            seen.told.add(sentence)
            say(sentence)

    with one_writer(results, say, stop):
        progress.at(f"opening {redact(uri, uri)}")
        store, shared = open_store(uri, results), shared_of(asked)
        for study, keys in asked.items():
            # also where another study has asked for it since, which its copies here and there then say
            items = {key: found[key] for key in keys if key in found and (key in changed or key in anew)}
            on_disk = found if seen.first else None
            outcome = import_records(store, study, items, liveness, on_disk, stop, progress, None, shared)
            for sentence in outcome.problems.values():
                say_once(sentence)
            tell_rivals(study, outcome, say_once)
            if stop.is_set():
                return
            if outcome.written:
                say(f"{study}: {len(outcome.written)} of {len(items)} runs written.")
            if gone := vanished.intersection(keys):
                bury_vanished(store, study, sorted(gone))
    seen.states, seen.asked, seen.first = states, asked, False


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
    except (
        UserError,
        OSError,
        StopIteration,
    ) as problem:  # reported when it is imported; looked at again when its text changes
        return f"unreadable: {problem}"
