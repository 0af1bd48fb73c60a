"""A record as MLflow's entities and back: params, metrics, tags and inputs, and a study's `runs.parquet`, a row a run.

A curve is a metric's history, and its latest value is the result. MLflow's latest is that of the greatest step, then of
the latest time.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from sys import intern

import pyarrow as pa
from mlflow.entities import Dataset, DatasetInput, InputTag, Metric, Param, Run, RunTag, SourceType
from mlflow.utils import mlflow_tags

from shapelaw.errors import UserError
from shapelaw.specs import kinds
from shapelaw.specs.cost import short_number
from shapelaw.specs.runs import AXES
from shapelaw.storage.records import FINISHED, Record, schema_of
from shapelaw.tracking.store import Store, search_runs, tracker_errors

CURVES = tuple(
    dict.fromkeys(one.name for one in (*kinds.LANGUAGE_HISTORY, *kinds.PACKED_HISTORY) if one.name != "step")
)
SIZES = ("block_params", "layer_params", "total_params", "step_flops")  # metrics, to filter by
FULL = "full"  # the param of a rank that nothing limits
RANKS = tuple(axis.name for axis in AXES.values() if axis.null == "full rank")
KEY, STUDY, SPEC_DIGEST, MESSAGE = "key", "study", "spec_digest", "message"  # tags
FINGERPRINT = "fingerprint"  # tag of a run that is whole, written last
STUDIES = "studies"  # tag of a run that several studies ask for: their names, each of which has a copy of it
SHAPE = "shape"  # tag: the run's name without its seed, by which a view groups the seeds of a shape
SIZE_CLASS = "size_class"  # tag by which a view groups shapes of about one size
_CLASSES = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0)
# beside the table's columns, what tells of a machine goes into MLflow's tab of system metrics
_SYSTEM = re.compile(r"_(seconds|flops|per_second|utilisation|watts|wait|percent)$")
_TOKEN = re.compile(r"-(?=[A-Za-z])")  # between the parts of a key; not inside 1e-05
_TAGS_THOUGH_NUMBERS = ("attempts", "threads", "processes", "micro_batch")
_ELSEWHERE = {"schema_version", "key", "study", "spec_digest", "status", "message", "tags", "pid"}
_ELSEWHERE |= {"started_at", "finished_at", "updated_at", "train_store", "test_store"}
_ELSEWHERE |= {"step", "steps", "params", "test_sequences", *SIZES}  # of the spec
_LARGEST = 1.7976931348623157e308  # MLflow stores this for an infinite value
TEXT_LIMIT = 5000  # characters of a tag or param


def run_name(run: kinds.AnyRun) -> str:
    """A name that differs from those of its neighbours in its first characters: `L4 d48 s0 wiki V500 H2 t400`."""
    return " ".join(_parts(run))


def shape_name(run: kinds.AnyRun) -> str:
    """The same without the seed, and four digits of the spec: runs that differ by the seed alone share it."""
    return " ".join(
        [*(part for part in _parts(run) if part != f"s{run.seed}"), replace(run, seed=0).digest[:4]]
    )


def _parts(run: kinds.AnyRun) -> list[str]:
    """The parts of a run's label, those that tell it from its neighbours first."""
    rest = _TOKEN.split(run.label)
    first = []
    for letter in kinds.kind_of(run).name_begins:
        for part in [part for part in rest if re.fullmatch(rf"{letter}\d\S*", part)][-1:]:
            first.append(part)
            rest.remove(part)
    return first + rest


def size_class(run: kinds.AnyRun) -> str:
    """The size to the nearest of 1, 1.5, 2, 3, 5 and 7 times a power of ten: `150K` of 132,000 block parameters."""
    size = next(value for name in SIZES if (value := run.flat().get(name)))
    unit = 10.0 ** math.floor(math.log10(size))
    return short_number(unit * min(_CLASSES, key=lambda each: abs(math.log(each * unit / size))))


def params(record: Record) -> list[Param]:
    """Shape, recipe, budget, corpus and seed; unused options are left out, and a full rank is `full`."""
    values = record.run.flat()
    values |= {name: FULL for name in RANKS if name in values and values[name] is None}
    return [
        Param(name, str(value)) for name, value in values.items() if value is not None and name not in SIZES
    ]


