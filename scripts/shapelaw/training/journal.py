"""The records that a run writes while it trains and when it ends (see `shapelaw.storage.records` for the files)."""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from shapelaw.corpora.token_store import TokenStore
from shapelaw.errors import UserError, say
from shapelaw.specs.kinds import AnyRun
from shapelaw.storage import files, records
from shapelaw.storage.files import WriteFailed
from shapelaw.training import checkpoint


class UnderWay(NamedTuple):
    """A run in training: its key, the steps that it has done and those that it takes, and its history so far."""

    key: str
    step: int
    steps: int
    rows: Sequence[Sequence[float]]


@dataclass(frozen=True)
class Ended:
    """A run that ended: at its last step, or where its loss was no longer finite (`diverged_at_step` says where).

    Attributes:
        rows: its history.
        numbers: what its record says of it.
        files: further files of the record, by name.
    """

    key: str
    rows: Sequence[Sequence[float]]
    numbers: Mapping[str, Any]
    files: Mapping[str, bytes] = field(default_factory=dict)


@dataclass
class Journal:
    """What one run leaves: notes in `checkpoints` while it trains, and its record in `out` once it has ended."""

    run: AnyRun
    identity: str  # the spec and the data with which checkpoints and records must agree
    stores: Mapping[str, TokenStore]  # by name: train_store, test_store; empty for a memorizer
    out: Path
    checkpoints: Path
    tags: Mapping[str, str]
    started_at: str = field(default_factory=lambda: _now())
    attempts: int = 1
    trouble: WriteFailed | None = None  # error of the last note, if it failed

    def is_finished(self) -> bool:
        """True if the run has a whole record of this spec and data; no file of it is touched.

        Notes of another spec or of other data are deleted.

        Raises:
            OtherSchema: another version of shapelaw wrote a record.
            WriteFailed: `out` can't be written.
        """
        record = _record(self.out)
        if record is not None and record.summary.get("identity") == self.identity:
            return True
        before = _record(self.checkpoints)
        if before is not None and before.live.get("identity") != self.identity:
            for name in ("live.json", *files.FILES):
                (self.checkpoints / name).unlink(missing_ok=True)
        return False

    def start(self, at: UnderWay) -> None:
        """Note that an attempt begins, with the step and the history from which it continues.

        A record of another spec or of other data is deleted.
        """
        before = _record(self.checkpoints)
        if before is not None:
            self.started_at = before.live.get("started_at", self.started_at)
            self.attempts = before.live.get("attempts", 0) + 1
        records.write_spec(self.checkpoints, self.run)
        self.note(records.RUNNING, at, must=True)
        shutil.rmtree(self.out, ignore_errors=True)

    def note(self, status: str, at: UnderWay, message: str | None = None, *, must: bool = False) -> None:
        """Write the run's progress: the history so far, and `live.json`.

        It is for people: a full disk must not end a run because a note fails; that is said once.

        Args:
            must: the note is needed.

        Raises:
            WriteFailed: the disk is full or gone, and the note is needed.
        """
        live = {
            **self._common(status),
            "step": at.step,
            "steps": at.steps,
            "message": message,
            "updated_at": _now(),
            "pid": os.getpid(),
        }
        try:
            records.write_history(self.checkpoints, at.rows, records.history_schema(self.run))
            records.write_live(self.checkpoints, live)
            self.trouble = None
        except WriteFailed as error:
            if must:
                raise
            if self.trouble is None:
                say(f"the run's progress is not written down: {error}")
            self.trouble = error

    def finish(self, ended: Ended) -> None:
        """Write the record.

        Raises:
            WriteFailed: the disk is full or gone.
        """
        summary = {
            **self._common(records.FINISHED),
            **ended.numbers,
            "finished_at": _now(),
            "git_commit": _own_commit(),
            **{name: _store(store) for name, store in self.stores.items()},
        }
        history = records.history_bytes(ended.rows, records.history_schema(self.run))
        summary["history_sha256"] = hashlib.sha256(history).hexdigest()
        records.write_spec(self.out, self.run)
        for name, content in {"history.parquet": history, **ended.files}.items():
            records.write_bytes(self.out / name, content)
        records.write_summary(self.out, summary)

    def clear(self, weights: int) -> None:
        """Delete what a finished run no longer needs beside its record.

        Args:
            weights: so many of its newest checkpoints stay, with the spec.
        """
        checkpoint.keep_newest(self.checkpoints, weights)
        notes = ("live.json", "history.parquet", *(() if weights else files.FILES))
        for path in [
            *map(self.checkpoints.joinpath, notes),
            *self.checkpoints.glob(f"*{checkpoint.DAMAGED}"),
        ]:
            path.unlink(missing_ok=True)

    def _common(self, status: str) -> dict[str, Any]:
        return {
            "key": self.run.key,
            "spec_digest": self.run.digest,
            "identity": self.identity,
            "status": status,
            "host": socket.gethostname(),
            "started_at": self.started_at,
            "attempts": self.attempts,
            "tags": dict(self.tags),
        }


def _record(folder: Path) -> records.Record | None:
    """The record of a folder, perhaps of an attempt under way; None if it is missing or damaged.

    Raises:
        OtherSchema: another version of shapelaw wrote it; it may be that of a finished run.
    """
    try:
        return records.read_record(folder)
    except records.OtherSchema:
        raise
    except UserError:  # it is trained again, from its checkpoints
        return None


def _store(store: TokenStore) -> dict[str, Any]:
    return {
        "path": str(store.path),
        "tokens": len(store.tokens),
        "vocab_size": store.vocab_size,
        "sha256": store.sha256,
    }


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@cache
def _own_commit() -> str | None:
    """The commit of the code that this process runs, asked once: a job may write thousands of records."""
    return git_commit(Path(__file__).parents[1])


def git_commit(folder: Path) -> str | None:
    """The commit of a checkout, with `-dirty` where tracked files of this folder of it differ; None without one."""
    options = ("--porcelain=v2", "--branch", "--no-ahead-behind", "--untracked-files=no")
    command = ["git", "--no-optional-locks", "-C", str(folder), "status", *options, "--", "."]
    try:
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        return None
    commit = lines[0].removeprefix("# branch.oid ")
    return commit if lines[-1].startswith("#") else f"{commit}-dirty"
