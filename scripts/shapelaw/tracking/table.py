"""Tables of runs from MLflow, a row a run: `runs.parquet` of a study, and any experiment of anyone."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from mlflow.entities import Run

from shapelaw.errors import UserError
from shapelaw.fits.inputs import with_numbers
from shapelaw.specs.columns import Column
from shapelaw.specs.kinds import KINDS, Kind
from shapelaw.storage.records import schema_of, write_bytes
from shapelaw.tracking.command import ImportProgress, redact
from shapelaw.tracking.entities import plain_metrics, stored_result
from shapelaw.tracking.store import (
    FINGERPRINT,
    KEY,
    STUDY,
    SUMMARY_OF,
    Store,
    find_experiment,
    reading,
    search_runs,
    tracker_errors,
)

LARGEST = 1e308  # MLflow's databases keep infinity as the largest number
SHOWN = 10  # experiments that a message names
_TAGS = (
    "study",
    "spec_digest",
    "host",
    "git_commit",
    "device",
    "torch_version",
)  # the last four say the batch
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
        progress.at(f"reading the runs of {study} from {store.shown}")
    kind, rows = KINDS[None], []
    with tracker_errors(store.uri):
        experiment = find_experiment(store, study)
        for run in search_runs(store.client, experiment.experiment_id) if experiment else ():
            tags = run.data.tags
            if (
                tags.get(STUDY) == study
                and {KEY, FINGERPRINT} <= tags.keys()
                and (keys is None or tags[KEY] in keys)
            ):
                kind = KINDS.get(run.data.params.get("kind"), KINDS[None])
                rows.append(_row(run, kind))
    present = Counter(str(row["key"]) for row in rows)
    if missing := sorted(set(keys or ()) - present.keys()):
        raise UserError(
            f"MLflow ({store.shown}) has no run of {named(missing)} in the experiment {study}; "
            "train what is missing, then import again."
        )
    if twice := sorted(key for key, count in present.items() if count > 1):
        raise UserError(
            f"MLflow has two active runs of {named(twice)} in {study}; import again to repair it."
        )
    rows.sort(key=lambda row: str(row["key"]))
    return pa.Table.from_pylist(rows, schema=table_schema(kind))


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


def read_experiment(uri: str, name: str) -> pd.DataFrame:
    """The runs of an experiment that have both parameters and metrics; numbers are numbers, the rest text.

    Runs are named by the index, `State` is the status of each, and `_step` the last step at which it logged a metric.
    A metric that is not finite is infinite. Where a parameter and a metric share a name, the metric stands. Nothing is
    written to the store.

    Raises:
        UserError: the store can't be read, or has no such experiment, or that has no such run.
    """
    shown = redact(uri, uri)
    with reading(uri) as client:
        experiment = client.get_experiment_by_name(name)
        if experiment is None:
            there = [one.name for one in client.search_experiments(max_results=SHOWN)]
            raise UserError(f"{shown} has no experiment {name!r}; it has {', '.join(there) or 'none'}.")
        runs = [
            run
            for run in search_runs(client, experiment.experiment_id)
            if run.data.params and run.data.metrics and SUMMARY_OF not in run.data.tags
        ]
    if not runs:
        raise UserError(f"The experiment {name!r} of {shown} has no run with parameters and metrics.")
    table = with_numbers(pd.DataFrame([_logged_row(run) for run in runs]))
    names = Counter(run.info.run_name for run in runs)
    table.index = pd.Index(
        [
            str(run.info.run_name)
            if names[run.info.run_name] == 1
            else f"{run.info.run_name} ({run.info.run_id})"
            for run in runs
        ],
        dtype=object,
    )
    for column in table.columns:
        numbers = pd.to_numeric(table[column], errors="coerce")
        if (numbers.notna() == table[column].notna()).all():
            table[column] = numbers
    return table


def _logged_row(run: Run) -> dict[str, str | float | None]:
    """A run's parameters, metrics (those of a run that this project imported without their groups), state and step."""
    logged = run.data.metrics
    metrics = plain_metrics(logged) if KEY in run.data.tags else dict(logged)
    finite = {
        name: value if math.isfinite(value) and abs(value) < LARGEST else math.inf
        for name, value in metrics.items()
    }
    step = max(metric.step for metric in run.data.to_proto().metrics)
    return {
        **run.data.params,
        **finite,
        "Name": run.info.run_name,
        "State": run.info.status,
        "_step": step or None,
    }
