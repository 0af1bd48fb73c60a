"""Own runs: which column is what, which rows count, exports of trackers, and one table for each token budget."""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from loss_surfaces import grid_of, simulate
from small import listed

from shapelaw.advice.own_runs.budgets import budgets_of
from shapelaw.advice.own_runs.columns import find_columns, unit_of_loss
from shapelaw.advice.own_runs.exports import read_exports
from shapelaw.advice.own_runs.given import add_run_options, add_runs, given_budgets
from shapelaw.advice.own_runs.rows import own_runs
from shapelaw.errors import UserError
from shapelaw.report.write import Results, Table
from shapelaw.specs.sizes import SizeAxis

FIVE = pd.DataFrame(
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
    table = FIVE.rename(columns={"depth": depth, "width": width, "test_loss": loss})
    runs = own_runs(table, "runs.csv")
    assert runs.table[["depth", "width", "seed", "loss"]].to_numpy().tolist() == FIVE.to_numpy().tolist()
    assert f"loss is the column {loss!r}" in runs.notes or loss == "loss"


def test_a_training_loss_is_not_taken_for_the_loss():
    table = FIVE.rename(columns={"test_loss": "train/loss"})
    with pytest.raises(UserError, match=r"lacks loss \(loss is usually test_loss, val_loss"):
        own_runs(table, "runs.csv")


def test_what_cannot_be_told_is_asked_for_by_name():
    table = FIVE.rename(columns={"test_loss": "val_loss"})
    table["eval_loss"] = table["val_loss"] + 0.1
    with pytest.raises(UserError) as caught:
        own_runs(table, "runs.csv")
    assert "several columns that could be the loss: val_loss, eval_loss" in str(caught.value)
    assert "--column loss=val_loss" in str(caught.value)
    chosen = own_runs(table, "runs.csv", {"loss": "eval_loss"})
    assert chosen.table["loss"].tolist() == table["eval_loss"].tolist()
    # our own name and equal copies are no question
    ours = {"depth": "depth", "width": "width", "loss": "test_loss", "seed": "seed"}
    assert find_columns(FIVE.assign(val_loss=1.0, n_layer=FIVE["depth"]), "runs.csv", {}) == ours


def test_runs_without_seeds_are_numbered_and_copies_refused():
    table = pd.concat([FIVE, FIVE.assign(test_loss=FIVE["test_loss"] + 0.01)], ignore_index=True)
    runs = own_runs(table.drop(columns="seed"), "runs.csv")
    assert runs.table["seed"].tolist() == [0] * 5 + [1] * 5
    assert any("repeats" in note for note in runs.notes)
    with pytest.raises(UserError, match="row 1, row 6: rows of one shape have the same loss"):
        own_runs(pd.concat([FIVE, FIVE[:1]], ignore_index=True).drop(columns="seed"), "runs.csv")


def test_parameters_of_the_blocks_are_told_from_all_parameters():
    blocks = own_runs(FIVE.assign(params=block(FIVE)), "runs.csv")
    assert blocks.table["block_params"].tolist() == block(FIVE).tolist()
    everything = own_runs(FIVE.assign(n_params=block(FIVE) + 2 * 50257 * FIVE["width"]), "runs.csv")
    assert "total_params" in everything.table
    assert any("grow as 100,514 d" in note for note in everything.notes)
    both = own_runs(FIVE.assign(params=block(FIVE), total_params=2 * block(FIVE)), "runs.csv")
    assert {"block_params", "total_params"} <= set(both.table)


def test_parameters_of_no_rule_are_asked_for():
    table = FIVE.assign(params=[2e6, 4e6, 3e6, 2e7, 9e7])
    with pytest.raises(UserError, match="--column total_params=params or --column block_params=params"):
        own_runs(table, "runs.csv")
    assert "total_params" in own_runs(table, "runs.csv", {"total_params": "params"}).table


@pytest.mark.parametrize(
    "name", ["num_train_tokens", "config.train.max_tokens", "tokens_processed", "n_tokens"]
)
def test_tokens_are_known_by_whatever_name(name):
    assert "tokens" in own_runs(FIVE.assign(**{name: 1e9}), "runs.csv").table


@pytest.mark.parametrize(("states", "left"), listed("advice/own_runs.yaml", "states"))
def test_the_words_of_trackers_and_schedulers_say_which_runs_finished(states, left):
    table = FIVE.iloc[:3].assign(**states)
    assert len(own_runs(table, "runs.csv").table) == left


def test_rows_that_cannot_be_used_are_left_out_by_name_and_counted():
    table = FIVE.assign(
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
        own_runs(FIVE.assign(test_loss=np.nan), "the experiment x")


@pytest.mark.parametrize(
    ("name", "unit"),
    [("val/bpb", "bits"), ("bitsPerByte", "bits"), ("test_loss", "nats"), ("rabbits", "nats"), ("", "nats")],
)
def test_the_unit_of_a_loss_is_in_its_name(name: str, unit: str) -> None:
    assert unit_of_loss(name) == unit


EXPORTED = pd.DataFrame(
    {
        "Name": ["a", "b", "c"],
        "State": ["finished", "finished", "crashed"],
        "n_layer": [2, 4, 8],
        "n_embd": [64, 64, 64],
    }
)
CHARTED = pd.DataFrame(
    {
        "Step": [0, 100, 200],
        "a - val/loss": [4.0, 3.5, None],
        "a - val/loss__MIN": [4.0, 3.5, None],
        "a - val/loss__MAX": [4.0, 3.5, None],
        "b - val/loss": [4.0, 3.4, 3.3],
    }
)


def test_tables_are_joined_and_charts_add_their_last_values(tmp_path):
    EXPORTED[:2].to_csv(tmp_path / "1.csv", index=False)
    EXPORTED[2:].to_csv(tmp_path / "2.csv", index=False)
    CHARTED.to_csv(tmp_path / "chart.csv", index=False)
    (tmp_path / "notes.md").write_text("not a table")
    table = read_exports(tmp_path)
    assert table["n_layer"].tolist() == [2, 4, 8]
    assert table["val/loss"].tolist()[:2] == [3.5, 3.3]
    assert table["val/loss (last step)"].tolist()[:2] == [100, 200]
    assert table.index.tolist() == ["a", "b", "c"]
    assert [name for name in table if "MIN" in name] == []


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({}, "has no tables"),
        ({"chart.csv": CHARTED}, "has charts only, which lack the shapes"),
        ({"runs.csv": EXPORTED.assign(Name="other"), "chart.csv": CHARTED}, "none of its runs, such as 'a'"),
        (
            {"runs.csv": EXPORTED.drop(columns="Name"), "chart.csv": CHARTED},
            "no table beside it has the runs' names",
        ),
    ],
)
def test_folders_that_cannot_be_used(tmp_path, files, words):
    for name, table in files.items():
        table.to_csv(tmp_path / name, index=False)
    with pytest.raises(UserError, match=words):
        read_exports(tmp_path)


