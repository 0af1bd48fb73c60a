"""The runs of a study, read back from MLflow as one table: `runs.parquet`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from mlflow.entities import Run

from shapelaw.errors import UserError
from shapelaw.specs.columns import Column
from shapelaw.specs.kinds import KINDS, Kind
from shapelaw.storage.records import schema_of, write_bytes
from shapelaw.tracking.errors import tracker_errors
from shapelaw.tracking.names import stored_result
from shapelaw.tracking.redaction import redact
from shapelaw.tracking.store import FEW, FINGERPRINT, KEY, STUDY, Store, find_experiment, runs_by_key
from shapelaw.tracking.waiting import ImportProgress

_TAGS = ("study", "spec_digest")
_COMMON = tuple(Column(name, str) for name in ("key", "run_id", "status", *_TAGS))


def table_schema(kind: Kind) -> pa.Schema:
    """The columns of a kind's table of runs, those that every kind has first."""
    return schema_of([*_COMMON, *kind.params, *kind.metrics, *kind.texts])


def read_runs(
    store: Store, study: str, keys: Collection[str] | None = None, progress: ImportProgress | None = None
) -> pa.Table:
    """The training runs of a study, one row a run, sorted by key.

    Columns are those of the runs' kind (`table_schema`).

    Args:
        keys: the runs to read; None reads all. Unlogged values are null; unfinished runs have no final numbers.

    Raises:
        UserError: keys are missing in MLflow, or a key has two active runs; the message names them.
        TrackerDown: the tracker failed.
    """
    if progress:
        progress.at(f"reading the runs of {study} from {redact(store.uri, store.uri)}")
    with tracker_errors(store.uri):
        experiment = find_experiment(store, study)
        found = runs_by_key(store, experiment.experiment_id, None) if experiment else {}
        missing = sorted(set(keys or ()) - found.keys())
        if experiment and 0 < len(missing) <= FEW:  # pages shift where another importer writes meanwhile
            found |= runs_by_key(store, experiment.experiment_id, missing)
    runs = [
        run
        for key in (found if keys is None else set(keys) & found.keys())
        for run in _whole_runs(found[key])
        if run.data.tags.get(STUDY) == study
    ]
    present = [run.data.tags[KEY] for run in runs]
    if missing := sorted(set(keys or ()) - set(present)):
        raise UserError(
            f"MLflow ({redact(store.uri, store.uri)}) has no run of {named(missing)} in the experiment {study}; "
            "train what is missing, then import again."
        )
    if twice := sorted(key for key, count in Counter(present).items() if count > 1):
        raise UserError(
            f"MLflow has two active runs of {named(twice)} in {study}; import again to repair it."
        )
    kinds = {run.data.params.get("kind") for run in runs}
    kind = KINDS[next((name for name in kinds if name in KINDS), None)]
    rows = sorted((_row(run, kind) for run in runs), key=lambda row: str(row["key"]))
    return pa.Table.from_pylist(rows, schema=table_schema(kind))


def _whole_runs(runs: Sequence[Run]) -> Sequence[Run]:
    """The wholly imported runs of a key, one for each content.

    Two importers may just have written equal runs; the one with the smallest id will stay.
    """
    whole = sorted(
        (run for run in runs if FINGERPRINT in run.data.tags), key=lambda run: str(run.info.run_id)
    )
    return list({run.data.tags[FINGERPRINT]: run for run in reversed(whole)}.values())


def _row(run: Run, kind: Kind) -> dict[str, str | int | float | None]:
    tags = run.data.tags
    row: dict[str, str | int | float | None] = {
        "key": tags[KEY],
        "run_id": run.info.run_id,
        "status": run.info.status,
    }
    row |= {name: tags.get(name) for name in _TAGS}
    params, metrics = run.data.params, run.data.metrics
    values: dict[Column, str | float | None] = {one: params.get(one.logged_as) for one in kind.params}
    values |= {one: stored_result(one.logged_as, params, metrics) for one in kind.metrics}
    values |= {one: tags.get(one.logged_as) for one in kind.texts}
    for column, value in values.items():
        row[column.name] = None if value is None else column.kind(value)
    return row


def named(keys: Collection[str], limit: int = 10) -> str:
    """Keys as a clause that names the first `limit`."""
    shown = list(keys)[:limit]
    more = f" and {len(keys) - limit} more" if len(keys) > limit else ""
    return ", ".join(shown) + more


def write_runs(path: Path, table: pa.Table) -> None:
    """Write the table, atomically.

    Raises:
        UserError: the disk is full, read-only or broken.
    """
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    write_bytes(path, sink.getvalue().to_pybytes())
