"""The degree study in the real Snakemake and the real MLflow store, from specs to tables."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from project import Project

pytestmark = pytest.mark.slow

STUDY = "block_degree"
GRID: dict[str, Any] = {
    "target_ranks": [2],
    "degrees": [2, 3],
    "mixtures": [3],
    "mixture_shares": [0.5, 0.9],
    "matrices": 6,
    "width": 8,
    "inputs": 4,
    "batch_size": 32,
    "learning_rates": [0.01, 0.03, 1e30],
    "seeds": 2,
    "steps": 60,
    "evaluate_every": 20,
}
DIGITS = {**GRID, "target": "digits", "degrees": [3], "mixtures": [], "learning_rates": [0.01]}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, with_store: Path) -> Project:
    """After a whole run."""
    sections = {"studies": [STUDY], STUDY: [GRID, DIGITS], "execution": {"packs_per_job": 1}}
    project = Project(tmp_path_factory.mktemp("degree"), with_store, **sections)
    project.snakemake("--quiet", "rules")
    return project


def test_every_run_is_in_mlflow_and_in_the_tables(project: Project) -> None:
    folder = project.folder / "results" / STUDY
    runs = pd.read_parquet(folder / "runs.parquet")
    assert len(runs) == 4 * 3 * 2 + 2
    assert set(runs["status"]) == {"FINISHED"}
    assert set(runs["degrees"]) == {"2.2.2", "3.3"}
    assert runs.loc[runs["target"] == "digits", "accuracy"].between(0.1, 1).all()
    wild = runs["learning_rate"] > 1
    assert runs.loc[~wild & (runs["target"] == "separable"), "loss"].between(0, 2).all()
    # a rate at which training diverges is a finding, not a failure
    assert runs.loc[wild, "loss"].isna().all()
    assert set(runs.loc[wild, "diverged_at_step"]) == {20.0}
    assert runs.loc[~wild, "diverged_at_step"].isna().all()
    mixed = ~wild & (runs["mixture"] == "True")
    assert runs.loc[mixed, "mean_degree"].between(2, 3, inclusive="neither").all()
    fit = json.loads((folder / "fit.json").read_text())
    assert fit["status"] == "converged"
    begins_half_way, later = "mixture of 2 and 3", "mixture of 2 and 3, from 2.9"
    assert {row["network"] for row in fit["differences"]} == {"degree 2", begins_half_way, later}
    assert [row["begins_at"] for row in fit["mixtures"]] == [2.5, 2.9]
    assert len(pd.read_csv(folder / "losses.csv")) == 5
    ranked = pd.read_csv(folder / "rank_losses.csv").set_index("network")
    assert dict(ranked["rank"]) == {"degree 2": 25, "degree 3": 30}  # of 4 inputs and total degrees 8 and 9
    assert (ranked["floor"] == 0).all()  # R is 2
    assert (folder / "rank.svg").stat().st_size > 1000


def test_a_second_call_does_nothing_and_a_further_degree_trains_its_own(project: Project) -> None:
    assert project.planned() == []
    project.configure(**{STUDY: [{**GRID, "degrees": [1, 2, 3]}, DIGITS]})
    planned = project.planned()
    assert planned.count("take_record") == 6
    assert planned.count("train_together") == 1
    project.configure()


def test_mistakes_of_a_grid_are_told_at_once(project: Project) -> None:
    project.configure(**{STUDY: [{**GRID, "degrees": [4], "patterns": [[2, 3]], "inputs": 5}]})
    done = project.snakemake("-n", ok=False)
    project.configure()
    for sentence in (
        "block_degree.1st.patterns has networks of 5 matrices, and block_degree.1st.matrices is 6",
        "block_degree.1st: 6 matrices can't be layers of degree 4 each",
    ):
        assert sentence in done.stderr