def test_the_last_point_of_a_curve_is_that_of_its_largest_step(tmp_path):
    EXPORTED.to_csv(tmp_path / "runs.csv", index=False)
    CHARTED.iloc[[1, 2, 0]].to_csv(tmp_path / "chart.csv", index=False)
    early = pd.DataFrame({"Step": [50], "a - val/loss": [3.9], "c - val/loss": [3.8]})
    early.to_csv(tmp_path / "other.csv", index=False)
    table = read_exports(tmp_path)
    assert table["val/loss"].tolist() == [3.5, 3.3, 3.8]
    assert table["val/loss (last step)"].tolist() == [100, 200, 50]
    (tmp_path / "other.csv").unlink()  # a chart over time has no last step
    CHARTED.rename(columns={"Step": "Relative Time (Process)"}).to_csv(tmp_path / "chart.csv", index=False)
    table = read_exports(tmp_path)
    assert table["val/loss"].tolist()[:2] == [3.5, 3.3]
    assert "val/loss (last step)" not in table


FAULTS = Path(__file__).parents[1] / "faults"
RUNS = simulate(grid_of((2, 4, 8), 1e5, 1e7, 4), {2: 60.0, 4: 120.0}, seeds=1)


def given(*words, size=SizeAxis.BLOCK, loss=None):
    parser = argparse.ArgumentParser()
    add_runs(parser)
    add_run_options(parser, "_fit")
    return given_budgets(parser.parse_args([str(word) for word in words]), size, least=8, loss=loss)


