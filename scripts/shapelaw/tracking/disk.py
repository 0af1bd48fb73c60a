"""The records on disk: find them, tell their true status, and tell those that changed since their import."""

from __future__ import annotations

import hashlib
import json
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from shapelaw.errors import UserError
from shapelaw.storage.copies import FILES, content, has
from shapelaw.storage.records import CHECKPOINTS, KILLED, RUNNING, RUNS, Record

IMPORT_FORMAT = 2  # part of every fingerprint: raise it when the importer writes something new


@dataclass(frozen=True)
class RecordFolder:
    """A record on disk that has not been read yet."""

    key: str
    directory: Path
    finished: bool


@dataclass(frozen=True)
class Liveness:
    """The criteria by which a run that says RUNNING still runs.

    Attributes:
        silence: seconds without an update of live.json after which its run counts as dead.
        host: name of this machine, on which processes can be looked up.
    """

    silence: float = 600.0
    host: str = field(default_factory=socket.gethostname)


def find_records(results: Path) -> dict[str, RecordFolder]:
    """The records below `results` by key; a finished one wins over one under way.

    `runs/` is listed after `checkpoints/`, so a run that finishes meanwhile is seen at least once.
    """
    found: dict[str, RecordFolder] = {}
    for place in (CHECKPOINTS, RUNS):
        for directory in _folders(results / place):
            finished = has(directory, "summary.json")
            if finished or (place == CHECKPOINTS and (directory / "live.json").exists()):
                found[directory.name] = RecordFolder(directory.name, directory, finished)
    return dict(sorted(found.items()))


def _folders(root: Path) -> list[Path]:
    try:
        with os.scandir(root) as entries:
            return [root / entry.name for entry in entries if entry.is_dir()]
    except (FileNotFoundError, NotADirectoryError):
        return []


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


def true_status(record: Record, liveness: Liveness, now: datetime) -> tuple[str, str]:
    """The true status of a record, and the reason: a run that says RUNNING but whose process is gone is KILLED.

    Raises:
        UserError: live.json has no time of its last update.
    """
    if record.status != RUNNING:
        return record.status, str(record.live.get("message") or "")
    silent = (now - moment(record.live, "updated_at", record.directory)).total_seconds()
    if record.live.get("host") == liveness.host and not _process_exists(record.live.get("pid")):
        return KILLED, f"Its process ended without a message on {liveness.host}."
    if silent > liveness.silence:
        return KILLED, f"It has given no sign of life for over {liveness.silence / 60:g} minutes."
    return RUNNING, str(record.live.get("message") or "")


def _process_exists(pid: Any) -> bool:
    if not isinstance(pid, int):
        return True  # unknown, so not known to be gone
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # the process exists and is another user's
        return True
    return True


def moment(values: Mapping[str, Any], name: str, directory: Path) -> datetime:
    """The time `name` of a summary or live state, in UTC unless it says otherwise.

    Raises:
        UserError: the time is missing, or not ISO 8601.
    """
    try:
        time = datetime.fromisoformat(values[name])
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(
            f"The record {directory} has no valid time {name} ({values.get(name)!r}); "
            f"write an ISO 8601 time there, or train the run again: rm -r {directory} && snakemake"
        ) from error
    return time if time.tzinfo else time.replace(tzinfo=UTC)
