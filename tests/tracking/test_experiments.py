"""An MLflow experiment of anyone as a table."""

import math

import pytest
from made_records import make_rows, make_run, write_finished
from mlflow.tracking import MlflowClient
from places import Place

from shapelaw.errors import UserError
from shapelaw.tracking.experiments import read_experiment
from shapelaw.tracking.summary import log_summary


def test_parameters_last_metrics_and_states_of_runs(place: Place) -> None:
    client = MlflowClient(place.uri)
    experiment = client.create_experiment("mine")
    for state in ("FINISHED", "RUNNING", "FAILED"):
        run = client.create_run(experiment, run_name=f"run {state}").info.run_id
        client.log_param(run, "n_layer", "4")
        client.log_param(run, "text", "4a")
        for step, loss in enumerate((4.0, math.nan if state == "FAILED" else 3.5)):
            client.log_metric(run, "val/loss", loss, step=step)
        if state != "RUNNING":
            client.set_terminated(run, state)
    empty = client.create_run(experiment).info.run_id
    client.set_terminated(empty, "FINISHED")
    table = read_experiment(place.uri, "mine")
    assert sorted(table.index) == ["run FAILED", "run FINISHED", "run RUNNING"]
    same = {"n_layer": 4, "text": "4a", "_step": 1}
    for state, loss in (("FINISHED", 3.5), ("RUNNING", 3.5), ("FAILED", math.inf)):
        row = table.loc[f"run {state}"].to_dict()
        assert row == {**same, "val/loss": loss, "Name": f"run {state}", "State": state}


def test_an_experiment_without_runs(place: Place) -> None:
    MlflowClient(place.uri).create_experiment("empty")
    with pytest.raises(UserError, match="has no run with parameters and metrics"):
        read_experiment(place.uri, "empty")


def test_our_own_runs_have_plain_names_and_the_summary_run_is_none_of_them(place: Place) -> None:
    run = make_run()
    write_finished(place.results, run)
    place.import_all()
    fit = place.results / "fit.json"
    fit.write_text('{"line": {"slope": 1.0, "status": "converged"}}')
    log_summary(place.store(), place.study, [], fit)
    (row,) = read_experiment(place.uri, place.study).to_dict("records")
    assert (row["depth"], row["width"], row["bits_per_byte"]) == (2, 16, 1.75)
    assert row["test_loss"] == make_rows(run)[-1][4]
    assert not [name for name in row if "/" in str(name)]