def written(path, table):
    table.to_csv(path / "runs.csv", index=False)
    return path / "runs.csv"


def runs_of(one):
    (cell,) = one.cells
    return cell.runs


def read(*words):
    """The runs of the only cell of the only budget, and what is said of them."""
    (one,), notes = given("--runs", *words)
    return runs_of(one), "\n".join(notes)


def refused(*words, **options):
    with pytest.raises(UserError) as error:
        given(*words, **options)
    return str(error.value)


def test_budgets_of_a_file_with_names_of_its_own(tmp_path):
    two = [RUNS.assign(tokens=tokens, test_loss=RUNS["test_loss"] - tokens / 1e12) for tokens in (1e9, 5e9)]
    table = pd.concat(two).rename(columns={"depth": "blocks?", "width": "d_model", "test_loss": "val_loss"})
    path = tmp_path / "runs.csv"
    table.to_csv(path, sep=";", index=False)
    budgets, notes = given("--runs", path, "--column", "depth=blocks?")
    rules = [given.budget.rule for given in budgets]
    assert rules == ["every run saw 1e+09 tokens", "every run saw 5e+09 tokens"]
    shapes = RUNS[["depth", "width"]].sort_values(["depth", "width"]).to_numpy().tolist()
    assert [runs_of(one)[["depth", "width"]].to_numpy().tolist() for one in budgets] == [shapes] * 2
    assert any("depth is the column 'blocks?'" in note for note in notes)
    (one,), _ = given("--runs", path, "--column", "depth=blocks?", "--tokens", "5e9")
    assert one.budget.tokens == 5e9


def test_runs_of_a_small_budget_are_left_out_and_counted(tmp_path):
    table = pd.concat([RUNS.assign(tokens=1e9), RUNS[:2].assign(tokens=7e9)])
    (one,), notes = given("--runs", written(tmp_path, table))
    assert one.budget.tokens == 1e9
    few = "runs of token budgets with fewer than 8 shapes are left out: 2 of 7e+09 tokens."
    assert notes[-1].endswith(few)


def mixed():
    """Networks of two and of four heads, the latter with 0.05 nats more."""
    two = RUNS.assign(n_head=2, head_dim=RUNS["width"] / 2)
    return pd.concat(
        [two, RUNS.assign(n_head=4, head_dim=RUNS["width"] / 4, test_loss=RUNS["test_loss"] + 0.05)]
    )


def test_several_kinds_of_networks_are_cells(tmp_path):
    (one,), _ = given("--runs", written(tmp_path, mixed().drop(columns="seed")))
    assert [(cell.name, len(cell.runs)) for cell in one.cells] == [("H = 2", 12), ("H = 4", 12)]
    assert one.cells[0].rules == ("attention_dim = width / 2",)
    assert one.cells[1].runs["seed"].eq(0).all()  # rows without seeds are numbered in their cell
    path = written(tmp_path, mixed().drop(columns="head_dim"))
    (named,), _ = given("--runs", path, "--column", "kv_heads=n_head")
    assert [cell.name for cell in named.cells] == ["kv_heads = 2", "kv_heads = 4"]


def test_a_cell_of_few_shapes_is_left_out_and_said(tmp_path):
    table = mixed()
    few = table[(table["n_head"] == 2) | (table["width"] > 200)]
    (one,), notes = given("--runs", written(tmp_path, few))
    assert [cell.name for cell in one.cells] == ["H = 2"]
    assert notes[-1].endswith(": left out, since they have fewer than 8 shapes: H = 4.")


