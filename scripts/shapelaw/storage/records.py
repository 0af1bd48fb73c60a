"""The files that a run leaves on disk, written and read back.

A finished run is a directory `<results>/runs/<key>/` with

- `spec.json`: the run (`shapelaw.specs.runs.Run`) as JSON,
- `history.parquet`: one row for each logged step; only numbers that a resumed run reproduces bit for bit,
- `summary.json`: the final numbers, the times, the machine. Written last: where it exists, the record is whole.

A run that is under way or died has `<results>/checkpoints/<key>/` with `live.json` (its state),
the same `spec.json` and `history.parquet`, and its checkpoints; once it is finished, only weights that are kept.
Every file is written to a temporary name, flushed to the disk and renamed.
"""

from __future__ import annotations

import hashlib
import json
import math
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from shapelaw.errors import UserError
from shapelaw.specs.kinds import LANGUAGE_HISTORY, AnyRun, Column, kind_of, spec_from_dict
from shapelaw.storage.files import replacing
from shapelaw.storage.pool import RUNS as RUNS

SCHEMA_VERSION = 1
CHECKPOINTS = "checkpoints"  # folder in results/, beside RUNS
CONTENT = "content_sha256"  # of summary.json; records of before 2026-11-23 have none
RUNNING, FINISHED, FAILED, KILLED = "RUNNING", "FINISHED", "FAILED", "KILLED"  # MLflow's names


OneKind = TypeVar("OneKind", bound=AnyRun)
_ARROW = {int: pa.int64(), float: pa.float64(), str: pa.string()}


@dataclass(frozen=True)
class Record:
    """A run's files, read back. `summary` is empty before the run is finished, `live` afterwards."""

    directory: Path
    run: AnyRun
    history: pa.Table
    summary: Mapping[str, Any]
    live: Mapping[str, Any]

    @property
    def status(self) -> str:
        """FINISHED, RUNNING, FAILED (it said why) or KILLED (a signal stopped it)."""
        return FINISHED if self.summary else str(self.live.get("status", RUNNING))


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file atomically: whatever happens, it is whole or absent."""
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    """Write strict JSON (no NaN), atomically."""
    write_bytes(path, (json.dumps(values, indent=1, allow_nan=False) + "\n").encode())


def write_spec(directory: Path, run: AnyRun) -> None:
    """Write `spec.json`."""
    write_json(directory / "spec.json", {"schema_version": SCHEMA_VERSION, "key": run.key, **run.to_dict()})


def schema_of(columns: Iterable[Column]) -> pa.Schema:
    """The columns as an Arrow schema."""
    return pa.schema([pa.field(one.name, _ARROW[one.kind], nullable=one.nullable) for one in columns])


def history_schema(run: AnyRun) -> pa.Schema:
    """The columns of a run's history."""
    return schema_of(kind_of(run).history)


LANGUAGE_SCHEMA = schema_of(LANGUAGE_HISTORY)


def padded(rows: Iterable[Sequence[float]], schema: pa.Schema) -> list[tuple[float, ...]]:
    """Rows of any age: with nan for the last columns, where these may be null and a row is older than they are."""
    columns = list(schema)
    return [(*row, *(math.nan for column in columns[len(row) :] if column.nullable)) for row in rows]


def history_table(rows: Sequence[Sequence[float]], schema: pa.Schema = LANGUAGE_SCHEMA) -> pa.Table:
    """Rows in the order of the schema, `padded`, as an Arrow table; nan in a column that may be null becomes null.

    From buffers: `pa.array` would import pandas, half a second of each training's start.
    """
    columns = zip(*padded(rows, schema), strict=True) if rows else [()] * len(schema)
    arrays = []
    for values, column in zip(columns, schema, strict=True):
        numbers = np.array(values, np.int64 if column.type == pa.int64() else np.float64)
        there = None
        if column.nullable and np.isnan(numbers).any():
            there = pa.py_buffer(np.packbits(~np.isnan(numbers), bitorder="little"))
        arrays.append(pa.Array.from_buffers(column.type, len(numbers), [there, pa.py_buffer(numbers)]))
    return pa.Table.from_arrays(arrays, schema=schema)


def history_bytes(rows: Sequence[Sequence[float]], schema: pa.Schema = LANGUAGE_SCHEMA) -> bytes:
    """The content of `history.parquet`; the same rows give the same bytes."""
    return table_bytes(history_table(rows, schema))


