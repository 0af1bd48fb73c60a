"""What is made beside the studies, in the real Snakemake: in every run by the config, or alone."""

import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from project import Project
from small import REPOSITORY

pytestmark = pytest.mark.slow

SECTIONS: dict[str, Any] = {
    "studies": ["memorization_heads"],
    "extras": ["assumptions", "relu", "committed_runs"],
    "assumptions": {
        "models": ["decoder"],
        "source": "folder:texts",
        "examples": 256,
        "trials": 50,
        "sensitivity_trials": 10,
        "curve_trials": 3,
    },
    "execution": {"packs_per_job": 8},
    "memorization": {"width": 8, "classes": 5, "batch_size": 16, "evaluate_every": 20},
    "memorization_heads": [
        {"heads": [2, 3], "context": [4], "head_dim": [8], "examples": [20], "steps": 40, "seeds": 2}
    ],
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, with_store: Path) -> Project:
    """After a whole run."""
    project = Project(tmp_path_factory.mktemp("extras"), with_store, **SECTIONS)
    committed = "docs/results/h200_llama.csv"
    (project.folder / committed).parent.mkdir(parents=True)
    shutil.copy(REPOSITORY / committed, project.folder / committed)
    project.snakemake("--quiet", "rules")
    return project


def test_the_assumptions_are_tables_and_a_figure(project: Project) -> None:
    folder = project.folder / "results/assumptions"
    verdicts = pd.read_csv(folder / "verdicts.csv")
    assert set(verdicts["layer"]) == {"layer 0", "layer 1"}
    assert set(verdicts["ours"]) <= {"holds", "fails"}
    assert len(pd.read_csv(folder / "layers.csv")) == 2
    assert (folder / "pass_rate.svg").stat().st_size > 1000


def test_every_attention_network_has_a_relu_network_beside_it(project: Project) -> None:
    results = project.folder / "results"
    table = pd.read_csv(results / "relu/relu.csv")
    runs = pd.read_parquet(results / "memorization_heads/runs.parquet")
    both = table.merge(runs, on=["heads", "examples", "seed"])
    assert len(both) == len(runs) == 4
    assert (both["attention"] - both["accuracy"]).abs().max() < 1e-9
    assert (table["relu_params"] <= table["attention_params"]).all()


def test_the_committed_runs_are_analysed(project: Project) -> None:
    table = pd.read_csv(project.folder / "results/committed_runs/transitions.csv")
    row = table[(table["depth"] == 1) & (table["method"] == "bootstrap")].iloc[0]
    assert row["status"] == "crossing"
    assert row["width"] == pytest.approx(29, abs=1)
    assert (project.folder / "results/committed_runs/loss_adjacent.svg").stat().st_size > 1000


def test_they_are_made_once_and_again_where_the_config_asks_for_others(project: Project) -> None:
    assert project.planned() == []
    project.configure(assumptions={**SECTIONS["assumptions"], "trials": 60})
    assert set(project.planned()) == {"assumptions", "findings", "measure_assumptions"}
    grid = {**SECTIONS["memorization_heads"][0], "seeds": 1}
    project.configure(memorization_heads=[grid], extras=["relu"])
    assert "relu" in project.planned()
    kept = {path: path.stat().st_mtime_ns for path in project.folder.glob("results/checkpoints/*/relu.json")}
    assert len(kept) == 4
    project.snakemake("relu", "--quiet", "rules")  # by its name
    assert len(pd.read_csv(project.folder / "results/relu/relu.csv")) == 2
    assert {path: path.stat().st_mtime_ns for path in kept} == kept  # nothing was trained again
    project.configure()


def test_without_extras_they_are_targets_all_the_same(project: Project) -> None:
    project.configure(extras=[])
    for target in ("results/assumptions/layers.csv", "results/relu/relu.csv"):
        (project.folder / target).unlink()
    assert not {"assumptions", "relu"} & set(project.planned())
    assert {"assumptions", "relu"} <= set(project.planned("results/assumptions/layers.csv", "relu"))
    project.configure()