def test_results_of_several_cells_are_tables_with_a_further_column_and_figures_of_each(tmp_path):
    (one,), _ = given("--runs", written(tmp_path, mixed()))
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
    (one,), _ = given("--runs", written(tmp_path, pd.concat([table, again])))
    two, four = (one.noise_of(cell.runs) for cell in one.cells)
    assert two == four
    both = pd.concat([table, again.assign(vocab_size=257)])
    (other,), _ = given("--runs", written(tmp_path, both))
    assert {cell.value("vocab_size") for cell in other.cells} == {257, 500}
    assert other.noise_of(other.cells[-1].runs) is None


def many(seeds=3):
    """Runs with seeds, whose losses are rounded to five digits."""
    shapes = grid_of((2, 4, 8), 1e5, 1e7, 5)
    return simulate(shapes, {2: 60.0, 4: 120.0}, seeds=seeds).round({"test_loss": 5})


def test_a_sweep_is_refused_and_its_best_runs_are_those_of_the_best_table():
    sweep = FAULTS / "tables" / "sweep.csv"
    said = refused("--runs", sweep)
    assert "learning_rate (0.001, 0.002, 0.004), which no seed explains" in said
    assert "--best-of learning_rate" in said
    assert "--only learning_rate=" in said
    best, notes = read(sweep, "--best-of", "learning_rate")
    assert best["loss"].tolist() == read(FAULTS / "tables" / "best.csv")[0]["loss"].tolist()
    assert "each shape has its best by mean loss: 20 of 60 rows" in notes
    assert len(read(sweep, "--only", "lr=4e-3")[0]) == 20
    assert "has it; its values are 0.001, 0.002, 0.004" in refused(
        "--runs", sweep, "--only", "learning_rate=1"
    )


@pytest.mark.parametrize(("values_of", "words"), listed("advice/own_runs.yaml", "unexplained"))
def test_whatever_no_seed_explains_is_named_with_the_options_that_settle_it(tmp_path, values_of, words):
    ((column, values),) = values_of.items()
    runs = RUNS.drop(columns="seed")
    both = [
        runs.assign(**{column: value}, test_loss=runs["test_loss"] + 0.01 * at)
        for at, value in enumerate(values)
    ]
    path = written(tmp_path, pd.concat(both))
    with pytest.raises(UserError, match=words):
        given("--runs", path)
    for option in (("--only", f"{column}={values[0]}"), ("--best-of", column)):
        assert read(path, *option)[0]["loss"].tolist() == pytest.approx(sorted_losses(runs))


def test_random_rates_of_no_known_name_are_no_seeds(tmp_path):
    runs = pd.concat([RUNS, RUNS.assign(test_loss=RUNS["test_loss"] + 0.05)], ignore_index=True)
    runs["adam_lr"] = [0.001 * 1.1**number for number in range(len(runs))]
    with pytest.raises(UserError, match=r"several values of adam_lr \(0.001, .*--best-of adam_lr"):
        given("--runs", written(tmp_path, runs.drop(columns="seed")))
    outcomes = runs.drop(columns=["seed", "adam_lr"]).assign(best_step=[100, 200] * 12, epoch=[1, 2] * 12)
    assert len(read(written(tmp_path, outcomes), "--keep")[0]) == len(runs)


def sorted_losses(runs):
    return runs.sort_values(["depth", "width"])["test_loss"].tolist()


def test_what_differs_beside_a_seed_or_from_shape_to_shape_is_no_recipe(tmp_path):
    runs = many().assign(host=lambda table: table["seed"] % 2, lr=lambda table: 0.1 / table["width"])
    assert len(read(written(tmp_path, runs))[0]) == len(runs)


