"""An MLflow experiment of anyone as a table."""

import pytest
from mlflow.tracking import MlflowClient
from places import Place

from shapelaw.errors import UserError
from shapelaw.tracking.experiments import read_experiment


def test_parameters_and_last_metrics_of_finished_runs(place: Place) -> None:
    client = MlflowClient(place.uri)
    experiment = client.create_experiment("mine")
    for state in ("FINISHED", "RUNNING", "FAILED"):
        run = client.create_run(experiment, run_name=f"run {state}").info.run_id
        client.log_param(run, "n_layer", "4")
        client.log_param(run, "text", "4a")
        for step, loss in enumerate((4.0, 3.5)):
            client.log_metric(run, "val/loss", loss, step=step)
        if state != "RUNNING":
            client.set_terminated(run, state)
    empty = client.create_run(experiment).info.run_id
    client.set_terminated(empty, "FINISHED")
    table = read_experiment(place.uri, "mine")
    assert table.to_dict("records") == [{"n_layer": 4, "text": "4a", "val/loss": 3.5, "Name": "run FINISHED"}]


def test_an_experiment_without_runs(place: Place) -> None:
    with pytest.raises(UserError, match="has no finished run"):
        read_experiment(place.uri, "Default")
