"""A record as MLflow's entities, under the names that everyone uses: params, metrics, tags, logged inputs.

A curve is a metric's history, and its latest value is the result. MLflow's latest is that of the greatest step, then of
the latest time.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from mlflow.entities import Dataset, DatasetInput, InputTag, Metric, Param, RunTag, SourceType
from mlflow.utils import mlflow_tags

from shapelaw.specs.columns import DIVERGED, LANGUAGE_HISTORY, PACKED_HISTORY
from shapelaw.specs.cost import short_number
from shapelaw.specs.kinds import AnyRun, kind_of
from shapelaw.specs.runs import AXES
from shapelaw.storage.records import Record
from shapelaw.tracking.store import FINGERPRINT, KEY, STUDY

CURVES = tuple(dict.fromkeys(one.name for one in (*LANGUAGE_HISTORY, *PACKED_HISTORY) if one.name != "step"))
SIZES = ("block_params", "layer_params", "total_params", "step_flops")  # metrics, to filter by
FULL = "full"  # the param of a rank that nothing limits
RANKS = tuple(axis.name for axis in AXES.values() if axis.null == "full rank")
SPEC_DIGEST, MESSAGE = "spec_digest", "message"  # tags
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
_ELSEWHERE |= {
    "step",
    "steps",
    "params",
    "test_sequences",
    *SIZES,
}  # of the spec; older summaries have the params
_LARGEST = 1.7976931348623157e308  # MLflow stores this for an infinite value
TEXT_LIMIT = 5000  # characters of a tag or param


def run_name(run: AnyRun) -> str:
    """A name that differs from those of its neighbours in its first characters: `L4 d48 s0 wiki V500 H2 t400`."""
    return " ".join(_parts(run))


def shape_name(run: AnyRun) -> str:
    """The same without the seed, and four digits of the spec: runs that differ by the seed alone share it."""
    return " ".join(
        [*(part for part in _parts(run) if part != f"s{run.seed}"), replace(run, seed=0).digest[:4]]
    )


def _parts(run: AnyRun) -> list[str]:
    """The parts of a run's label, those that tell it from its neighbours first."""
    rest = _TOKEN.split(run.label)
    first = []
    for letter in kind_of(run).name_begins:
        for part in [part for part in rest if re.fullmatch(rf"{letter}\d\S*", part)][-1:]:
            first.append(part)
            rest.remove(part)
    return first + rest


def size_class(run: AnyRun) -> str:
    """The size to the nearest of 1, 1.5, 2, 3, 5 and 7 times a power of ten: `150K` of 132,000 block parameters."""
    size = next(value for name in SIZES if (value := kind_of(run).flat(run).get(name)))
    unit = 10.0 ** math.floor(math.log10(size))
    return short_number(unit * min(_CLASSES, key=lambda each: abs(math.log(each * unit / size))))


def params(record: Record) -> list[Param]:
    """Shape, recipe, budget, corpus and seed; unused options are left out, and a full rank is `full`."""
    values = kind_of(record.run).flat(record.run)
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
    if DIVERGED.name in record.summary:
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
    if (step := record.summary.get(DIVERGED.name)) is not None:
        lines.append(f"It diverged at step {step}: its loss was no longer finite.")
    return "\n\n".join([*lines, *([message] if message else [])])


def size_metrics(record: Record, started: datetime) -> list[Metric]:
    """The sizes of a run, which are known when it starts."""
    values = kind_of(record.run).flat(record.run)
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
        if name not in _ELSEWHERE and name not in _TAGS_THOUGH_NUMBERS and is_number(value)
    }
    columns = {one.name for one in kind_of(record.run).metrics}
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
    inputs, corpus = [], kind_of(record.run).flat(record.run).get("corpus")
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


def is_number(value: Any) -> bool:
    """True for a JSON value that is a number; true and false are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


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
