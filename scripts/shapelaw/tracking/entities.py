"""A record as MLflow's entities, under names that MLflow's users read: params, metrics, tags, logged inputs.

MLflow's charts have a section for each group (the part of a metric's name before the slash), and a tab of their own for
`system/`.
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
from mlflow.utils.mlflow_tags import MLFLOW_RUN_NOTE, MLFLOW_SOURCE_NAME, MLFLOW_SOURCE_TYPE

from shapelaw.specs.columns import DIVERGED
from shapelaw.specs.kinds import AnyRun, kind_of
from shapelaw.storage.records import Record
from shapelaw.tracking.store import FINGERPRINT, KEY, STUDY

CURVES = {  # columns of histories
    "train_loss": "loss/train",
    "test_loss": "loss/test",
    "loss": "loss/all_examples",
    "accuracy": "accuracy/all_examples",
    "learning_rate": "schedule/learning_rate",
    "gradient_norm": "schedule/gradient_norm",
}
CONSTANTS = ("tokens_trained", "test_sequences", "test_tokens", "test_bytes")  # the same for every seed
_RESULT, _SYSTEM = "result/", "system/"
_ROUNDED = (
    "rounded/"  # results to read in MLflow's list, which shows every digit; nothing is computed from them
)
_DECIMALS = 4
_SYSTEM_ENDINGS = (
    "_seconds",
    "_bytes",
    "_per_second",
    "_utilisation",
    "_flops",
    "_watts",
    "_wait",
    "_percent",
)
_TOKEN = re.compile(r"-(?=[A-Za-z])")  # between the parts of a key; not inside 1e-05
SPEC_DIGEST, MESSAGE = "spec_digest", "message"  # tags
STUDIES = "studies"  # tag of a run that several studies ask for: their names, each of which has a copy of it
SHAPE = "shape"  # tag: the run's name without its seed, by which MLflow groups runs
_TAGS_THOUGH_NUMBERS = ("attempts", "threads", "processes", "micro_batch")
_ELSEWHERE = {"schema_version", "key", "study", "spec_digest", "status", "message", "tags", "pid"}
_ELSEWHERE |= {"started_at", "finished_at", "updated_at", "train_store", "test_store"}
_ELSEWHERE |= {"step", "steps", "block_params", "total_params", "step_flops"}  # params, from the spec
_ELSEWHERE |= {"params"}  # older summaries call the total so
_NOTED = ("test_loss", "bits_per_byte", "final_loss", "final_accuracy", "tokens_per_second")  # of a summary
_LARGEST = 1.7976931348623157e308  # MLflow stores this for an infinite value
TEXT_LIMIT = 5000  # characters of a tag or param


def result_name(name: str) -> str:
    """The metric for a number of a run's summary: `result/test_loss`, `system/tokens_per_second`."""
    group = _SYSTEM if name.endswith(_SYSTEM_ENDINGS) else _RESULT
    return group + name.removeprefix("final_")


def shown_name(name: str) -> str:
    """The metric that MLflow's list of runs shows for a number of a run's summary: rounded, where it is a result."""
    stored = result_name(name)
    return _ROUNDED + stored.removeprefix(_RESULT) if stored.startswith(_RESULT) else stored


def stored_result(name: str, params: Mapping[str, str], metrics: Mapping[str, float]) -> str | float | None:
    """A number of a run's summary as MLflow has it; None where it has none."""
    return params.get(name) if name in CONSTANTS else metrics.get(result_name(name))


def plain_metrics(metrics: Mapping[str, float]) -> dict[str, float]:
    """A run's metrics without groups, for a table: its results and what it cost, not the last points of its curves."""
    plain = {}
    for name, value in metrics.items():
        if name not in CURVES.values() and not name.startswith(_ROUNDED):
            plain[name.removeprefix(_RESULT).removeprefix(_SYSTEM)] = value
    return plain


def run_name(run: AnyRun) -> str:
    """A name that differs from those of its neighbours in its first characters: `L4 d48 s0 wiki V500 H2 t400`."""
    first, rest = _parts(run)
    return " ".join([*first, *rest])


def shape_name(run: AnyRun) -> str:
    """The same without the seed, and four digits of the spec: runs that differ by the seed alone share it."""
    first, rest = _parts(run)
    named = [part for part in [*first, *rest] if part != f"s{run.seed}"]
    return " ".join([*named, replace(run, seed=0).digest[:4]])


def _parts(run: AnyRun) -> tuple[list[str], list[str]]:
    """The parts of a run's label: those that come first in its name, and the others."""
    rest = _TOKEN.split(run.label)
    first = []
    for letter in kind_of(run).name_begins:
        found = [part for part in rest if re.fullmatch(rf"{letter}\d\S*", part)]
        if found:
            first.append(found[-1])
            rest.remove(found[-1])
    return first, rest


