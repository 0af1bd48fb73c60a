"""Runs given on a command line: a file, a folder, an MLflow store; one table for each token budget."""

import argparse

import pandas as pd
import pytest
from loss_surfaces import grid_of, simulate
from mlflow.tracking import MlflowClient

from shapelaw.errors import UserError
from shapelaw.fits.curves import SizeAxis
from shapelaw.report.write import Results, Table
from shapelaw.studies.given_runs import add_column_options, add_mlflow_option, add_runs_option, given_budgets

RUNS = simulate(grid_of((2, 4, 8), 1e5, 1e7, 4), {2: 60.0, 4: 120.0}, seeds=1)


def given(*words, size=SizeAxis.BLOCK, loss=None):
    parser = argparse.ArgumentParser()
    add_runs_option(parser)
    add_mlflow_option(parser)
    add_column_options(parser)
    return given_budgets(parser.parse_args([str(word) for word in words]), size, least=8, loss=loss)


def runs_of(one):
    (cell,) = one.cells
    return cell.runs


def test_budgets_of_a_file_with_names_of_its_own(tmp_path):
    two = [RUNS.assign(tokens=tokens, test_loss=RUNS["test_loss"] - tokens / 1e12) for tokens in (1e9, 5e9)]
    table = pd.concat(two).rename(columns={"depth": "blocks?", "width": "d_model", "test_loss": "val_loss"})
    table.to_csv(tmp_path / "runs.csv", sep=";", index=False)
    budgets, notes = given("--runs", tmp_path / "runs.csv", "--column", "depth=blocks?")
    assert [given.budget.rule for given in budgets] == [
        "every run saw 1e+09 tokens",
        "every run saw 5e+09 tokens",
    ]
    for one in budgets:
        assert runs_of(one)[["depth", "width"]].to_numpy().tolist() == (
            RUNS[["depth", "width"]].sort_values(["depth", "width"]).to_numpy().tolist()
        )
    assert any("depth is the column 'blocks?'" in note for note in notes)
    (one,), _ = given("--runs", tmp_path / "runs.csv", "--column", "depth=blocks?", "--tokens", "5e9")
    assert one.budget.tokens == 5e9


def test_runs_of_a_small_budget_are_left_out_and_counted(tmp_path):
    table = pd.concat([RUNS.assign(tokens=1e9), RUNS[:2].assign(tokens=7e9)])
    table.to_csv(tmp_path / "runs.csv", index=False)
    (one,), notes = given("--runs", tmp_path / "runs.csv")
    assert one.budget.tokens == 1e9
    assert notes[-1] == "2 runs are left out: their token budgets have too few shapes."


def test_a_folder_of_exports(tmp_path):
    table = RUNS.rename(columns={"depth": "n_layer", "width": "n_embd", "test_loss": "val/loss"})
    table.assign(State="finished").to_csv(tmp_path / "export.csv", index=False)
    (one,), _ = given("--runs", tmp_path)
    assert len(runs_of(one)) == len(RUNS)


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
    assert len(runs_of(one)) == len(RUNS) - 1
    assert set(runs_of(one)["loss"]) < set(RUNS["test_loss"])
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


def mixed():
    """Networks of two and of four heads, the latter with 0.05 nats more."""
    two = RUNS.assign(n_head=2, head_dim=RUNS["width"] / 2)
    return pd.concat(
        [two, RUNS.assign(n_head=4, head_dim=RUNS["width"] / 4, test_loss=RUNS["test_loss"] + 0.05)]
    )


def test_several_kinds_of_networks_are_cells(tmp_path):
    mixed().drop(columns="seed").to_csv(tmp_path / "runs.csv", index=False)
    (one,), _ = given("--runs", tmp_path / "runs.csv")
    assert [(cell.name, len(cell.runs)) for cell in one.cells] == [("H = 2", 12), ("H = 4", 12)]
    assert one.cells[0].rules == ("attention_dim = width / 2",)
    assert one.cells[1].runs["seed"].eq(0).all()  # rows without seeds are numbered in their cell
    mixed().drop(columns="head_dim").to_csv(tmp_path / "runs.csv", index=False)
    (named,), _ = given("--runs", tmp_path / "runs.csv", "--column", "kv_heads=n_head")
    assert [cell.name for cell in named.cells] == ["kv_heads = 2", "kv_heads = 4"]


def test_a_cell_of_few_shapes_is_left_out_and_said(tmp_path):
    table = mixed()
    table[(table["n_head"] == 2) | (table["width"] > 200)].to_csv(tmp_path / "runs.csv", index=False)
    (one,), notes = given("--runs", tmp_path / "runs.csv")
    assert [cell.name for cell in one.cells] == ["H = 2"]
    assert notes[-1] == "Left out, since they have fewer than 8 shapes: H = 4."


def test_several_rates_at_one_shape_are_refused_unless_the_best_is_asked_for(tmp_path):
    rates = [RUNS.assign(lr=rate, test_loss=RUNS["test_loss"] + rate) for rate in (0.002, 0.001)]
    pd.concat(rates).to_csv(tmp_path / "runs.csv", index=False)
    with pytest.raises(
        UserError, match=r"several values of learning_rate \(0.001, 0.002\).*--best-of learning_rate"
    ):
        given("--runs", tmp_path / "runs.csv")
    (one,), notes = given("--runs", tmp_path / "runs.csv", "--best-of", "learning_rate")
    assert len(runs_of(one)) == len(RUNS)
    assert any("each shape has its best by mean loss: 12 of 24 rows" in note for note in notes)


def test_results_of_several_cells_are_tables_with_a_further_column_and_figures_of_each(tmp_path):
    mixed().to_csv(tmp_path / "runs.csv", index=False)
    (one,), _ = given("--runs", tmp_path / "runs.csv")
    found = one.results(
        lambda budget: Results(
            {"losses": Table(budget.runs[["depth", "loss"]], "Losses.", {"loss": ".2f"})},
            {"best": "none"},
            {"status": "converged"},
            f"{len(budget.runs)} runs.",
            {"table other": "none"},
        )
    )
    assert found.tables["losses"].frame.columns.tolist() == ["heads", "depth", "loss"]
    assert found.tables["losses"].frame["heads"].tolist() == [2] * 12 + [4] * 12
    assert list(found.figures) == ["best-heads-2", "best-heads-4"]
    assert list(found.left_out) == ["table other of H = 2", "table other of H = 4"]
    assert found.fit["cells"][1]["cell"] == {"heads": 4}
    assert found.summary.startswith("2 kinds of networks, which differ in heads")
    assert "H = 4 (attention_dim = width / 4):" in found.summary


def test_a_cell_without_repeats_takes_the_noise_of_all_cells_of_its_text(tmp_path):
    table = mixed().assign(vocab_size=500)
    again = table[table["n_head"] == 2].assign(seed=1, test_loss=lambda runs: runs["test_loss"] * 1.01)
    pd.concat([table, again]).to_csv(tmp_path / "runs.csv", index=False)
    (one,), _ = given("--runs", tmp_path / "runs.csv")
    two, four = (one.noise_of(cell.runs) for cell in one.cells)
    assert two == four
    pd.concat([table, again.assign(vocab_size=257)]).to_csv(tmp_path / "runs.csv", index=False)
    (other,), _ = given("--runs", tmp_path / "runs.csv")
    assert {cell.value("vocab_size") for cell in other.cells} == {257, 500}
    assert other.noise_of(other.cells[-1].runs) is None
