"""The runs of its own table that a study compares, and those that it leaves out by name, such as diverged ones."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import mlflow
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import output_of, script
from loss_surfaces import grid_of, simulate
from memorizer_options import RUN as MEMORIZER
from small import small_run
from trained import CPU, Stores

from shapelaw.errors import UserError
from shapelaw.specs.degrees import DegreeRun, ProductShape
from shapelaw.specs.kinds import DEGREE, LANGUAGE, MEMORIZATION
from shapelaw.specs.making import make_shape
from shapelaw.studies.registry import STUDIES
from shapelaw.studies.study_runs import measured_runs, study_runs
from shapelaw.tracking.entities import table_schema
from shapelaw.training.driver import train_job


def written(path, table):
    table.to_csv(path / "runs.csv", index=False)
    return path / "runs.csv"


def trained(seeds=3):
    """The runs of a study as its runs.parquet has them, two shapes of each depth with several seeds."""
    runs = simulate(grid_of((2, 4, 8), 1e5, 1e7, 5), {2: 60.0, 4: 120.0}, seeds=seeds).round({"test_loss": 5})
    keys = [f"wiki-L{run.depth}-d{run.width}-s{run.seed}" for run in runs.itertuples()]
    return runs.assign(key=keys, status="FINISHED", corpus="wiki")


def test_a_studys_own_runs_that_cannot_be_used_are_left_out_by_name(tmp_path):
    runs = trained()
    runs.loc[3, "test_loss"] = float("nan")
    runs.loc[[6, 10], "status"] = ["RUNNING", "FAILED"]
    runs.loc[13, "test_loss"] = float("inf")
    runs.loc[15, "test_loss"] = 9.87
    runs.to_parquet(tmp_path / "runs.parquet")
    found = study_runs(tmp_path / "runs.parquet")
    keys = runs["key"]
    assert [note.removeprefix(f"Read from {tmp_path}/runs.parquet: ") for note in found.notes] == [
        f"2 runs that did not finish are left out: {keys[6]}, {keys[10]}.",
        f"1 run without a loss is left out: {keys[3]}.",
        f"1 run with a loss that is not finite is left out: {keys[13]}.",
        f"1 run far off every surface through the losses of the other shapes is left out: {keys[15]} "
        "(--keep keeps them).",
    ]
    assert found.table["key"].tolist() == [key for key in keys if key not in set(keys[[3, 6, 10, 13, 15]])]
    kept = study_runs(tmp_path / "runs.parquet", keep=True)
    assert set(keys[[6, 10, 15]]) < set(kept.table["key"])


def test_a_rate_at_which_a_run_diverges_is_held_against_its_own_cell(tmp_path):
    slow = trained().assign(learning_rate=0.001, embedding_rank=None)
    fast = slow.assign(learning_rate=0.004, test_loss=slow["test_loss"] + 1.0)
    both = pd.concat([slow, fast], ignore_index=True).drop(columns="key")
    both.loc[41, "test_loss"] = 9.87
    found = study_runs(written(tmp_path, both))
    assert len(found.notes) == 1
    assert found.notes[0].endswith("is left out: row 42 (--keep keeps them).")
    assert len(study_runs(written(tmp_path, both.drop(index=41))).notes) == 0


def test_two_seeds_far_apart_both_count_and_are_named(tmp_path):
    runs = trained(seeds=2)
    runs.loc[9, "test_loss"] += 0.1  # its twin is run 8
    found = study_runs(written(tmp_path, runs))
    assert len(found.table) == len(runs)
    assert found.notes[0].endswith(f"so both count: {runs['key'][8]}, {runs['key'][9]}.")


def test_the_worse_of_two_seeds_is_left_out_where_it_lies_above_its_neighbours_too(tmp_path):
    runs = trained(seeds=2)
    runs.loc[9, "test_loss"] *= 1.15  # a surface takes that for a misfit
    found = study_runs(written(tmp_path, runs))
    assert found.table["key"].tolist() == runs["key"].drop(index=9).tolist()
    (note,) = found.notes
    assert "the worse of two seeds, more than 6 robust deviations above their neighbours in size too" in note
    assert note.endswith(f"is left out: {runs['key'][9]} (--keep keeps them).")


@pytest.mark.parametrize(
    ("rows", "said"), [([3], "1 of 27 diverged and is"), ([3, 8], "2 of 27 diverged and are")]
)
def test_runs_that_are_told_to_have_diverged_are_counted(tmp_path, rows, said):
    runs = trained()
    runs.loc[rows, "diverged_at_step"] = 7.0
    runs.loc[rows, "test_loss"] = float("nan")
    (note,) = study_runs(written(tmp_path, runs)).notes
    assert note.endswith(f"{said} left out: {', '.join(runs['key'][rows])}.")


def test_runs_that_measure_something_else_need_that(tmp_path):
    runs = pd.DataFrame(
        {"status": "FINISHED", "loss": [0.1, None, None], "diverged_at_step": [None, 30.0, None]}
    )
    found = measured_runs(written(tmp_path, runs), False, ("loss", "diverged_at_step"))
    assert found.table.index.tolist() == [0, 1]
    assert found.notes[0].endswith("1 run without a loss is left out: row 3.")
    with pytest.raises(
        UserError, match=r"has no run that can be used: 1 of 3 diverged .*; 2 runs that did not finish"
    ):
        measured_runs(written(tmp_path, runs.assign(status="RUNNING")), False, ("loss",))


def test_what_is_left_out_of_several_cells_is_said_and_counted_once(tmp_path):
    cell = trained()
    cell.loc[15, "test_loss"] = 9.87
    both = pd.concat([cell.assign(heads=1), cell.assign(heads=2, key=cell["key"] + "-H2")])
    (note,) = study_runs(written(tmp_path, both)).notes
    key = cell["key"][15]
    assert "2 runs far off every surface" in note
    assert note.endswith(f"are left out: {key}, {key}-H2 (--keep keeps them).")


DEGREES = DegreeRun(ProductShape((2, 2, 2), 8, 4, 1), "separable", 1, 50, 0, 32, 1e-2)
ONE_OF = {LANGUAGE.name: small_run(), MEMORIZATION.name: MEMORIZER, DEGREE.name: DEGREES}
STEPS = {"steps": 10, "log_every": 10, "evaluate_every": 10, "warmup_steps": 0}
GRID = [
    replace(small_run(learning_rate=rate, **STEPS), shape=make_shape(depth, width, 2, 257, 32))
    for rate in (5e-3, 1e6)
    for depth in (1, 2)
    for width in (8, 24)
]


def test_a_grid_half_of_whose_runs_diverge_has_its_tables(
    stores: Stores, tmp_path: Path, empty_store: Path
) -> None:
    results = tmp_path / "results"
    train_job([[run] for run in GRID], results, lambda _: stores, CPU)
    shutil.copy(empty_store, results / "mlflow.db")
    given = ("--results", results, "--study", "mine", "--out", tmp_path / "runs.parquet")
    assert script("import_runs", *given).returncode == 0
    runs = pd.read_parquet(tmp_path / "runs.parquet")
    lost = runs["learning_rate"] == 1e6
    assert set(runs["status"]) == {"FINISHED"}
    assert (runs["diverged_at_step"].notna() == lost).all()
    assert (runs["test_loss"].isna() == lost).all()
    client = mlflow.MlflowClient(f"sqlite:///{results / 'mlflow.db'}")
    (experiment,) = client.search_experiments(filter_string="name = 'mine'")
    tagged = client.search_runs([experiment.experiment_id], "tags.diverged = 'true'")
    assert {run.data.tags["key"] for run in tagged} == set(runs["key"][lost])
    axes = ("--axes", "learning_rate", "--draws", 100)
    said = output_of(
        "analyse", "mine", "--input", tmp_path / "runs.parquet", *axes, "--out", tmp_path / "out"
    )
    assert f"4 of 8 diverged and are left out: {sorted(runs['key'][lost])[0]}" in said
    assert len(pd.read_csv(tmp_path / "out" / "losses.csv")) == 4
    assert json.loads((tmp_path / "out" / "fit.json").read_text())["findings"][0] in said


# block_degree searches rates, and counts in its own tables what diverged
@pytest.mark.parametrize(
    "name",
    [name for name, one in STUDIES.items() if one.kind and not one.input and name != "block_degree"],
)
def test_a_study_whose_runs_all_diverged_says_so(name: str, tmp_path: Path) -> None:
    kind = STUDIES[name].kind
    assert kind is not None
    rows = []
    for seed in (0, 1):
        run = replace(ONE_OF[kind.name], seed=seed)
        flat = run.flat()
        told = [one for one in kind.params if flat.get(one.name) is not None]
        params = {one.name: one.kind(flat[one.name]) for one in told}
        rows.append({"key": run.key, "status": "FINISHED", "diverged_at_step": 20.0, **params})
    pq.write_table(pa.Table.from_pylist(rows, schema=table_schema(kind)), tmp_path / "runs.parquet")
    said = output_of("analyse", name, "--input", "runs.parquet", "--out", "out", cwd=tmp_path)
    assert "2 of 2" in said
    assert "diverged" in json.loads((tmp_path / "out" / "fit.json").read_text())["answer"]["sentence"]
    assert all((tmp_path / "out" / f"{table}.csv").exists() for table in STUDIES[name].tables)
    assert all((tmp_path / "out" / f"{figure}.svg").exists() for figure in STUDIES[name].figures)
