"""The study of attention's degree in the real Snakemake: the language runs' own rules, one more option of the shape."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from project import CONFIG, Project

pytestmark = pytest.mark.slow

STUDY = "attention_degree"
GRID: dict[str, Any] = {
    "vocab_size": 257,
    "context_length": 16,
    "widths": {1: [16]},
    "heads": 1,
    "degrees": [None, 2, 3],
    "seeds": 2,
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, with_corpus: Path) -> Project:
    """After a whole run."""
    training = {**CONFIG["training"], "steps": 10, "evaluate_every": 10, "warmup_steps": 1}
    sections = {"studies": [STUDY], STUDY: GRID, "training": training, "execution": {"runs_per_job": 6}}
    project = Project(tmp_path_factory.mktemp("attention"), with_corpus, **sections)
    project.snakemake("--quiet", "rules")
    return project


def test_every_degree_and_softmax_are_trained_and_compared(project: Project) -> None:
    folder = project.folder / "results" / STUDY
    runs = pd.read_parquet(folder / "runs.parquet")
    assert len(runs) == 3 * 2
    assert set(runs["status"]) == {"FINISHED"}
    assert set(runs["attention_degree"].dropna()) == {2, 3}
    assert runs["attention_degree"].isna().sum() == 2
    assert runs["test_loss"].between(1, 6).all()
    assert runs["block_params"].max() / runs["block_params"].min() < 1.04
    fit = json.loads((folder / "fit.json").read_text())
    assert fit["status"] == "converged"
    assert len(fit["differences"]) == 4
    assert (folder / "logged").exists()


def test_a_second_call_does_nothing_and_a_further_degree_trains_its_own(project: Project) -> None:
    assert project.planned() == []
    project.configure(**{STUDY: {**GRID, "degrees": [None, 2, 3, 4]}})
    assert project.planned().count("train_small") == 2
    project.configure()


def test_widths_without_equal_parameters_are_told(project: Project) -> None:
    project.configure(**{STUDY: {**GRID, "widths": {1: [16, 6], 2: [7]}, "degrees": [4], "heads": 2}})
    done = project.snakemake("-n", ok=False)
    project.configure()
    for sentence in (
        "attention_degree.widths.1: no heads' dimension gives attention of degree 4 within 2% of the weights of",
        "attention_degree.widths.2: width 7 is not divisible by 2 heads",
    ):
        assert sentence in done.stderr
