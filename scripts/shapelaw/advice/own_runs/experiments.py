"""The runs of an experiment in MLflow, of whoever logged them, as one table. Nothing is written to the store."""

from __future__ import annotations

import math

import pandas as pd
from mlflow.entities import Run
from mlflow.tracking import MlflowClient

from shapelaw.advice.own_runs.exports import told_apart
from shapelaw.errors import UserError
from shapelaw.fits.inputs import EXACT, with_numbers
from shapelaw.tracking.command import TrackerDown, redact
from shapelaw.tracking.entities import FULL, KEY, RANKS, Value, finite
from shapelaw.tracking.store import file_of, has_schema, search_runs, tracker_errors
from shapelaw.tracking.summary import SUMMARY_OF

SHOWN = 10  # experiments that a message names


def read_experiment(uri: str, name: str) -> pd.DataFrame:
    """The runs of an experiment that have both parameters and metrics; numbers are numbers, the rest text.

    Runs are named by the index, `State` is the status of each, and `_step` the last step at which it logged a metric.
    A metric that is not finite is infinite. Where a parameter and a metric share a name, the metric stands, but for
    runs that this project imported: their metric is the last point of a curve, such as that of the learning rate.

    Raises:
        UserError: the store can't be read, or has another schema, or no such experiment, or that has no such run.
    """
    shown = redact(uri, uri)
    try:
        with tracker_errors(uri):
            file = file_of(uri)
            if (file is not None and not file.exists()) or not has_schema(uri):
                raise UserError(f"There are no tables of MLflow's at {shown}; correct the URI.")
            client = MlflowClient(uri)
            experiment = client.get_experiment_by_name(name)
            if experiment is None:
                there = [one.name for one in client.search_experiments(max_results=SHOWN)]
                raise UserError(f"{shown} has no experiment {name!r}; it has {', '.join(there) or 'none'}.")
            runs = [
                run
                for run in search_runs(client, experiment.experiment_id)
                if run.data.params and run.data.metrics and SUMMARY_OF not in run.data.tags
            ]
    except TrackerDown as error:
        raise UserError(f"The MLflow store can't be read: {error}.") from error
    if not runs:
        raise UserError(f"The experiment {name!r} of {shown} has no run with parameters and metrics.")
    table = with_numbers(pd.DataFrame([_row(run) for run in runs]))
    table.index = told_apart([run.info.run_name for run in runs], [run.info.run_id for run in runs])
    for column in table.columns:
        numbers = pd.to_numeric(table[column], errors="coerce")
        if (numbers.notna() == table[column].notna()).all() and not (numbers.abs() >= EXACT).any():
            table[column] = numbers
    return table


def _row(run: Run) -> dict[str, Value]:
    """A run's parameters, metrics, state and step."""
    logged, ours = run.data.metrics, KEY in run.data.tags
    metrics = {name: math.inf if finite(value) is None else value for name, value in logged.items()}
    params = {name: value for name, value in run.data.params.items() if not (name in RANKS and value == FULL)}
    step = max(metric.step for metric in run.data.to_proto().metrics)
    both = metrics | params if ours else params | metrics
    return {**both, "Name": run.info.run_name, "State": run.info.status, "_step": step or None}