def table_bytes(table: pa.Table) -> bytes:
    """The content of a Parquet file with a table."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return bytes(sink.getvalue().to_pybytes())


def write_history(
    directory: Path, rows: Sequence[Sequence[float]], schema: pa.Schema = LANGUAGE_SCHEMA
) -> None:
    """Write `history.parquet`."""
    write_bytes(directory / "history.parquet", history_bytes(rows, schema))


def write_summary(directory: Path, summary: Mapping[str, Any]) -> None:
    """Write `summary.json`, the last file of a record, with a hash of what it says."""
    content = {"schema_version": SCHEMA_VERSION, **{k: v for k, v in summary.items() if k != CONTENT}}
    write_json(directory / "summary.json", {**content, CONTENT: _hash_of(content)})


def _hash_of(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def write_live(directory: Path, live: Mapping[str, Any]) -> None:
    """Write `live.json`, the state of a run that has not finished."""
    write_json(directory / "live.json", {"schema_version": SCHEMA_VERSION, **live})


class OtherSchema(UserError):
    """A record has another schema version than this code."""


def read_record(directory: Path) -> Record:
    """Read a finished run's directory, or the checkpoint directory of one that has not finished.

    Raises:
        OtherSchema: it has another schema version.
        UserError: a file is missing, cut short or damaged; the message says which and what to do.
    """
    run = read_spec(directory)
    summary = read_summary(directory) if (directory / "summary.json").exists() else {}
    content = {name: value for name, value in summary.items() if name != CONTENT}
    if summary.get(CONTENT, _hash_of(content)) != _hash_of(content):
        raise _damaged(directory, "summary.json was changed since it was written")
    live = _read_json(directory / "live.json") if (directory / "live.json").exists() else {}
    if not summary and not live:
        raise _damaged(directory, "it has neither summary.json nor live.json")
    schema = history_schema(run)
    history = schema.empty_table()
    if summary or (directory / "history.parquet").exists():
        history = _read_history(directory, summary.get("history_sha256"), schema)
    return Record(directory, run, history, summary, live)


def finished_runs(
    folder: Path, kind: type[OneKind], keys: Iterable[str] | None = None
) -> Iterator[tuple[OneKind, dict[str, Any]]]:
    """The finished runs of a kind in a pool's folder of runs, each with its summary, in the order of their keys.

    Args:
        keys: of the runs to read, in this order; all where it is None.

    Raises:
        UserError: a record is damaged.
    """
    if keys is None:
        keys = sorted(path.parent.name for path in folder.glob("*/summary.json"))
    for key in keys:
        record = read_record(folder / key)
        if isinstance(record.run, kind):
            yield record.run, dict(record.summary)


def read_spec(directory: Path) -> AnyRun:
    """The run of a record.

    Raises:
        OtherSchema: it has another schema version.
        UserError: its spec is missing or damaged.
    """
    try:
        return spec_from_dict(_read_json(directory / "spec.json"))
    except (KeyError, TypeError) as error:
        raise _damaged(directory, f"spec.json is not a run's spec ({error!r})") from error


def read_summary(directory: Path) -> dict[str, Any]:
    """The summary of a finished record, read alone: what it says is not held against its hash.

    Raises:
        UserError: it is missing, cut short or of another schema version.
    """
    return _read_json(directory / "summary.json")


def _read_history(directory: Path, sha256: str | None, schema: pa.Schema) -> pa.Table:
    """The history, checked against its sha256 where the summary has one."""
    try:
        content = (directory / "history.parquet").read_bytes()
        if sha256 is not None and hashlib.sha256(content).hexdigest() != sha256:
            raise ValueError("it is not the file that summary.json was written for")
        # without threads: the history is small, and a process that ends while Arrow's threads start is aborted
        table = pq.ParquetFile(pa.BufferReader(content)).read(use_threads=False)
        for column in schema:
            if column.nullable and column.name not in table.column_names:  # it came later than this record
                table = table.append_column(column, pa.nulls(len(table), column.type))
        return table.select(schema.names).cast(schema)
    except (OSError, KeyError, ValueError, pa.ArrowException) as error:
        raise _damaged(directory, f"history.parquet can't be read ({error})") from error


def _read_json(path: Path) -> dict[str, Any]:
    try:
        values = json.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise _damaged(path.parent, f"{path.name} is missing") from error
    except (OSError, ValueError) as error:
        raise _damaged(path.parent, f"{path.name} is not whole JSON ({error})") from error
    version = values.get("schema_version") if isinstance(values, dict) else None
    if version != SCHEMA_VERSION:
        folders = [path.parent]
        if path.parent.parent.name in (RUNS, CHECKPOINTS):  # where weights are kept, both folders have a spec
            folders = [path.parents[2] / place / path.parent.name for place in (RUNS, CHECKPOINTS)]
        raise OtherSchema(
            f"{path} has record schema version {version}, and this shapelaw reads version {SCHEMA_VERSION}; check out "
            f"the version of shapelaw that wrote it, or train the run again: rm -rf {_quoted(*folders)} && snakemake"
        )
    return dict(values)


def _damaged(directory: Path, what: str) -> UserError:
    """A sentence that ends in the command that repairs it, without a full stop, so that the command can be copied."""
    if directory.parent.name == CHECKPOINTS:  # its checkpoints must not be deleted
        mend = "start the run again; it goes on from its checkpoints and writes its record anew: snakemake"
    else:
        mend = f"train the run again: rm -r {_quoted(directory)} && snakemake"
    return UserError(f"The record {directory} is damaged or half written: {what}; {mend}")


def _quoted(*paths: Path) -> str:
    return shlex.join(str(path) for path in paths)
