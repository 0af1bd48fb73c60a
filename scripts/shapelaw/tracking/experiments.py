"""Any MLflow experiment as one table, a row a run: parameters, last values of metrics, and the run's name."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from mlflow.entities import Run, ViewType
from mlflow.tracking import MlflowClient
from sqlalchemy import make_url

from shapelaw.errors import UserError
from shapelaw.tracking.errors import tracker_errors
from shapelaw.tracking.names import plain_metrics
from shapelaw.tracking.redaction import redact
from shapelaw.tracking.store import KEY, PAGE, SUMMARY_OF
from shapelaw.tracking.waiting import TrackerDown

FINISHED = "FINISHED"
SHOWN = 10  # experiments that a message names


def read_experiment(uri: str, name: str) -> pd.DataFrame:
    """The finished runs of an experiment that have both parameters and metrics; numbers are numbers, the rest text.

    Where a parameter and a metric share a name, the metric stands.

    Raises:
        UserError: the store can't be read, or has no such experiment, or that has no finished run.
    """
    shown = redact(uri, uri)
    if uri.startswith("sqlite") and not Path(make_url(uri).database or "").exists():
        raise UserError(
            f"There is no MLflow database at {shown}; sqlite needs three slashes, four before an absolute path."
        )
    try:
        with tracker_errors(uri, opening=True):
            runs = _finished(MlflowClient(uri), name, shown)
    except TrackerDown as error:
        raise UserError(f"The MLflow store can't be read: {error}.") from error
    rows = [{**run.data.params, **_metrics(run), "Name": run.info.run_name} for run in runs]
    if not rows:
        raise UserError(
            f"The experiment {name!r} of {shown} has no finished run with parameters and metrics."
        )
    table = pd.DataFrame(rows)
    for column in table.columns:
        numbers = pd.to_numeric(table[column], errors="coerce")
        if (numbers.notna() == table[column].notna()).all():
            table[column] = numbers
    return table


def _metrics(run: Run) -> dict[str, float]:
    """The metrics; those of a run that this project imported without their groups."""
    return plain_metrics(run.data.metrics) if KEY in run.data.tags else dict(run.data.metrics)


def _finished(client: MlflowClient, name: str, shown: str) -> list[Run]:
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
            run
            for run in page
            if run.info.status == FINISHED
            and run.data.params
            and run.data.metrics
            and SUMMARY_OF not in run.data.tags
        ]
        token = page.token
        if not token:
            return runs
