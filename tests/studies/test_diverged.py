"""Runs that diverged are finished: tables count them and leave them out, and no study fails for them."""

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
from memorizer_options import RUN as MEMORIZER
from small import small_run
from trained import CPU, Stores

from shapelaw.specs.degrees import DegreeRun, ProductShape
from shapelaw.specs.kinds import DEGREE, LANGUAGE, MEMORIZATION
from shapelaw.specs.making import make_shape
from shapelaw.studies.registry import STUDIES
from shapelaw.tracking.entities import table_schema
from shapelaw.training.driver import train_job

DEGREES = DegreeRun(ProductShape((2, 2, 2), 8, 4, 1), "separable", 1, 50, 0, 32, 1e-2)
ONE_OF = {LANGUAGE.name: small_run(), MEMORIZATION.name: MEMORIZER, DEGREE.name: DEGREES}
STEPS = {"steps": 10, "log_every": 10, "evaluate_every": 10, "warmup_steps": 0}
GRID = [
    replace(small_run(learning_rate=rate, **STEPS), shape=make_shape(depth, width, 2, 257, 32))
    for rate in (5e-3, 1e6)
    for depth in (1, 2)
    for width in (8, 12, 16, 24)
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
    assert f"8 of 16 diverged and are left out: {sorted(runs['key'][lost])[0]}" in said
    assert len(pd.read_csv(tmp_path / "out" / "losses.csv")) == 8
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
