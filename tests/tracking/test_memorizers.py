"""Memorizers in MLflow: trained, imported, read back, and fitted."""

import json
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from commands import run_here
from small import SCRIPTS

from shapelaw.specs.memorizers import MemorizationRun, Memorizer
from shapelaw.training.pack_runs import train_packs
from shapelaw.training.trainer import Runtime

STUDY = "memorization_heads"
RUN = MemorizationRun(
    Memorizer(heads=2, context=4, head_dim=8, width=8, value_dim=1, outputs=6),
    "classification",
    "shared",
    examples=120,
    steps=300,
    seed=0,
    batch_size=40,
    learning_rate=1e-2,
    evaluate_every=100,
    keep_attention=True,
)


@pytest.mark.slow
def test_memorizers_go_from_training_through_mlflow_to_the_fit(tmp_path: Path) -> None:
    results = tmp_path / "results"
    runs = []
    for heads in (1, 2, 3, 4):
        same = [replace(RUN, memorizer=replace(RUN.memorizer, heads=heads), seed=seed) for seed in (0, 1)]
        train_packs([same], results / "runs", results / "checkpoints", Runtime("cpu", threads=1))
        runs += same
    out = results / STUDY / "runs.parquet"
    arguments = ("--results", results, "--study", STUDY, "--out", out)
    done = run_here(SCRIPTS / "import_runs.py", *arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    table = {row["key"]: row for row in pq.read_table(out).to_pylist()}
    assert set(table) == {run.key for run in runs}
    for run in runs:
        summary = json.loads((results / "runs" / run.key / "summary.json").read_text())
        row = table[run.key]
        assert (row["heads"], row["examples"], row["seed"]) == (run.memorizer.heads, 120, run.seed)
        assert (row["accuracy"], row["loss"]) == (summary["final_accuracy"], summary["final_loss"])
        assert (row["task"], row["classes"], row["value_dim"], row["width"]) == ("classification", 6, 1, 8)
        assert row["steps_done"] == summary["steps_done"]
    for options in (
        (STUDY, "--input", out),
        ("memorization_saturation", "--attention", results / "runs"),
    ):
        arguments = (*options, "--out", tmp_path / options[0])
        fitted = run_here(SCRIPTS / "analyse.py", *arguments, cwd=tmp_path)
        assert fitted.returncode == 0, fitted.stderr
    shares = (tmp_path / STUDY / "points.csv").read_text().splitlines()
    assert len(shares) == 1 + 4
