"""Every kind of study beside depth and width in one run of the real Snakemake, from its section to its tables."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from mlflow.tracking import MlflowClient
from project import Project
from small import REPOSITORY

from shapelaw.storage.pool import read_asked
from shapelaw.studies.registry import STUDIES
from shapelaw.studies.separation_rank.tables import KEPT
from shapelaw.tracking.command import default_uri

pytestmark = pytest.mark.slow

SECTIONS: dict[str, Any] = yaml.safe_load(
    Path(__file__).with_name("studies.yaml").read_text(encoding="utf-8")
)
(HEADS,), (RANKS,) = SECTIONS["memorization_heads"], SECTIONS["separation_rank"]
COMMITTED = "docs/results/h200_llama.csv"
RECORDS = "results/memorization_heads/runs.parquet"


class StudiesProject(Project):
    """A project with all these studies."""

    def table(self, name: str) -> pd.DataFrame:
        """A table of the results."""
        path = self.folder / "results" / name
        return pd.read_csv(path) if path.suffix == ".csv" else pd.read_parquet(path)

    def fit(self, study: str) -> Any:
        return json.loads((self.folder / "results" / study / "fit.json").read_text())

    def records(self) -> dict[str, bytes]:
        """Every summary that memorization_heads ever asked for, by key; with the clock of when it was trained."""
        keys = read_asked(self.folder / "results")["memorization_heads"]
        paths = {key: self.folder / "results/runs" / key / "summary.json" for key in keys}
        return {key: path.read_bytes() for key, path in paths.items() if path.exists()}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, with_corpus: Path) -> StudiesProject:
    """After a whole run."""
    project = StudiesProject(tmp_path_factory.mktemp("studies"), with_corpus, **SECTIONS)
    committed = pd.read_csv(REPOSITORY / COMMITTED)
    (project.folder / COMMITTED).parent.mkdir(parents=True)
    committed[committed["depth"] <= 2].to_csv(project.folder / COMMITTED, index=False)
    project.snakemake("--quiet", "rules")
    return project


def test_a_second_call_does_nothing(project: StudiesProject) -> None:
    assert project.planned() == []


def test_every_study_has_its_runs_its_tables_and_its_figures(project: StudiesProject) -> None:
    trained = {"attention_degree": 6, "todays_decoder": 16, "looped": 8, "block_degree": 18}
    trained |= {"memorization_heads": 12, "memorization_saturation": 2}
    for name, number in trained.items():
        runs = project.table(f"{name}/runs.parquet")
        assert len(runs) == number
        assert set(runs["status"]) == {"FINISHED"}
    for name in (*SECTIONS["studies"], *SECTIONS["extras"]):
        folder = project.folder / "results" / name
        study = STUDIES.get(name)
        wanted = ("effects", "losses") if study is None else study.tables
        assert {f"{table}.csv" for table in wanted} <= {path.name for path in folder.iterdir()}
        assert project.fit(name)
        for figure in () if study is None else study.figures:
            assert (folder / f"{figure}.svg").is_file()


def test_what_decoders_differ_in_reaches_their_table(project: StudiesProject) -> None:
    degrees = project.table("attention_degree/runs.parquet")["attention_degree"]
    assert sorted(degrees.fillna(0)) == [0, 0, 2, 2, 3, 3]
    assert set(project.table("todays_decoder/runs.parquet")["block"].dropna()) == {"llama"}
    runs = project.table("looped/runs.parquet").fillna({"loops": 1})
    assert set(runs["optimizer"]) == {"muon"}
    once, twice = (runs[runs["loops"] == loops].sort_values(["width", "seed"]) for loops in (1, 2))
    assert list(once["total_params"]) == list(twice["total_params"])
    assert (once["step_flops"].to_numpy() < twice["step_flops"].to_numpy()).all()


def test_product_networks_that_diverge_are_a_finding_and_mixtures_have_their_degree(
    project: StudiesProject,
) -> None:
    runs = project.table("block_degree/runs.parquet")
    assert set(runs["degrees"]) == {"2.2.2", "3.3"}
    assert runs.loc[runs["target"] == "digits", "accuracy"].between(0.1, 1).all()
    wild = runs["learning_rate"] > 1
    assert runs.loc[~wild & (runs["target"] == "separable"), "loss"].between(0, 2).all()
    assert runs.loc[wild, "loss"].isna().all()
    assert set(runs.loc[wild, "diverged_at_step"]) == {20.0}
    assert runs.loc[~wild, "diverged_at_step"].isna().all()
    mixed = ~wild & (runs["mixture"] == "True")
    assert runs.loc[mixed, "mean_degree"].between(2, 3, inclusive="neither").all()
    fit = project.fit("block_degree")
    assert fit["status"] == "converged"
    begins_half_way, later = "mixture of 2 and 3", "mixture of 2 and 3, from 2.9"
    assert {row["network"] for row in fit["differences"]} == {"degree 2", begins_half_way, later}
    assert [row["begins_at"] for row in fit["mixtures"]] == [2.5, 2.9]
    ranked = project.table("block_degree/rank_losses.csv").set_index("network")
    assert dict(ranked["rank"]) == {"degree 2": 25, "degree 3": 30}  # of 4 inputs and total degrees 8 and 9
    assert (ranked["floor"] == 0).all()  # R is 2


def test_memorizers_are_in_tables_and_mlflow(project: StudiesProject) -> None:
    runs = project.table(RECORDS.removeprefix("results/"))
    assert set(runs["key"]) == set(project.records())
    assert runs["accuracy"].between(0, 1).all()
    points = project.table("memorization_heads/points.csv")
    assert list(points["seeds"]) == [2] * 6
    assert project.fit("memorization_heads")
    client = MlflowClient(default_uri(project.folder / "results"))
    experiment = client.get_experiment_by_name("memorization_heads")
    tracked = client.search_runs([experiment.experiment_id])
    assert len(tracked) == 13  # and the summary
    assert {run.info.status for run in tracked} == {"FINISHED"}


def test_saturation_reads_the_attention_of_the_records(project: StudiesProject) -> None:
    shares = project.table("memorization_saturation/saturation.csv")
    assert sorted(shares["examples"]) == [20, 40]
    for row in shares.to_dict("records"):
        with np.load(project.folder / "results/runs" / row["run"] / "attention.npz") as kept:
            share = (kept["largest_weight"] > 0.99).mean()
        assert row["saturated"] == pytest.approx(share)


def test_separation_ranks_are_in_tables_figures_and_mlflow(project: StudiesProject) -> None:
    results = project.folder / "results"
    ranks = project.table("separation_rank/ranks.csv")
    assert list(ranks["status"]) == ["exact"] * 8
    assert project.fit("separation_rank")["theorems"]["violated"] == 0
    client = MlflowClient(default_uri(results))
    experiment = client.get_experiment_by_name("separation_rank")
    (logged,) = client.search_runs([experiment.experiment_id])
    names = {path.name for path in results.glob(f"mlartifacts/**/{logged.info.run_id}/artifacts/**/*")}
    assert {"theorems.csv", "degree_budget.csv", "fit.json"} <= names
    assert "rank_depth.svg" in names


@pytest.mark.parametrize(
    ("study", "training"),
    [
        ("memorization_heads", {"list_runs", "train_small", "import_runs"}),
        ("separation_rank", {"measure_separation_ranks"}),
    ],
)
def test_a_study_without_text_needs_no_corpus(
    project: StudiesProject, study: str, training: set[str]
) -> None:
    assert set(project.planned(f"results/{study}/fit.json", "--forceall")) == {study, *training}


def test_every_attention_network_has_a_relu_network_beside_it(project: StudiesProject) -> None:
    table = project.table("relu/relu.csv")
    both = table.merge(project.table(RECORDS.removeprefix("results/")), on=["heads", "examples", "seed"])
    assert len(both) == len(table) == 12
    assert (both["attention"] - both["accuracy"]).abs().max() < 1e-9
    assert (table["relu_params"] <= table["attention_params"]).all()


def test_a_changed_grid_measures_the_ranks_that_are_new(project: StudiesProject) -> None:
    kept = project.folder / "results/separation_ranks" / KEPT
    before = kept.read_text().splitlines()
    project.configure(separation_rank=[{**RANKS, "width": [1, 2, 3]}])
    planned = project.planned()
    assert sorted(planned) == ["findings", "log_study", "measure_separation_ranks", "separation_rank"]
    project.snakemake("results/separation_rank/ranks.csv", "--quiet", "rules")
    after = kept.read_text().splitlines()
    assert len(after) == len(before) + 4
    assert after[: len(before)] == before
    assert len(project.table("separation_rank/ranks.csv")) == 12
    project.configure()


def test_the_plan_says_how_long_ranks_take_at_most(project: StudiesProject) -> None:
    said = project.snakemake("plan").stdout
    assert "separation_rank: 17 separation ranks, nothing trained, at most" in said


def test_one_more_number_of_heads_trains_its_runs_alone(project: StudiesProject) -> None:
    """Also where packs have another size, or are filled up with networks of another shape."""
    before = project.records()
    more = [{**HEADS, "heads": [1, 2, 3, 4]}]
    for execution in ({}, {"models_per_pack": 8}, {"models_per_pack": 8, "padding": 10.0}):
        project.configure(memorization_heads=more, execution=execution)
        assert project.planned(RECORDS).count("train_small") == 1  # its four runs
    project.snakemake(RECORDS, "--quiet", "rules")
    after = project.records()
    assert len(set(after) - set(before)) == 4
    assert {key: after[key] for key in before} == before
    project.configure()
    project.snakemake(RECORDS, "--quiet", "rules")
    assert len(project.table(RECORDS.removeprefix("results/"))) == 12


def test_extras_are_made_again_where_the_config_asks_for_others(project: StudiesProject) -> None:
    project.configure(assumptions={**SECTIONS["assumptions"], "trials": 30})
    assert {"assumptions", "measure_assumptions"} <= set(project.planned())
    project.configure(memorization_heads=[{**HEADS, "seeds": 1}], extras=["relu"])
    kept = {path: path.stat().st_mtime_ns for path in project.folder.glob("results/checkpoints/*/relu.json")}
    assert len(kept) == 12
    project.snakemake("relu", "--quiet", "rules")  # by its name
    assert len(project.table("relu/relu.csv")) == 6
    assert {path: path.stat().st_mtime_ns for path in kept} == kept  # nothing was trained again
    project.configure()


def test_without_extras_they_are_targets_all_the_same(project: StudiesProject) -> None:
    project.configure(extras=[])
    for target in ("results/assumptions/layers.csv", "results/relu/relu.csv"):
        (project.folder / target).unlink()
    assert not {"assumptions", "relu"} & set(project.planned())
    assert {"assumptions", "relu"} <= set(project.planned("results/assumptions/layers.csv", "relu"))
    project.configure()
