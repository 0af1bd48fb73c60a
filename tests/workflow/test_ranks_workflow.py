"""The study of separation ranks in the real Snakemake: no corpus, no runs; only new networks are measured."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from mlflow.tracking import MlflowClient
from project import Project

from shapelaw.studies.separation_rank.measurements import KEPT
from shapelaw.tracking.store import default_uri

pytestmark = pytest.mark.slow
GRID: dict[str, Any] = {"depth": [1, 2], "width": [1, 2], "tokens": [2, 4]}
SECTIONS: dict[str, Any] = {
    "studies": ["separation_rank"],
    "separation_rank": [GRID],
    "degree_budget": [{"blocks": "product", "width": [2], "budget": [6]}],
    "fractional_degree": [{"blocks": "attention", "width": [1], "degrees": [2, 3], "budget": [7]}],
}


class RankProject(Project):
    """A project with the study of separation ranks alone."""

    def kept(self) -> list[str]:
        """What was measured, a line a network."""
        return (self.folder / "results/separation_ranks" / KEPT).read_text().splitlines()


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, with_store: Path) -> RankProject:
    """After a whole run."""
    project = RankProject(tmp_path_factory.mktemp("ranks"), with_store, **SECTIONS)
    project.snakemake("--quiet", "rules")
    return project


def test_a_whole_run_ends_in_tables_figures_and_mlflow(project: RankProject) -> None:
    results = project.folder / "results"
    ranks = pd.read_csv(results / "separation_rank/ranks.csv")
    assert len(ranks) == 8
    assert (ranks["status"] == "exact").all()
    assert json.loads((results / "separation_rank/fit.json").read_text())["theorems"]["violated"] == 0
    client = MlflowClient(default_uri(results))
    experiment = client.get_experiment_by_name("separation_rank")
    (logged,) = client.search_runs([experiment.experiment_id])
    assert logged.data.metrics["fit/networks"] == 8 + 6 + 3
    names = {path.name for path in results.glob(f"mlartifacts/**/{logged.info.run_id}/artifacts/**/*")}
    assert {"theorems.html", "degree_budget.html", "fit.json"} <= names
    for figure in ("degree", "rank_depth"):
        assert any(name.startswith(f"figures~{figure}+step+0") for name in names)
    assert not {name for name in names if name.endswith((".csv", ".svg", ".md", ".tex"))}  # the same again
    assert {"tables.md", "tables.tex", "rank_depth.svg", "rank_depth.png"} <= {
        path.name for path in (results / "separation_rank").iterdir()
    }
    assert not (results / "corpora").exists()
    assert not (results / "runs").exists()


def test_a_changed_grid_measures_what_is_new(project: RankProject) -> None:
    assert project.planned() == []
    before = project.kept()
    project.configure(separation_rank=[{**GRID, "width": [1, 2, 3]}])
    planned = project.planned()
    assert sorted(planned) == ["findings", "log_study", "measure_separation_ranks", "separation_rank"]
    project.snakemake("results/separation_rank/ranks.csv", "--quiet", "rules")
    after = project.kept()
    assert len(after) == len(before) + 4
    assert after[: len(before)] == before
    assert len(pd.read_csv(project.folder / "results/separation_rank/ranks.csv")) == 12


def test_the_plan_says_how_long_at_most(project: RankProject) -> None:
    project.configure()
    assert (
        "separation_rank: 17 separation ranks, nothing trained, at most" in project.snakemake("plan").stdout
    )


def test_wrong_sizes_are_told_before_anything_starts(project: RankProject) -> None:
    project.configure(separation_rank=[{**GRID, "heads": [3], "tokens": [3]}], degree_budget=[])
    said = project.snakemake("-n", ok=False).stderr
    project.configure()
    assert "separation_rank.1st: width 2 is not divisible by 3 heads" in said
    assert "separation_rank.1st: tokens is 3; a balanced partition needs an even number" in said
    assert "degree_budget is empty" in said
    assert "Traceback" not in said