def params(record: Record) -> list[Param]:
    """Shape, budget, seed, and the sizes that follow from them; full ranks and unused options are left out.

    So are numbers of a summary that budget and data fix: they are the same for every seed, nothing to compare.
    """
    values = kind_of(record.run).flat(record.run)
    values |= {name: record.summary[name] for name in CONSTANTS if is_number(record.summary.get(name))}
    return [Param(name, str(value)) for name, value in values.items() if value is not None]


def tags(record: Record, study: str, message: str, studies: str) -> list[RunTag]:
    """Tags: key, study, git commit, host, attempts, the caller's tags, all other texts.

    Args:
        studies: that ask for the run, where several do; else empty.
    """
    values = record.summary or record.live
    texts = {name: str(value) for name, value in values.get("tags", {}).items()}
    for name, value in values.items():
        if name in _ELSEWHERE or value is None:
            continue
        if isinstance(value, str | bool) or name in _TAGS_THOUGH_NUMBERS:
            texts[name] = str(value)
    texts |= {KEY: record.run.key, STUDY: study, SPEC_DIGEST: record.run.digest}
    texts |= {SHAPE: shape_name(record.run), MLFLOW_RUN_NOTE: note(record, message)}
    if DIVERGED.name in record.summary:
        texts["diverged"] = "true"
    texts |= {MLFLOW_SOURCE_NAME: "scripts/train.py"}  # in MLflow's column Source
    texts |= {MLFLOW_SOURCE_TYPE: SourceType.to_string(SourceType.LOCAL)}
    if values.get("git_commit"):
        texts["mlflow.source.git.commit"] = str(values["git_commit"])  # shown as the source version
    texts.pop(FINGERPRINT, None)  # the importer's own, and the last one
    for name, text in ((MESSAGE, message), (STUDIES, studies)):
        texts.pop(name, None)
        texts |= {name: text} if text else {}
    return [RunTag(valid_name(name), text[:TEXT_LIMIT]) for name, text in texts.items()]


def note(record: Record, message: str) -> str:
    """The run's description: its key and record, what it came to, and why it ended where it did not finish."""
    said = [f"Run `{record.run.key}`; its record: `results/runs/{record.run.key}`."]
    results = [
        f"{name.replace('_', ' ')} {record.summary[name]:.4g}"
        for name in _NOTED
        if is_number(record.summary.get(name))
    ]
    said += [f"At the end: {', '.join(results)}."] if results else []
    if (step := record.summary.get(DIVERGED.name)) is not None:
        said.append(f"It diverged at step {step}: its loss was no longer finite.")
    return "\n\n".join([*said, *([message] if message else [])])


def summary_metrics(record: Record, ended: datetime) -> list[Metric]:
    """The numbers of a summary: final losses, bits per byte, speed, memory, and any other.

    They are at step 0, which MLflow's UI takes for "not a curve": it compares such numbers of runs as bars.
    """
    numbers = {
        result_name(name): float(value)
        for name, value in record.summary.items()
        if name not in _ELSEWHERE
        and name not in _TAGS_THOUGH_NUMBERS
        and name not in CONSTANTS
        and is_number(value)
    }
    noted = {name: record.summary[name] for name in _NOTED if is_number(record.summary.get(name))}
    numbers |= {
        shown_name(name): round(float(value), _DECIMALS)
        for name, value in noted.items()
        if shown_name(name) not in numbers
    }
    time = milliseconds(ended)
    return [Metric(valid_name(name), value, time, 0) for name, value in numbers.items()]


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
            values = [(shown, columns[name][row]) for name, shown in CURVES.items() if name in columns]
            yield [Metric(name, value, time, step) for name, value in values if value is not None]


def datasets(record: Record) -> list[DatasetInput]:
    """The token stores that the run was trained and tested on; runs of packs draw their examples themselves."""
    inputs, corpus = [], kind_of(record.run).flat(record.run).get("corpus")
    for field, context in (("train_store", "training"), ("test_store", "testing")):
        store = record.summary.get(field)
        if isinstance(store, Mapping) and store.get("sha256"):
            dataset = Dataset(
                name=f"{corpus}-V{store.get('vocab_size')}-{context}",
                digest=str(store["sha256"])[:36],  # MLflow's limit
                source_type="local",
                source=json.dumps({"uri": store.get("path")}),
                profile=json.dumps(
                    {"num_tokens": store.get("tokens"), "vocab_size": store.get("vocab_size")}
                ),
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
