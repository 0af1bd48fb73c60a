"""Runs given on a command line: a file, a folder, an MLflow store; one table for each token budget."""

import argparse

import pandas as pd
import pytest
from loss_surfaces import grid_of, simulate
from mlflow.tracking import MlflowClient

from shapelaw.errors import UserError
from shapelaw.fits.curves import SizeAxis
from shapelaw.studies.given_runs import add_column_options, add_mlflow_option, add_runs_option, given_budgets

RUNS = simulate(grid_of((2, 4, 8), 1e5, 1e7, 4), {2: 60.0, 4: 120.0}, seeds=1)


def given(*words, size=SizeAxis.BLOCK, loss=None):
    parser = argparse.ArgumentParser()
    add_runs_option(parser)
    add_mlflow_option(parser)
    add_column_options(parser)
    return given_budgets(parser.parse_args([str(word) for word in words]), size, least=8, loss=loss)


def test_budgets_of_a_file_with_names_of_its_own(tmp_path):
    two = [RUNS.assign(tokens=tokens, test_loss=RUNS["test_loss"] - tokens / 1e12) for tokens in (1e9, 5e9)]
    table = pd.concat(two).rename(columns={"depth": "blocks?", "width": "d_model", "test_loss": "val_loss"})
    table.to_csv(tmp_path / "runs.csv", sep=";", index=False)
    budgets, notes = given("--runs", tmp_path / "runs.csv", "--column", "depth=blocks?")
    assert [budget.rule for budget in budgets] == ["every run saw 1e+09 tokens", "every run saw 5e+09 tokens"]
    for budget in budgets:
        assert budget.runs[["depth", "width"]].to_numpy().tolist() == (
            RUNS[["depth", "width"]].sort_values(["depth", "width"]).to_numpy().tolist()
        )
    assert any("depth is the column 'blocks?'" in note for note in notes)
    (one,), _ = given("--runs", tmp_path / "runs.csv", "--column", "depth=blocks?", "--tokens", "5e9")
    assert one.tokens == 5e9


def test_runs_of_a_small_budget_are_left_out_and_counted(tmp_path):
    table = pd.concat([RUNS.assign(tokens=1e9), RUNS[:2].assign(tokens=7e9)])
    table.to_csv(tmp_path / "runs.csv", index=False)
    (one,), notes = given("--runs", tmp_path / "runs.csv")
    assert one.tokens == 1e9
    assert notes[-1] == "2 runs are left out: their token budgets have too few shapes."


def test_a_folder_of_exports(tmp_path):
    table = RUNS.rename(columns={"depth": "n_layer", "width": "n_embd", "test_loss": "val/loss"})
    table.assign(State="finished").to_csv(tmp_path / "export.csv", index=False)
    (one,), _ = given("--runs", tmp_path)
    assert len(one.runs) == len(RUNS)


@pytest.mark.slow
def test_an_mlflow_experiment(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    uri = f"sqlite:///{tmp_path}/store.db"
    client = MlflowClient(uri)
    experiment = client.create_experiment("shapes")
    for number, row in enumerate(RUNS.to_dict("records")):
        run = client.create_run(experiment).info.run_id
        client.log_param(run, "n_layer", int(row["depth"]))
        client.log_param(run, "optimizer", "adam")
        client.log_param(run, "d_model", int(row["width"]))
        client.log_metric(run, "val_loss", 9.0, step=0)
        client.log_metric(run, "val_loss", row["test_loss"], step=10)
        client.set_terminated(run, "FINISHED" if number else "FAILED")
    (one,), _ = given("--mlflow", uri, "--experiment", "shapes")
    assert len(one.runs) == len(RUNS) - 1
    assert set(one.runs["loss"]) < set(RUNS["test_loss"])
    with pytest.raises(UserError, match="has no experiment 'shape'; it has shapes, Default"):
        given("--mlflow", uri, "--experiment", "shape")
    with pytest.raises(UserError, match=r"There is no MLflow database at sqlite:///.*absent\.db"):
        given("--mlflow", f"sqlite:///{tmp_path}/absent.db", "--experiment", "shapes")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--runs", "absent.csv"], "There is no file"),
        (["--runs", "absent.csv", "--experiment", "x"], "--experiment needs the store"),
        (["--mlflow", "sqlite:///x.db"], "needs the name of an experiment"),
        (["--runs", "absent.csv", "--tokens", "-1"], "--tokens is -1.0; it is a number above zero"),
    ],
)
def test_wrong_options(words, message):
    with pytest.raises(UserError, match=message):
        given(*words)


def test_wrong_columns_and_sizes(tmp_path):
    RUNS.to_csv(tmp_path / "runs.csv", index=False)
    with pytest.raises(UserError, match="is not of the form ROLE=NAME"):
        given("--runs", tmp_path / "runs.csv", "--column", "depth")
    with pytest.raises(UserError, match="lacks total_params, which networks of equal all parameters"):
        given("--runs", tmp_path / "runs.csv", size=SizeAxis.TOTAL)