@pytest.mark.parametrize("step", ["_step", "trainer/global_step", "epoch"])
def test_steps_of_one_run_take_the_last(tmp_path, step):
    history = [RUNS.assign(**{step: at, "test_loss": RUNS["test_loss"] + 1 / at}) for at in (100, 200, 400)]
    runs, notes = read(written(tmp_path, pd.concat(history)))
    assert runs["loss"].tolist() == pytest.approx([loss + 1 / 400 for loss in sorted_losses(RUNS)])
    assert "of several steps of a run the last one counts: 12 of 36 rows" in notes


def test_a_history_without_steps_is_not_taken_for_seeds(tmp_path):
    history = [RUNS.drop(columns="seed").assign(test_loss=RUNS["test_loss"] + 1 / at) for at in range(1, 6)]
    with pytest.raises(UserError, match="fall from row to row, as those of the steps of one run do"):
        given("--runs", written(tmp_path, pd.concat(history)))


def test_a_run_that_ends_in_nan_is_not_its_last_finite_step(tmp_path):
    steps = [RUNS.assign(step=at, test_loss=RUNS["test_loss"] + 1 / at) for at in (100, 200, 400)]
    steps[2].loc[3, "test_loss"] = float("nan")
    path = tmp_path / "runs.csv"
    pd.concat(steps).to_csv(path, index=False, na_rep="NaN")
    runs, notes = read(path)
    assert len(runs) == 11
    assert "1 run with a loss that is not finite is left out: line 29" in notes


@pytest.mark.parametrize(
    "text",
    [
        "depth;width;loss;tokens\n{};{};{};8.192.000",
        'depth,width,loss,tokens\n{},{},"{}","8.192.000"',
        "depth\twidth\tloss\ttokens\n{}\t{}\t{}\t8192000",
    ],
)
def test_decimal_commas_and_points_between_thousands(tmp_path, text):
    header, line = text.split("\n")
    rows = zip(RUNS["depth"], RUNS["width"], RUNS["test_loss"], strict=True)
    lines = [line.format(depth, width, f"{loss:.6f}".replace(".", ",")) for depth, width, loss in rows]
    (tmp_path / "runs.txt").write_text("\n".join([header, *lines]))
    (one,), _ = given("--runs", tmp_path / "runs.txt")
    assert one.budget.tokens == 8_192_000
    assert runs_of(one)["loss"].tolist() == pytest.approx(sorted_losses(RUNS), abs=1e-6)


def test_runs_of_an_export_that_end_in_nan_are_left_out_by_name():
    runs, notes = read(FAULTS / "wandb-diverged")
    assert len(runs) == 17
    assert "3 runs with a loss that is not finite are left out: L4-d256, L8-d180, L8-d256" in notes


def curves(folder, ends):
    """A W&B export of RUNS whose curve of each run ends at a step."""
    names = [f"run {number}" for number in range(len(RUNS))]
    table = RUNS.assign(Name=names, State="finished")
    written(folder, table.drop(columns="test_loss"))
    steps = [0, 1000, 2000, 4000]
    chart = {"trainer/global_step": steps}
    for name, loss, end in zip(names, RUNS["test_loss"], ends, strict=True):
        chart[f"{name} - val/loss"] = [loss + 1 / (step + 1) if step <= end else None for step in steps]
    pd.DataFrame(chart).to_csv(folder / "chart.csv", index=False)
    return folder


def test_a_name_beside_an_id_and_several_columns_of_steps_are_no_question(tmp_path):
    curves(tmp_path, [4000] * len(RUNS))
    table = pd.read_csv(tmp_path / "runs.csv")
    ids = [f"1a{number}" for number in range(len(table))]
    written(tmp_path, table.assign(ID=ids, _step=4000, epoch=range(len(table))))
    assert len(read(tmp_path)[0]) == len(RUNS)


def test_one_common_last_step_is_required(tmp_path):
    runs, notes = read(curves(tmp_path, [4000] * 10 + [2000, 1000]))
    assert len(runs) == 10
    assert "2 runs with another last step than 4,000 are left out: run 10, run 11" in notes
    curves(tmp_path, [1000, 2000, 4000] * 4)
    assert "the runs end at different steps (1,000, 2,000, 4,000)" in refused("--runs", tmp_path)
    assert len(read(tmp_path, "--keep")[0]) == 12


