"""Any MLflow experiment as one table, a row a run: parameters, last values of metrics, and the run's name."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pandas as pd
from mlflow.entities import Run, ViewType
from mlflow.tracking import MlflowClient

from shapelaw.errors import UserError
from shapelaw.fits.inputs import with_numbers
from shapelaw.tracking.errors import tracker_errors
from shapelaw.tracking.names import plain_metrics
from shapelaw.tracking.redaction import redact
from shapelaw.tracking.store import KEY, PAGE, SUMMARY_OF
from shapelaw.tracking.waiting import TrackerDown

LARGEST = 1e308  # MLflow's databases keep infinity as the largest number
SHOWN = 10  # experiments that a message names


def read_experiment(uri: str, name: str) -> pd.DataFrame:
    """The runs of an experiment that have both parameters and metrics; numbers are numbers, the rest text.

    Runs are named by the index, `State` is the status of each, and `_step` the last step at which it logged a metric.
    A metric that is not finite is infinite. Where a parameter and a metric share a name, the metric stands.

    Raises:
        UserError: the store can't be read, or has no such experiment, or that has no such run.
    """
    shown, path = redact(uri, uri), urlsplit(uri)
    if path.scheme.startswith("sqlite") and not Path(unquote(path.path.removeprefix("/"))).exists():
        raise UserError(
            f"There is no MLflow database at {shown}; sqlite needs three slashes, four before an absolute path."
        )
    try:
        with tracker_errors(uri, opening=True):
            runs = _logged(MlflowClient(uri), name, shown)
    except TrackerDown as error:
        raise UserError(f"The MLflow store can't be read: {error}.") from error
    if not runs:
        raise UserError(f"The experiment {name!r} of {shown} has no run with parameters and metrics.")
    table = with_numbers(pd.DataFrame([_row(run) for run in runs]))
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


def _row(run: Run) -> dict[str, str | float | None]:
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


def _logged(client: MlflowClient, name: str, shown: str) -> list[Run]:
    experiment = client.get_experiment_by_name(name)
    if experiment is None:
        there = [one.name for one in client.search_experiments(max_results=SHOWN)]
        raise UserError(f"{shown} has no experiment {name!r}; it has {', '.join(there) or 'none'}.")
    runs: list[Run] = []
    token = None
    while True:
        page = client.search_runs(
            [experiment.experiment_id], "", ViewType.ACTIVE_ONLY, max_results=PAGE, page_token=token
        )
        runs += [
            run for run in page if run.data.params and run.data.metrics and SUMMARY_OF not in run.data.tags
        ]
        token = page.token
        if not token:
            return runs
