"""Run records as training writes them, made without training."""

import math
import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from shapelaw.specs.making import make_shape
from shapelaw.specs.runs import Run, Training
from shapelaw.storage import records
from shapelaw.storage.pool import add_asked

STARTED = datetime(2026, 3, 1, 12, tzinfo=UTC)
STEPS = 60
Row = tuple[float, float, float, float, float]


def milliseconds(seconds: float) -> int:
    """MLflow's time of so many seconds after the start."""
    return round((STARTED.timestamp() + seconds) * 1000)


def make_run(seed: int = 0, depth: int = 2, **shape: Any) -> Run:
    training = Training(steps=STEPS, batch_size=8, learning_rate=3e-3, log_every=10, evaluate_every=30)
    return Run("wiki", make_shape(depth, 16, 2, 257, 32, **shape), training, seed)


def make_rows(run: Run, last: int = STEPS, shift: float = 0.0) -> list[Row]:
    """A loss curve with a row every 10 steps and a test loss every 30."""
    loss = [math.log(257) * (1 + s / 10) ** -0.3 + run.seed / 100 + shift for s in range(STEPS + 1)]
    return [
        (s, loss[s], 3e-3 * (1 - s / STEPS), 1.0 / s, loss[s] + 0.1 if s % 30 == 0 else math.nan)
        for s in range(10, last + 1, 10)
    ]


def write_finished(
    results: Path, run: Run, rows: Sequence[Row] | None = None, place: str = "runs", **summary: Any
) -> Path:
    rows = make_rows(run) if rows is None else rows
    folder = results / place / run.key
    records.write_spec(folder, run)
    records.write_history(folder, rows)
    store = {"path": "data/wiki.bin", "tokens": 1000, "vocab_size": 257, "corpus": "wiki"}
    values = {
        **_common(run),
        "status": "FINISHED",
        "test_loss": rows[-1][4],
        "train_loss": rows[-1][1],
        "bits_per_byte": 1.75,
        "steps": STEPS,
        "tokens_trained": STEPS * 8 * 32,
        "params": run.shape.total_params,
        "block_params": run.shape.block_params,
        "step_flops": run.shape.step_flops(8),
        "wall_seconds": 90.0,
        "tokens_per_second": 170.5,
        "peak_memory_bytes": 123456789,
        "model_flops_utilisation": None,
        "device": "cpu",
        "threads": 2,
        "torch_version": "2.9.0",
        "git_commit": "0123abc",
        "finished_at": _iso(90),
        "test_sequences": 1000,
        "train_store": {**store, "sha256": "a" * 64},
        "test_store": {**store, "sha256": "b" * 64},
        **summary,
    }
    records.write_summary(folder, values)
    return folder


def write_live(
    results: Path,
    run: Run,
    status: str = "RUNNING",
    last: int = 20,
    message: str | None = None,
    updated: datetime | None = None,
    rows: Sequence[Row] | None = None,
    **live: Any,
) -> Path:
    folder = results / "checkpoints" / run.key
    records.write_spec(folder, run)
    if last:
        records.write_history(folder, make_rows(run, last) if rows is None else rows)
    values = {
        **_common(run),
        "status": status,
        "step": last + 3,
        "steps": STEPS,
        "message": message,
        "updated_at": (updated or datetime.now(UTC)).isoformat(),
        "pid": os.getpid(),
        **live,
    }
    records.write_live(folder, values)
    return folder


def finish(results: Path, run: Run, **summary: Any) -> Path:
    """What training does at the end: a finished record, and no live state any more."""
    (results / "checkpoints" / run.key / "live.json").unlink()
    return write_finished(results, run, **summary)


def other_recipe(run: Run) -> Run:
    """The same network trained otherwise: another run, which has the same label."""
    return replace(run, training=replace(run.training, batch_size=16))


def ask(results: Path, study: str, *runs: Run) -> None:
    """Note that a study asks for these runs, as the start of a workflow does."""
    add_asked(results, {study: [run.key for run in runs]})


def _common(run: Run) -> Mapping[str, Any]:
    return {
        "key": run.key,
        "spec_digest": run.digest,
        "host": socket.gethostname(),
        "started_at": _iso(0),
        "attempts": 1,
        "tags": {"config_hash": "c0ffee", "slurm_job": "4711", "attempt": "1"},
    }


def _iso(seconds: float) -> str:
    return (STARTED + timedelta(seconds=seconds)).isoformat(timespec="milliseconds")