def test_steps_may_follow_the_size(tmp_path):
    table = RUNS.assign(step=lambda runs: 20 * 12 * runs["depth"] * runs["width"] ** 2 // 512)
    assert len(read(written(tmp_path, table))[0]) == len(RUNS)


@pytest.mark.parametrize("seeds", [3, 1])
def test_a_run_far_off_its_twins_or_above_its_neighbours_is_left_out_unless_kept(tmp_path, seeds):
    runs = many(seeds)
    at = runs.index[(runs["depth"] == 4)][2 * seeds]  # neither the smallest nor the largest
    runs.loc[at, "test_loss"] = 9.87
    path = written(tmp_path, runs)
    left, notes = read(path)
    assert len(left) == len(runs) - 1
    assert left["loss"].max() < 9
    assert f"left out: line {at + 2} (--keep keeps them)" in notes
    assert "kept" not in notes.replace("--keep keeps", "")
    kept, notes = read(path, "--keep")
    assert kept["loss"].max() == 9.87
    assert f"line {at + 2}" in notes


def test_a_misfit_is_no_divergence(tmp_path):
    runs = many(1)
    at = runs.index[runs["depth"] == 4][2]
    runs.loc[at, "test_loss"] += 0.1
    kept, notes = read(written(tmp_path, runs))
    assert len(kept) == len(runs)
    assert f"off the curve of their depth, and kept: line {at + 2}" in notes
    for rows in (many(1), many(3)):
        _, notes = read(written(tmp_path, rows))
        assert "left out" not in notes
        assert "kept" not in notes


def test_seeds_of_64_bits_are_told_apart(tmp_path):
    runs = many(2).assign(seed=lambda table: [2**63 + int(seed) for seed in table["seed"]])
    assert len(read(written(tmp_path, runs))[0]) == len(runs)
    runs.to_json(tmp_path / "runs.jsonl", orient="records", lines=True)
    assert len(read(tmp_path / "runs.jsonl")[0]) == len(runs)


def test_repeats_whose_tokens_nearly_agree_are_one_budget():
    runs, _ = read(FAULTS / "tables" / "tokens_nearly.csv")
    assert runs["seed"].value_counts().to_dict() == {0: 20, 1: 20}


def test_thousands_separators_are_read():
    assert read(FAULTS / "tables" / "thousands.tsv")[0]["block_params"].tolist()[:2] == [49152, 110592]


def test_letters_are_not_guessed():
    words = ("--runs", FAULTS / "tables" / "tokens_as_D.csv", "--column", "depth=numl")
    said = refused(*words)
    assert "lacks width" in said
    (one,), _ = given(*words, "--column", "width=h", "--column", "tokens=D")
    assert one.budget.rule.startswith("tokens grow with the size, 20")


def test_all_unusable_rows_are_named_at_once(tmp_path):
    table = RUNS.astype({"width": object, "depth": object})
    table.loc[[0, 4, 5], "width"] = ["wide", -64, 64.5]
    table.loc[7, "depth"] = 0
    said = refused("--runs", written(tmp_path, table))
    told = ("9: depth must be above zero", "2: width must be a finite", "6: width must be above")
    for words in (*told, "7: width must be a whole number"):
        assert f"line {words}" in said


SHAPES = pd.DataFrame({"depth": range(1, 11), "width": 64.0, "seed": 0, "loss": 3.0})


def at(*tokens):
    return pd.concat([SHAPES.assign(tokens=value) for value in tokens], ignore_index=True)


def parts_of(table, **options):
    """Its budgets of eight shapes and more."""
    return budgets_of(table, "runs.csv", least=8, **options)


def test_no_tokens_and_one_budget():
    (unknown,) = parts_of(SHAPES)
    assert "names no tokens" in unknown.rule
    (one,) = parts_of(at(1e9).assign(tokens=1e9 + np.arange(10) * 1e6))
    assert one.rule == "every run saw 1e+09 tokens"


def test_several_budgets_are_several_tables():
    """Also those of checkpoints every 10B tokens: neighbours late in training differ by less than 5%."""
    parts = parts_of(at(1e9, 4e9))
    assert [part.tokens for part in parts] == [1e9, 4e9]
    assert [len(part.runs) for part in parts] == [10, 10]
    assert [part.folder for part in parts] == ["tokens-1e09", "tokens-4e09"]
    (chosen,) = parts_of(at(1e9, 4e9), only=4.1e9)
    assert chosen.tokens == 4e9
    assert len(parts_of(at(*np.arange(1, 36) * 1e10))) == 35
    few = pd.concat([at(1e9), SHAPES[:3].assign(tokens=5e9)])
    assert [part.tokens for part in parts_of(few)] == [1e9]


def test_tokens_of_nominal_sizes_are_a_ladder():
    """Three numbers of tokens at 20 a parameter, but for 12% of rounding, and the same at twice as many tokens."""
    nominal = np.repeat([1e8, 2e8, 4e8], [4, 3, 3])
    sizes = nominal * np.linspace(0.94, 1.06, 10)
    table = SHAPES.assign(total_params=sizes, tokens=20 * nominal)
    with pytest.raises(UserError, match="mixed token budgets: 3 of them"):
        parts_of(table)
    both = pd.concat([table, table.assign(tokens=40 * nominal)], ignore_index=True)
    parts = parts_of(both, ladders=True)
    assert [part.folder for part in parts] == ["tokens-20-per-parameter", "tokens-40-per-parameter"]
    assert [len(part.runs) for part in parts] == [10, 10]
    assert "each of 3 numbers of tokens has a level of its own" in parts[0].rule
    blocks = parts_of(both.rename(columns={"total_params": "block_params"}), ladders=True)
    assert [part.ratio for part in blocks] == [part.ratio for part in parts]
    odd = both.assign(
        total_params=both["total_params"] * np.geomspace(1, 9, 20), block_params=both["total_params"]
    )
    assert [len(part.runs) for part in parts_of(odd, ladders=True)] == [10, 10]


def test_ladders_leave_a_budget_that_has_enough_shapes():
    nominal = np.repeat([1e8, 2e8, 4e8], [4, 3, 3])
    steps = [SHAPES.assign(total_params=nominal, tokens=ratio * nominal) for ratio in (20, 40)]
    one = at(5e11).assign(total_params=2e6 * SHAPES["depth"])
    parts = parts_of(pd.concat([*steps, one], ignore_index=True), ladders=True)
    assert [len(part.runs) for part in parts] == [10, 10, 10]
    assert parts[-1].tokens == 5e11


def test_runs_that_equal_tokens_compare_are_no_ladder():
    """A budget of many shapes beside another of few, as sizes do not follow tokens there."""
    table = pd.concat([at(1e9), SHAPES[:3].assign(tokens=5e9)]).assign(total_params=1e7)
    assert [part.tokens for part in parts_of(table, ladders=True)] == [1e9]


def test_tokens_that_grow_with_the_size_are_one_budget():
    table = SHAPES.assign(total_params=1e6 * SHAPES["depth"], tokens=2e7 * SHAPES["depth"])
    (part,) = parts_of(table)
    assert part.rule == "tokens grow with the size, 20 for each parameter"
    assert np.isnan(part.tokens)


def test_mixed_budgets_and_wrong_choices():
    mixed = SHAPES.assign(tokens=np.geomspace(1e9, 1e11, 10)[np.random.default_rng(0).permutation(10)])
    with pytest.raises(
        UserError, match=r"mixed token budgets: 10 of them, 1e\+09 to 1e\+11 tokens, with 1 shapes"
    ):
        parts_of(mixed)
    with pytest.raises(UserError, match=r"no run of 2e\+09 tokens; it has 1e\+09, 4e\+09"):
        parts_of(at(1e9, 4e9), only=2e9)
    with pytest.raises(UserError, match="no column of tokens"):
        parts_of(SHAPES, only=2e9)
