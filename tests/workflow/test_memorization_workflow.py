"""Memorization studies in the real Snakemake: packs, records, MLflow, fits; only what changes is trained again."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from mlflow.tracking import MlflowClient
from project import Project

from shapelaw.storage.pool import read_asked
from shapelaw.tracking.store import default_uri

pytestmark = pytest.mark.slow

STUDIES = ["memorization_heads", "memorization_saturation"]
SIZES: dict[str, Any] = {"context": [4], "head_dim": [8], "examples": [20, 40], "steps": 60}
SECTIONS: dict[str, Any] = {
    "studies": STUDIES,
    "memorization": {"width": 8, "classes": 5, "batch_size": 16, "evaluate_every": 20},
    "memorization_heads": [{**SIZES, "heads": [1, 2, 3], "seeds": 2}],
    "memorization_saturation": [{**SIZES, "heads": [2], "to_the_end": True}],
    "execution": {"models_per_pack": 3, "packs_per_job": 2},
}


class MemorizingProject(Project):
    """A project with two memorization studies of tiny networks."""

    def records(self, study: str) -> dict[str, bytes]:
        """Every summary of the runs that a study ever asked for, by key; with the clock of when it was trained."""
        keys = read_asked(self.folder / "results")[study]
        paths = {key: self.folder / "results/runs" / key / "summary.json" for key in keys}
        return {key: path.read_bytes() for key, path in paths.items() if path.exists()}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, with_store: Path) -> MemorizingProject:
    """After a whole run."""
    project = MemorizingProject(tmp_path_factory.mktemp("memorizing"), with_store, **SECTIONS)
    project.snakemake("--quiet", "rules")
    return project


def test_a_whole_run_ends_in_tables_figures_and_mlflow(project: MemorizingProject) -> None:
    results = project.folder / "results"
    runs = pd.read_parquet(results / "memorization_heads/runs.parquet")
    assert len(runs) == 12
    assert (runs["status"] == "FINISHED").all()
    assert set(runs["key"]) == set(project.records("memorization_heads"))
    assert runs["accuracy"].between(0, 1).all()
    points = pd.read_csv(results / "memorization_heads/points.csv")
    assert len(points) == 6
    assert (points["seeds"] == 2).all()
    assert json.loads((results / "memorization_heads/fit.json").read_text())
    assert (results / "memorization_heads/share.svg").stat().st_size > 1000
    client = MlflowClient(default_uri(results))
    experiment = client.get_experiment_by_name("memorization_heads")
    tracked = client.search_runs([experiment.experiment_id])
    assert len(tracked) == 13  # and the summary
    assert {run.info.status for run in tracked} == {"FINISHED"}
    # no corpus, no tokenizer: these networks need none
    assert not (results / "corpora").exists()


def test_saturation_reads_the_attention_of_the_records(project: MemorizingProject) -> None:
    results = project.folder / "results"
    shares = pd.read_csv(results / "memorization_saturation/saturation.csv")
    assert sorted(shares["examples"]) == [20, 40]
    for run in shares["run"]:
        with np.load(results / "runs" / run / "attention.npz") as kept:
            share = (kept["largest_weight"] > 0.99).mean()
        (row,) = shares[shares["run"] == run].to_dict("records")
        assert row["saturated"] == pytest.approx(share)


def test_a_second_run_does_nothing(project: MemorizingProject) -> None:
    assert project.planned() == []


def test_one_more_number_of_heads_trains_its_runs_alone(project: MemorizingProject) -> None:
    """Also where the packs have another size, and so other members, and where a job does one of them.

    In the end it is trained in a pack with networks of another shape.
    """
    before = project.records("memorization_heads")
    more = [{**SIZES, "heads": [1, 2, 3, 4], "seeds": 2}]
    project.configure(memorization_heads=more)
    assert project.planned().count("train_together") == 1  # its four runs
    project.configure(memorization_heads=more, execution={"models_per_pack": 8, "packs_per_job": 2})
    assert project.planned().count("train_together") == 2  # of packs of 1, 2, 3, 4 heads
    filled_up = {"models_per_pack": 8, "packs_per_job": 1, "padding": 10.0}
    project.configure(memorization_heads=more, execution=filled_up)
    assert project.planned().count("train_together") == 2  # of 1 and 2, and of 3 and 4 heads
    project.snakemake("--until", "take_record", "--quiet", "rules")
    after = project.records("memorization_heads")
    assert len(set(after) - set(before)) == 4
    assert {key: after[key] for key in before} == before
    project.configure()
    project.snakemake("results/memorization_heads/runs.parquet", "--quiet", "rules")
    assert len(pd.read_parquet(project.folder / "results/memorization_heads/runs.parquet")) == 12


def test_a_fit_is_a_target_of_its_own(project: MemorizingProject) -> None:
    (project.folder / "results/memorization_heads/fit.json").unlink()
    project.snakemake("results/memorization_heads/fit.json", "--quiet", "rules")
    assert (project.folder / "results/memorization_heads/fit.json").exists()


def test_a_deleted_record_is_taken_again_from_its_pack(project: MemorizingProject) -> None:
    key = sorted(project.records("memorization_heads"))[0]
    record = project.folder / "results/runs" / key
    before = (record / "summary.json").read_bytes()
    os.remove(record / "summary.json")
    project.snakemake(f"results/runs/{key}/summary.json", "--quiet", "rules")
    assert (record / "summary.json").read_bytes() == before


def test_wrong_sizes_are_told_before_anything_starts(project: MemorizingProject) -> None:
    project.configure(
        memorization_heads=[{"heads": [2], "context": [4], "head_dim": [9], "examples": [20]}],
        memorization_saturation=[],
    )
    said = project.snakemake("-n", ok=False).stderr
    project.configure()
    assert "memorization_heads.1st: " in said
    assert "memorization_saturation is empty" in said
    assert "Traceback" not in said
