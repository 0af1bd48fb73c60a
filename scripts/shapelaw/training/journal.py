"""The records that a run writes while it trains and when it ends (see `shapelaw.storage.records` for the files)."""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from shapelaw.corpora.token_store import TokenStore
from shapelaw.errors import UserError, say
from shapelaw.specs.kinds import AnyRun
from shapelaw.storage import files, records
from shapelaw.storage.files import WriteFailed


@dataclass
class Journal:
    """The record of one run, in its checkpoint directory until it is finished, then in `out`.

    A finished record is also left in the checkpoint directory: if Snakemake dies between the end of training
    and the end of the job, it deletes `out` and starts the job again, and the run must not be trained twice.
    """

    run: AnyRun
    identity: str
    stores: Mapping[str, TokenStore]  # by name: train_store, test_store; empty for a memorizer
    out: Path
    checkpoints: Path
    tags: dict[str, str]
    started_at: str = field(default_factory=lambda: _now())
    attempts: int = 1
    trouble: WriteFailed | None = None  # error of the last note, if it failed

    def restore_finished(self) -> bool:
        """Copy the finished record of the same spec and data to `out`, if the checkpoint directory has one.

        A record of another spec under the same key is deleted.

        Raises:
            OtherSchema: another version of shapelaw wrote the directory's record.
            WriteFailed: `out` can't be written.
        """
        before = self._before()
        if before is None:
            return False
        found = before.summary or before.live
        if found.get("identity") != self.identity:
            for name in ("summary.json", "live.json", "history.parquet"):
                (self.checkpoints / name).unlink(missing_ok=True)
            files.forget(self.checkpoints)
            return False
        if not before.summary:
            return False
        if self.out != self.checkpoints:
            self._write_record(self.out, files.content(self.checkpoints, "history.parquet"), before.summary)
        (self.checkpoints / "live.json").unlink(missing_ok=True)
        return True

    def is_finished(self) -> bool:
        """True if the checkpoint directory has the finished record of the same spec and data."""
        before = self._before()
        return before is not None and before.summary.get("identity") == self.identity

    def _before(self) -> records.Record | None:
        """The record of earlier attempts; None if it is missing or damaged.

        Raises:
            OtherSchema: another version of shapelaw wrote it; it may be that of a finished run.
        """
        try:
            return records.read_record(self.checkpoints)
        except records.OtherSchema:
            raise
        except UserError:  # a note for people; checkpoints decide where to resume
            return None

    def start(self, step: int, rows: Sequence[Sequence[float]]) -> None:
        """Note that an attempt begins, with the step and the history from which it continues."""
        before = self._before()
        if before is not None:
            self.started_at = before.live.get("started_at", self.started_at)
            self.attempts = before.live.get("attempts", 0) + 1
        records.write_spec(self.checkpoints, self.run)
        self.note(records.RUNNING, step, rows, must=True)

    def failure_for_good(self) -> str | None:
        """The message of an earlier attempt at the same spec and data that diverged, with advice on how to retry."""
        before = self._before()
        if before is None or before.live.get("identity") != self.identity or not before.live.get("for_good"):
            return None
        return (
            f"{before.live['message']} It is not tried again, since it would end the same; to retry anyway: "
            f"rm -r {self.checkpoints}"
        )

    def note(
        self,
        status: str,
        step: int,
        rows: Sequence[Sequence[float]],
        message: str | None = None,
        *,
        for_good: bool = False,
        must: bool = False,
    ) -> None:
        """Write the run's progress: the history so far, and `live.json`.

        It is for people: a full disk must not end a run because a note fails; that is said once.

        Args:
            for_good: the run failed in a way that another attempt would repeat.
            must: the note is needed.

        Raises:
            WriteFailed: the disk is full or gone, and the note is needed.
        """
        live = {
            **self._common(status),
            "step": step,
            "steps": self.run.steps,
            "message": message,
            "updated_at": _now(),
            "pid": os.getpid(),
            **({"for_good": True} if for_good else {}),
        }
        try:
            self._write_history(rows)
            records.write_live(self.checkpoints, live)
            self.trouble = None
        except WriteFailed as error:
            if must:
                raise
            if self.trouble is None:
                say(f"the run's progress is not written down: {error}")
            self.trouble = error

    def finish(self, rows: Sequence[Sequence[float]], numbers: Mapping[str, Any]) -> None:
        """Write the finished record."""
        summary = {
            **self._common(records.FINISHED),
            **numbers,
            "finished_at": _now(),
            "git_commit": _git_commit(),
            **{name: _store(store) for name, store in self.stores.items()},
        }
        self._write_history(rows)
        history = (self.checkpoints / "history.parquet").read_bytes()
        summary["history_sha256"] = hashlib.sha256(history).hexdigest()
        self._write_record(self.checkpoints, history, summary)
        (self.checkpoints / "live.json").unlink(missing_ok=True)
        self._write_record(self.out, history, summary)

    def _write_history(self, rows: Sequence[Sequence[float]]) -> None:
        records.write_history(self.checkpoints, rows, records.history_schema(self.run))

    def _write_record(self, directory: Path, history: bytes, summary: Mapping[str, Any]) -> None:
        records.write_spec(directory, self.run)
        records.write_bytes(directory / "history.parquet", history)
        records.write_summary(directory, summary)

    def _common(self, status: str) -> dict[str, Any]:
        return {
            "key": self.run.key,
            "spec_digest": self.run.digest,
            "identity": self.identity,
            "status": status,
            "host": socket.gethostname(),
            "started_at": self.started_at,
            "attempts": self.attempts,
            "tags": self.tags,
        }


def _store(store: TokenStore) -> dict[str, Any]:
    return {
        "path": str(store.path),
        "tokens": len(store.tokens),
        "vocab_size": store.vocab_size,
        "sha256": store.sha256,
    }


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _git_commit() -> str | None:
    """The commit of the checkout; None outside a checkout or without git."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
