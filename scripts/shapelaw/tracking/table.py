"""Runs read back from MLflow, a row a run: `runs.parquet` of a study."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from sys import intern

import pyarrow as pa
import pyarrow.parquet as pq
from mlflow.entities import Experiment, Run

from shapelaw.errors import UserError
from shapelaw.specs.columns import Column
from shapelaw.specs.kinds import KINDS, Kind
from shapelaw.storage.records import FINISHED, schema_of, write_bytes
from shapelaw.tracking.entities import FULL, RANKS, SIZE_CLASS, SIZES, STUDIES
from shapelaw.tracking.store import (
    FINGERPRINT,
    KEY,
    Store,
    find_experiment,
    search_runs,
    tracker_errors,
)

LARGEST = 1e308  # MLflow's databases keep infinity as the largest number
_TAGS = (
    "study",
    "spec_digest",
    "host",
    "git_commit",
    "device",
    "torch_version",
)  # the last four say the batch
_COMMON = tuple(Column(name, str) for name in ("key", "run_id", "status", *_TAGS))
Value = str | int | float | None


@dataclass(frozen=True)
class Listed:
    """What is kept of a run in MLflow, of which there may be ten thousands.

    Attributes:
        fingerprint: of the record that it holds; None of one that was left half imported.
        studies: that ask for it, where several do.
        older: an older version wrote it, under other names.
        kind, values: its row of the table, in the order of the kind's columns.
    """

    run_id: str
    status: str
    fingerprint: str | None
    studies: str | None
    older: bool
    kind: Kind
    values: tuple[Value, ...]

    @property
    def row(self) -> dict[str, Value]:
        """Its row of the table."""
        return dict(zip((one.name for one in columns_of(self.kind)), self.values, strict=True))


def columns_of(kind: Kind) -> tuple[Column, ...]:
    """The columns of a kind's table of runs, those that every kind has first."""
    return (*_COMMON, *kind.params, *kind.metrics, *kind.texts)


def table_schema(kind: Kind) -> pa.Schema:
    """The same as an Arrow schema."""
    return schema_of(columns_of(kind))


def listed_runs(
    store: Store, experiment: Experiment, filters: Iterable[str] = ("",)
) -> dict[str, list[Listed]]:
    """The active training runs of an experiment by key, those that pass one of some filters."""
    known: dict[str, list[Listed]] = {}
    for filter_string in filters:
        for run in search_runs(store.client, experiment.experiment_id, filter_string):
            if KEY in run.data.tags:
                known.setdefault(run.data.tags[KEY], []).append(_listed(run))
    return known


def _listed(run: Run) -> Listed:
    """A run that has not finished has no results, though its curves have points, and a full rank is null."""
    tags, params, metrics = run.data.tags, run.data.params, run.data.metrics
    kind = KINDS.get(params.get("kind"), KINDS[None])
    names = metrics if run.info.status == FINISHED else SIZES
    found: dict[str, Value] = {name: finite(metrics[name]) for name in names if name in metrics}
    found |= {**tags, **params, "run_id": run.info.run_id, "status": run.info.status}
    found |= {name: None for name in RANKS if found.get(name) == FULL}
    values = (None if (value := found.get(one.name)) is None else one.kind(value) for one in columns_of(kind))
    return Listed(
        run.info.run_id,
        run.info.status,
        tags.get(FINGERPRINT),
        tags.get(STUDIES),
        SIZE_CLASS not in tags,
        kind,
        tuple(intern(value) if isinstance(value, str) else value for value in values),
    )


def finite(value: float | None) -> float | None:
    """The value; None of one that is not finite."""
    return value if value is not None and math.isfinite(value) and abs(value) < LARGEST else None


def read_runs(
    store: Store,
    study: str,
    keys: Collection[str] | None = None,
    listed: Mapping[str, Sequence[Listed]] | None = None,
) -> pa.Table:
    """The training runs of a study, one row a run, sorted by key.

    Columns are those of the runs' kind (`table_schema`).

    Args:
        keys: the runs to read; None reads all. Unlogged values are null; unfinished runs have no final numbers.
        listed: the runs as an import has just listed them; None lists them.

    Raises:
        UserError: keys are missing in MLflow; the message names them.
        TrackerDown: the tracker failed.
    """
    with tracker_errors(store.uri):
        if listed is None:
            experiment = find_experiment(store, study)
            listed = listed_runs(store, experiment) if experiment else {}
    whole = {key: run for key, runs in sorted(listed.items()) for run in runs if run.fingerprint}
    if missing := sorted(set(keys or ()) - whole.keys()):
        raise UserError(
            f"MLflow ({store.shown}) has no run of {named(missing)} in the experiment {study}; "
            "train what is missing, then import again."
        )
    runs = [run for key, run in whole.items() if keys is None or key in keys]
    kind = runs[-1].kind if runs else KINDS[None]
    return pa.Table.from_pylist([run.row for run in runs], schema=table_schema(kind))


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
