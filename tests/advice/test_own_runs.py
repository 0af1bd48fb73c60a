"""Tables as people have them: which column is what, and what is asked for by name."""

import numpy as np
import pandas as pd
import pytest

from shapelaw.advice.own_runs.columns import find_columns, unit_of_loss
from shapelaw.advice.own_runs.rows import own_runs
from shapelaw.errors import UserError

RUNS = pd.DataFrame(
    {
        "depth": [2, 4, 8, 4, 16],
        "width": [256, 256, 128, 512, 256],
        "seed": [0, 0, 0, 0, 0],
        "test_loss": [3.3, 3.2, 3.4, 3.0, 3.1],
    }
)


def block(table):
    return 12.0 * table["depth"] * table["width"] ** 2


@pytest.mark.parametrize(
    ("depth", "width", "loss"),
    [
        ("n_layer", "d_model", "val_loss"),
        ("layers", "n_embd", "final_loss"),
        ("num_hidden_layers", "hidden_size", "loss"),
        ("config.model.n_layer", "config.model.nEmbd", "val/loss"),
        ("Depth", "Hidden Size", "Validation Loss"),
        ("params.n_layer", "params.d_model", "metrics.eval_loss"),
    ],
)
def test_columns_are_known_by_their_usual_names(depth, width, loss):
    table = RUNS.rename(columns={"depth": depth, "width": width, "test_loss": loss})
    runs = own_runs(table, "runs.csv")
    assert runs.table[["depth", "width", "seed", "loss"]].to_numpy().tolist() == RUNS.to_numpy().tolist()
    assert f"loss is the column {loss!r}" in runs.notes or loss == "loss"


def test_a_training_loss_is_not_taken_for_the_loss():
    table = RUNS.rename(columns={"test_loss": "train/loss"})
    with pytest.raises(UserError, match=r"lacks loss \(loss is usually test_loss, val_loss"):
        own_runs(table, "runs.csv")


def test_what_cannot_be_told_is_asked_for_by_name():
    table = RUNS.rename(columns={"test_loss": "val_loss"})
    table["eval_loss"] = table["val_loss"] + 0.1
    with pytest.raises(UserError) as caught:
        own_runs(table, "runs.csv")
    assert "several columns that could be the loss: val_loss, eval_loss" in str(caught.value)
    assert "--column loss=val_loss" in str(caught.value)
    chosen = own_runs(table, "runs.csv", {"loss": "eval_loss"})
    assert chosen.table["loss"].tolist() == table["eval_loss"].tolist()
    # our own name and equal copies are no question
    ours = {"depth": "depth", "width": "width", "loss": "test_loss", "seed": "seed"}
    assert find_columns(RUNS.assign(val_loss=1.0, n_layer=RUNS["depth"]), "runs.csv", {}) == ours


def test_runs_without_seeds_are_numbered_and_copies_refused():
    table = pd.concat([RUNS, RUNS.assign(test_loss=RUNS["test_loss"] + 0.01)], ignore_index=True)
    runs = own_runs(table.drop(columns="seed"), "runs.csv")
    assert runs.table["seed"].tolist() == [0] * 5 + [1] * 5
    assert any("repeats" in note for note in runs.notes)
    with pytest.raises(UserError, match="row 1, row 6: rows of one shape have the same loss"):
        own_runs(pd.concat([RUNS, RUNS[:1]], ignore_index=True).drop(columns="seed"), "runs.csv")


def test_parameters_of_the_blocks_are_told_from_all_parameters():
    blocks = own_runs(RUNS.assign(params=block(RUNS)), "runs.csv")
    assert blocks.table["block_params"].tolist() == block(RUNS).tolist()
    everything = own_runs(RUNS.assign(n_params=block(RUNS) + 2 * 50257 * RUNS["width"]), "runs.csv")
    assert "total_params" in everything.table
    assert any("grow as 100,514 d" in note for note in everything.notes)
    both = own_runs(RUNS.assign(params=block(RUNS), total_params=2 * block(RUNS)), "runs.csv")
    assert {"block_params", "total_params"} <= set(both.table)


def test_parameters_of_no_rule_are_asked_for():
    table = RUNS.assign(params=[2e6, 4e6, 3e6, 2e7, 9e7])
    with pytest.raises(UserError, match="--column total_params=params or --column block_params=params"):
        own_runs(table, "runs.csv")
    assert "total_params" in own_runs(table, "runs.csv", {"total_params": "params"}).table


@pytest.mark.parametrize(
    "name", ["num_train_tokens", "config.train.max_tokens", "tokens_processed", "n_tokens"]
)
def test_tokens_are_known_by_whatever_name(name):
    assert "tokens" in own_runs(RUNS.assign(**{name: 1e9}), "runs.csv").table


@pytest.mark.parametrize(
    ("column", "words", "left"),
    [
        ("status", ["COMPLETED", "CANCELLED by 1001", "OUT_OF_MEMORY"], 1),
        ("finished", [1, 0, 1], 2),
        ("completed", ["yes", "no", "yes"], 2),
        ("status", ["baseline", "baseline", "baseline"], 3),  # tells no run from another
    ],
)
def test_the_words_of_trackers_and_schedulers_say_which_runs_finished(column, words, left):
    table = RUNS.iloc[:3].assign(**{column: words})
    assert len(own_runs(table, "runs.csv").table) == left


def test_rows_that_cannot_be_used_are_left_out_by_name_and_counted():
    table = RUNS.assign(
        test_loss=[3.3, np.nan, np.inf, 3.0, 3.1], state=["done", "done", "done", "Crashed", np.nan]
    )
    runs = own_runs(table, "runs.csv")
    assert runs.table["loss"].tolist() == [3.3, 3.1]
    assert runs.notes == (
        "1 run that did not finish is left out: row 4",
        "1 run without a loss is left out: row 2",
        "1 run with a loss that is not finite is left out: row 3",
    )
    assert len(own_runs(table, "runs.csv", keep=True).table) == 3
    with pytest.raises(UserError, match="no run that can be used: 5 runs without a loss are left out"):
        own_runs(RUNS.assign(test_loss=np.nan), "the experiment x")


@pytest.mark.parametrize(
    ("name", "unit"),
    [("val/bpb", "bits"), ("bitsPerByte", "bits"), ("test_loss", "nats"), ("rabbits", "nats"), ("", "nats")],
)
def test_the_unit_of_a_loss_is_in_its_name(name: str, unit: str) -> None:
    assert unit_of_loss(name) == unit
