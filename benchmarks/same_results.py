"""Whether two results folders of one config say the same: corpora, records, tables, figures and the MLflow store.

Clocks, the machine and the number of attempts may differ; nothing else may, and no file may be left over.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow.parquet as pq
from mlflow.entities import Run
from mlflow.tracking import MlflowClient

from shapelaw.tracking.command import LOCK_NAME, default_uri

CLOCKS = {"started_at", "finished_at", "wall_seconds", "train_seconds", "tokens_per_second", "data_wait"}
CLOCKS |= {"model_flops_utilisation", "peak_flops", "peak_memory_bytes"}  # measured too
OTHER_RUN = {"host", "attempts"}
STORE_ONLY = {"fingerprint"}  # a hash of the clocks with the rest
SAYS_CLOCKS = {"content_sha256", "mlflow.note.content"}  # a hash, and words, of all that a summary says
LINKED = {"findings.html", "logged"}  # have the ids of runs in MLflow
TRACKING = "MLflow"


@dataclass(frozen=True)
class Difference:
    """What differs.

    Attributes:
        area: the folder below the results (corpora, runs, checkpoints, depth_width), or MLflow.
        name: a file, or the name of a run in MLflow.
        what: how it differs, a clause.
    """

    area: str
    name: str
    what: str

    def __str__(self) -> str:
        return f"{self.area}: {self.name}: {self.what}"


def differences(one: Path, other: Path) -> list[Difference]:
    """How the results folder `other` differs from `one`; empty if they say the same."""
    return [*_file_differences(one, other), *_store_differences(one, other)]


def _file_differences(one: Path, other: Path) -> Iterator[Difference]:
    here, there = _files(one), _files(other)
    for name in sorted(here | there):
        area = name.partition("/")[0]
        if name not in there:
            yield Difference(area, name, "is missing")
        elif name not in here:
            yield Difference(area, name, "is left over")
        elif _content(one / name) != _content(other / name):
            yield Difference(area, name, "is not the same")


def _files(results: Path) -> set[str]:
    """What must be equal as files: not the logs, nor what MLflow keeps."""
    names = {path.relative_to(results).as_posix() for path in results.rglob("*") if path.is_file()}
    outside = ("logs", "mlartifacts", "mlflow.db")
    return {name for name in names if name.split("/")[0] not in outside and name.split("/")[-1] not in LINKED}


def _content(path: Path) -> object:
    """A file's bytes, or what it says where clocks are among that."""
    if path.name in ("lock", LOCK_NAME):
        return None  # who held it last; whose folder it is
    if path.name == "summary.json":
        values: dict[str, Any] = json.loads(path.read_bytes())
        return {key: value for key, value in values.items() if key not in CLOCKS | OTHER_RUN | SAYS_CLOCKS}
    if path.name == "runs.parquet":
        table = pq.read_table(path)
        return table.drop_columns(sorted({"run_id", *CLOCKS} & set(table.column_names))).to_pylist()
    return path.read_bytes()


def _is_clock(metric: str) -> bool:
    """True for a clock, in a group of metrics or not: `system/wall_seconds`."""
    return metric.rpartition("/")[2] in CLOCKS


def _store_differences(one: Path, other: Path) -> Iterator[Difference]:
    here, there = _runs(one), _runs(other)
    for name in sorted(here.keys() | there.keys()):
        found = there.get(name, [])
        if len(found) != len(here.get(name, [])):
            yield Difference(
                TRACKING, name, f"is there {len(found)} times instead of {len(here.get(name, []))}"
            )
            continue
        for expected, run in zip(here[name], found, strict=True):
            for what, value in expected.items():
                if run[what] != value:
                    yield Difference(TRACKING, name, f"has other {what}: {_clause(value, run[what])}")


def _runs(results: Path) -> dict[str, list[dict[str, Any]]]:
    """What MLflow says of each run that is not deleted, by name."""
    client = MlflowClient(default_uri(results))
    runs: dict[str, list[dict[str, Any]]] = {}
    for experiment in client.search_experiments():
        page = client.search_runs([experiment.experiment_id], max_results=50_000)
        for run in page:
            name = f"{experiment.name}/{run.info.run_name}"
            runs.setdefault(name, []).append(_said(client, run))
    return runs


def _said(client: MlflowClient, run: Run) -> dict[str, Any]:
    """All that MLflow says of a run but clocks, ids and who imported it."""
    curves = {
        name: Counter((point.step, point.value) for point in client.get_metric_history(run.info.run_id, name))
        for name in run.data.metrics
    }
    tags = {k: v for k, v in run.data.tags.items() if k not in CLOCKS | OTHER_RUN | STORE_ONLY | SAYS_CLOCKS}
    inputs = run.inputs.dataset_inputs if run.inputs else []
    artifacts = Path(urlsplit(run.info.artifact_uri).path)
    return {
        "status": run.info.status,
        "params": run.data.params,
        "tags": {**tags, "fingerprint": "fingerprint" in run.data.tags},  # written last: the run is whole
        "metrics": {name: curve for name, curve in curves.items() if not _is_clock(name)},
        "names of metrics": set(curves),
        "counts of clocks": {name: curve.total() for name, curve in curves.items() if _is_clock(name)},
        "data sets": sorted((each.dataset.name, each.dataset.digest) for each in inputs),
        "artifacts": {path.name: path.read_bytes() for path in sorted(artifacts.glob("*"))},
        "end": run.info.end_time is not None,
    }


def _clause(expected: object, found: object) -> str:
    """What differs, short."""
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        names = sorted(k for k in expected.keys() | found.keys() if expected.get(k) != found.get(k))
        return ", ".join(map(str, names))
    return f"{found} instead of {expected}"