def tags(record: Record, study: str, message: str, studies: str) -> list[RunTag]:
    """Tags: key, study, git commit, host, attempts, the caller's tags, all other texts.

    Args:
        studies: that ask for the run, where several do; else empty.
    """
    values, run = record.summary or record.live, record.run
    texts = {name: str(value) for name, value in values.get("tags", {}).items()}
    for name, value in values.items():
        if name not in _ELSEWHERE and (isinstance(value, str | bool) or name in _TAGS_THOUGH_NUMBERS):
            texts[name] = str(value)
    texts |= {KEY: run.key, STUDY: study, SPEC_DIGEST: run.digest, SHAPE: shape_name(run)}
    texts |= {SIZE_CLASS: size_class(run), mlflow_tags.MLFLOW_RUN_NOTE: note(record, message)}
    if kinds.DIVERGED.name in record.summary:
        texts["diverged"] = "true"
    texts |= {mlflow_tags.MLFLOW_SOURCE_NAME: "scripts/train.py"}  # in MLflow's column Source
    texts |= {mlflow_tags.MLFLOW_SOURCE_TYPE: SourceType.to_string(SourceType.LOCAL)}
    if values.get("git_commit"):
        texts[mlflow_tags.MLFLOW_GIT_COMMIT] = str(values["git_commit"])  # shown as the source version
    for name in (FINGERPRINT, MESSAGE, STUDIES):  # the importer's own
        texts.pop(name, None)
    texts |= {name: text for name, text in ((MESSAGE, message), (STUDIES, studies)) if text}
    return [RunTag(valid_name(name), text[:TEXT_LIMIT]) for name, text in texts.items()]


def note(record: Record, message: str) -> str:
    """The run's description: its key and record, and why it ended where it did not finish."""
    lines = [f"Run `{record.run.key}`; its record: `results/runs/{record.run.key}`."]
    if (step := record.summary.get(kinds.DIVERGED.name)) is not None:
        lines.append(f"It diverged at step {step}: its loss was no longer finite.")
    return "\n\n".join([*lines, *([message] if message else [])])


def size_metrics(record: Record, started: datetime) -> list[Metric]:
    """The sizes of a run, which are known when it starts."""
    values = record.run.flat()
    return [Metric(name, float(values[name]), milliseconds(started), 0) for name in SIZES if name in values]


def summary_metrics(record: Record, ended: datetime) -> list[Metric]:
    """The numbers of a summary: final losses, bits per byte, speed, memory, and any other.

    A result that has a curve is that curve's latest point. Where the summary has no such result, since the run
    diverged, the latest point is not a number, which no filter finds. The others are at step 0, which MLflow's UI takes
    for "not a curve": it compares such numbers of runs as bars.
    """
    numbers: dict[str, float] = {
        name.removeprefix("final_"): float(value)
        for name, value in record.summary.items()
        # a bool is none
        if name not in _ELSEWHERE and name not in _TAGS_THOUGH_NUMBERS and type(value) in (int, float)
    }
    columns = {one.name for one in kinds.kind_of(record.run).metrics}
    history = record.history.to_pydict()
    last, end = max(history["step"], default=0), milliseconds(ended)
    points = []
    for name in columns & history.keys():
        value, curve = numbers.pop(name, math.nan), [logged for logged in history[name] if logged is not None]
        if (curve or not math.isnan(value)) and history[name][-1:] != [value]:
            points.append(Metric(name, value, end + 1, last))
    for name, value in numbers.items():
        group = "system/" if name not in columns and _SYSTEM.search(f"_{name}") else ""
        points.append(Metric(valid_name(group + name), value, end, 0))
    return points


def history_metrics(
    record: Record, after: int, started: datetime, ended: datetime
) -> Iterator[Sequence[Metric]]:
    """The points of each row of the history after a step.

    A history has no clock, so that a resumed run reproduces it; its rows are spread evenly over the run's time.
    """
    columns = record.history.to_pydict()
    first, last = milliseconds(started), milliseconds(ended)
    final = columns["step"][-1] if columns["step"] else 1
    for row, step in enumerate(columns["step"]):
        if step > after:
            time = first + (last - first) * step // final
            values = [(name, columns[name][row]) for name in CURVES if name in columns]
            yield [Metric(name, value, time, step) for name, value in values if value is not None]


