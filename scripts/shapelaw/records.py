"""What a run leaves on disk, and how it is read back.

A finished run is a directory `<results>/runs/<study>/<key>/` with

- `spec.json`: the run (`shapelaw.runs.Run`) as JSON,
- `history.parquet`: one row a logged step; only numbers that a resumed run reproduces bit for bit,
- `summary.json`: the final numbers, the clock, the machine. Written last: where it is, the record is whole.

A run under way, or one that died, has `<results>/checkpoints/<study>/<key>/` with `live.json` (its state),
the same `spec.json` and `history.parquet`, and its checkpoints.
Every file is written to a temporary name, flushed to the disk and renamed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from shapelaw.errors import UserError
from shapelaw.files import replacing
from shapelaw.runs import Run, run_from_dict, run_to_dict

SCHEMA_VERSION = 1
HISTORY_SCHEMA = pa.schema(
    [
        pa.field("step", pa.int64(), nullable=False),  # steps done, from 1
        pa.field("train_loss", pa.float64(), nullable=False),  # nats per token, mean since the row before
        pa.field("learning_rate", pa.float64(), nullable=False),  # of that step
        pa.field("gradient_norm", pa.float64(), nullable=False),  # of that step, before clipping
        pa.field("test_loss", pa.float64()),  # nats per token; null where it was not evaluated
    ]
)
RUNNING, FINISHED, FAILED, KILLED = "RUNNING", "FINISHED", "FAILED", "KILLED"  # MLflow's names


@dataclass(frozen=True)
class Record:
    """A run's files, read back. `summary` is empty unless the run is finished; `live` unless it is not."""

    directory: Path
    run: Run
    history: pa.Table
    summary: Mapping[str, Any]
    live: Mapping[str, Any]

    @property
    def status(self) -> str:
        """FINISHED, RUNNING, FAILED (it said why) or KILLED (it was told to stop)."""
        return FINISHED if self.summary else str(self.live.get("status", RUNNING))


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file so that, whatever happens, it is there whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    """Write strict JSON (no NaN), atomically."""
    write_bytes(path, (json.dumps(values, indent=1, allow_nan=False) + "\n").encode())


def write_spec(directory: Path, run: Run) -> None:
    """Write `spec.json`."""
    write_json(
        directory / "spec.json", {"schema_version": SCHEMA_VERSION, "key": run.key, **run_to_dict(run)}
    )


def history_table(rows: Sequence[Sequence[float]]) -> pa.Table:
    """Rows of (step, train_loss, learning_rate, gradient_norm, test_loss or nan) as an Arrow table."""
    steps, train, rate, norm, test = zip(*rows, strict=True) if rows else ((), (), (), (), ())
    columns = [
        [int(step) for step in steps],
        list(train),
        list(rate),
        list(norm),
        [None if math.isnan(loss) else loss for loss in test],
    ]
    return pa.table(columns, schema=HISTORY_SCHEMA)


def write_history(directory: Path, rows: Sequence[Sequence[float]]) -> None:
    """Write `history.parquet`; the same rows give the same bytes."""
    sink = pa.BufferOutputStream()
    pq.write_table(history_table(rows), sink)
    write_bytes(directory / "history.parquet", sink.getvalue().to_pybytes())


def write_summary(directory: Path, summary: Mapping[str, Any]) -> None:
    """Write `summary.json`, the last file of a record."""
    write_json(directory / "summary.json", {"schema_version": SCHEMA_VERSION, **summary})


def write_live(directory: Path, live: Mapping[str, Any]) -> None:
    """Write `live.json`, the state of a run that has not finished."""
    write_json(directory / "live.json", {"schema_version": SCHEMA_VERSION, **live})


def read_record(directory: Path) -> Record:
    """Read a finished run's directory, or the checkpoint directory of one that has not finished.

    Raises:
        UserError: a file is missing, cut short, or of another schema version; the sentence says which
            and what to do.
    """
    values = _read_json(directory / "spec.json")
    del values["schema_version"], values["key"]
    try:
        run = run_from_dict(values)
    except (KeyError, TypeError) as error:
        raise UserError(
            f"{directory / 'spec.json'} is not the spec of a run ({error}); delete {directory} and run again."
        ) from error
    history_path = directory / "history.parquet"
    history = HISTORY_SCHEMA.empty_table()
    summary = _read_json(directory / "summary.json") if (directory / "summary.json").exists() else {}
    live = _read_json(directory / "live.json") if (directory / "live.json").exists() else {}
    if not summary and not live:
        raise UserError(
            f"The record {directory} is half written: it has neither summary.json nor live.json; "
            "delete the folder and run again."
        )
    if summary or history_path.exists():
        try:
            history = pq.read_table(history_path, schema=HISTORY_SCHEMA)
        except (OSError, pa.ArrowInvalid) as error:
            raise UserError(
                f"The record {directory} is half written: history.parquet can't be read ({error}); "
                "delete the folder and run again."
            ) from error
    return Record(directory, run, history, summary, live)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        values = json.loads(path.read_text())
    except FileNotFoundError as error:
        raise UserError(
            f"The record {path.parent} is half written: {path.name} is missing; delete the folder and run again."
        ) from error
    except (OSError, ValueError) as error:
        raise UserError(
            f"The record {path.parent} is half written: {path.name} is not whole JSON ({error}); "
            "delete the folder and run again."
        ) from error
    version = values.get("schema_version") if isinstance(values, dict) else None
    if version != SCHEMA_VERSION:
        raise UserError(
            f"{path} has record schema version {version}, and this shapelaw reads version {SCHEMA_VERSION}; "
            "check out the version that wrote it, or delete the folder and run again."
        )
    return dict(values)
