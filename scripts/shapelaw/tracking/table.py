"""The runs of a study, read back from MLflow as one table: `runs.parquet`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from mlflow.entities import Run

from shapelaw.errors import UserError
from shapelaw.specs import degrees, memorizers
from shapelaw.storage.records import write_bytes
from shapelaw.tracking.errors import tracker_errors
from shapelaw.tracking.redaction import redact
from shapelaw.tracking.store import FEW, FINGERPRINT, KEY, STUDY, Store, find_experiment, runs_by_key
from shapelaw.tracking.waiting import Progress


@dataclass(frozen=True)
class _Columns:
    """What a kind of run has in the table, and what MLflow calls it where that differs."""

    params: Mapping[str, pa.DataType]
    metrics: Mapping[str, pa.DataType]
    sources: Mapping[str, str]

    @property
    def schema(self) -> pa.Schema:
        """The columns of every kind first."""
        return pa.schema([*_COMMON, *self.params.items(), *self.metrics.items()])


_TAGS = ("study", "spec_digest")
_COMMON = [(name, pa.string()) for name in ("key", "run_id", "status", *_TAGS)]
_LANGUAGE_PARAMS: dict[str, pa.DataType] = {
    "corpus": pa.string(),
    "depth": pa.int64(),
    "width": pa.int64(),
    "heads": pa.int64(),
    "attention_dim": pa.int64(),
    "vocab_size": pa.int64(),
    "context_length": pa.int64(),
    "embedding_rank": pa.int64(),  # null: full rank
    "positional_rank": pa.int64(),  # null: full rank
    "attention_degree": pa.int64(),  # null: softmax
    "gelu": pa.string(),  # null: tanh
    "seed": pa.int64(),
    "params": pa.int64(),  # block_params: 12 L d^2, the papers' network size
    "total_params": pa.int64(),
    "steps": pa.int64(),
    "batch_size": pa.int64(),
    "learning_rate": pa.float64(),
    "step_flops": pa.int64(),
}
_LANGUAGE_METRICS: dict[str, pa.DataType] = {
    "test_loss": pa.float64(),  # nats per token, at the end of training, as are all of these
    "bits_per_byte": pa.float64(),
    "train_loss": pa.float64(),
    "tokens_trained": pa.int64(),
    "tokens_per_second": pa.float64(),
    "peak_memory_bytes": pa.int64(),
    "wall_seconds": pa.float64(),
    "model_flops_utilisation": pa.float64(),
}
_LANGUAGE = _Columns(
    _LANGUAGE_PARAMS,
    _LANGUAGE_METRICS,
    {"params": "block_params", "test_loss": "final_test_loss", "train_loss": "final_train_loss"},
)
_MEMORIZATION = _Columns(
    {
        "task": pa.string(),
        "context_type": pa.string(),
        "heads": pa.int64(),
        "context": pa.int64(),
        "head_dim": pa.int64(),
        "value_dim": pa.int64(),
        "width": pa.int64(),
        "classes": pa.int64(),
        "logit_scale": pa.string(),
        "attend_to_query": pa.string(),
        "last_batch": pa.string(),
        "examples": pa.int64(),
        "seed": pa.int64(),
        "steps": pa.int64(),
        "batch_size": pa.int64(),
        "learning_rate": pa.float64(),
        "total_params": pa.int64(),
    },
    {
        "steps_done": pa.int64(),
        "accuracy": pa.float64(),  # share of all examples, at the end; null where labels are numbers
        "loss": pa.float64(),  # of all examples, at the end: nats or squared error
        "saturated_share": pa.float64(),
        "examples_with_free_head": pa.float64(),
        "wall_seconds": pa.float64(),
        "model_steps_per_second": pa.float64(),
        "peak_memory_bytes": pa.int64(),
    },
    {"classes": "outputs", "accuracy": "final_accuracy", "loss": "final_loss"},
)
_THRESHOLDS = sorted({loss for known in degrees.THRESHOLDS.values() for loss in known}, reverse=True)
_DEGREE = _Columns(
    {
        "target": pa.string(),
        "target_rank": pa.int64(),  # 0: digits
        "degrees": pa.string(),  # of the layers, such as 3.3.3.3
        "mixture": pa.string(),
        "initial_share": pa.float64(),  # of a mixture; null: half
        "width": pa.int64(),
        "inputs": pa.int64(),
        "seed": pa.int64(),
        "layer_params": pa.int64(),
        "total_params": pa.int64(),
        "steps": pa.int64(),
        "batch_size": pa.int64(),
        "learning_rate": pa.float64(),
        "evaluate_every": pa.int64(),
    },
    {
        "loss": pa.float64(),  # held-out, at the end: share of the variance, or nats
        "accuracy": pa.float64(),
        "diverged_at_step": pa.float64(),  # then there is no loss
        "mean_degree": pa.float64(),  # of the layers, at the end
        **{f"steps_to_{loss:g}": pa.float64() for loss in _THRESHOLDS},
        "wall_seconds": pa.float64(),
        "model_steps_per_second": pa.float64(),
        "peak_memory_bytes": pa.int64(),
    },
    {"accuracy": "final_accuracy", "loss": "final_loss"},
)
_BY_KIND = {memorizers.KIND: _MEMORIZATION, degrees.KIND: _DEGREE}
SCHEMA = _LANGUAGE.schema


def read_runs(
    store: Store, study: str, keys: Collection[str] | None = None, progress: Progress | None = None
) -> pa.Table:
    """The training runs of a study, one row a run, sorted by key.

    Columns are those of the runs' kind; of language models as in `SCHEMA`.

    Args:
        keys: only these; all if None. What a run did not log is null, and unfinished runs have no final numbers.

    Raises:
        UserError: keys are missing in MLflow, or a key has two active runs; the sentence names them.
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
    columns = next((_BY_KIND[kind] for kind in kinds if kind in _BY_KIND), _LANGUAGE)
    rows = sorted((_row(run, columns) for run in runs), key=lambda row: str(row["key"]))
    return pa.Table.from_pylist(rows, schema=columns.schema)


def _whole_runs(runs: Sequence[Run]) -> Sequence[Run]:
    """The runs of a key that are imported whole, one of each content.

    Two importers may have written the same just now; the one with the smallest id will stay.
    """
    whole = sorted(
        (run for run in runs if FINGERPRINT in run.data.tags), key=lambda run: str(run.info.run_id)
    )
    return list({run.data.tags[FINGERPRINT]: run for run in reversed(whole)}.values())


def _row(run: Run, columns: _Columns) -> dict[str, str | int | float | None]:
    tags = run.data.tags
    row: dict[str, str | int | float | None] = {
        "key": tags[KEY],
        "run_id": run.info.run_id,
        "status": run.info.status,
    }
    row |= {name: tags.get(name) for name in _TAGS}
    for kinds, source in ((columns.params, run.data.params), (columns.metrics, run.data.metrics)):
        for name, kind in kinds.items():
            value = source.get(columns.sources.get(name, name))
            row[name] = None if value is None else _convert(kind)(value)
    return row


def _convert(kind: pa.DataType) -> Callable[[str | float], str | int | float]:
    return str if kind == pa.string() else int if kind == pa.int64() else float


def named(keys: Collection[str], limit: int = 10) -> str:
    """Keys as a clause, the first `limit` by name."""
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