def datasets(record: Record) -> list[DatasetInput]:
    """The token stores that the run was trained and tested on; runs of packs draw their examples themselves."""
    inputs, corpus = [], record.run.flat().get("corpus")
    for field, context in (("train_store", "training"), ("test_store", "testing")):
        store = record.summary.get(field)
        if isinstance(store, Mapping) and store.get("sha256"):
            size = {"num_tokens": store.get("tokens"), "vocab_size": store.get("vocab_size")}
            dataset = Dataset(
                name=f"{corpus}-V{store.get('vocab_size')}-{context}",
                digest=str(store["sha256"])[:36],  # MLflow's limit
                source_type="local",
                source=json.dumps({"uri": store.get("path")}),
                profile=json.dumps(size),
            )
            inputs.append(DatasetInput(dataset, [InputTag("mlflow.data.context", context)]))
    return inputs


def same_value(stored: float, value: float) -> bool:
    """True where MLflow's stored value is this one; MLflow stores NaN as it is and infinity as the largest float."""
    if math.isnan(value) or math.isnan(stored):
        return math.isnan(value) and math.isnan(stored)
    return stored == max(-_LARGEST, min(_LARGEST, value))


def valid_name(name: str) -> str:
    """The name with an underscore for each character that MLflow refuses."""
    return re.sub(r"[^\w\-. /:]", "_", name, flags=re.ASCII).strip("/. ")[:250] or "_"


def milliseconds(time: datetime) -> int:
    """Milliseconds since 1970, MLflow's unit of time."""
    return round(time.timestamp() * 1000)


LARGEST = 1e308  # MLflow's databases keep infinity as the largest number
# the last four say the batch
_TAGS = ("study", "spec_digest", "host", "git_commit", "device", "torch_version")
_COMMON = tuple(kinds.Column(name, str) for name in ("key", "run_id", "status", *_TAGS))
Value = str | int | float | None


@dataclass(frozen=True)
class Listed:
    """What is kept of a run in MLflow, of which there may be ten thousands.

    Attributes:
        fingerprint: of the record that it holds; None of one that was left half imported.
        studies: that ask for it, where several do.
        kind, values: its row of the table, in the order of the kind's columns.
    """

    run_id: str
    status: str
    fingerprint: str | None
    studies: str | None
    kind: kinds.Kind
    values: tuple[Value, ...]

    @property
    def row(self) -> dict[str, Value]:
        """Its row of the table."""
        return dict(zip((one.name for one in columns_of(self.kind)), self.values, strict=True))


def columns_of(kind: kinds.Kind) -> tuple[kinds.Column, ...]:
    """The columns of a kind's table of runs, those that every kind has first."""
    return (*_COMMON, *kind.params, *kind.metrics)


def table_schema(kind: kinds.Kind) -> pa.Schema:
    """The same as an Arrow schema."""
    return schema_of(columns_of(kind))


def listed_runs(store: Store, experiment_id: str, filters: Iterable[str] = ("",)) -> dict[str, list[Listed]]:
    """The active training runs of an experiment by key, those that pass one of some filters."""
    known: dict[str, list[Listed]] = {}
    for filter_string in filters:
        for run in search_runs(store.client, experiment_id, filter_string):
            if KEY in run.data.tags:
                known.setdefault(run.data.tags[KEY], []).append(_listed(run))
    return known


def _listed(run: Run) -> Listed:
    """A run that has not finished has no results, though its curves have points, and a full rank is null."""
    tags, params, metrics = run.data.tags, run.data.params, run.data.metrics
    kind = kinds.KINDS.get(params.get("kind"), kinds.KINDS[None])
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
            experiment = store.find_experiment(study)
            listed = listed_runs(store, experiment.experiment_id) if experiment else {}
    whole = {key: run for key, runs in sorted(listed.items()) for run in runs if run.fingerprint}
    if missing := sorted(set(keys or ()) - whole.keys()):
        raise UserError(
            f"MLflow ({store.shown}) has no run of {named(missing)} in the experiment {study}; "
            "train what is missing, then import again."
        )
    runs = [run for key, run in whole.items() if keys is None or key in keys]
    kind = runs[-1].kind if runs else kinds.KINDS[None]
    return pa.Table.from_pylist([run.row for run in runs], schema=table_schema(kind))


def named(keys: Collection[str], limit: int = 10) -> str:
    """Keys as a clause that names the first `limit`."""
    shown = list(keys)[:limit]
    more = f" and {len(keys) - limit} more" if len(keys) > limit else ""
    return ", ".join(shown) + more
