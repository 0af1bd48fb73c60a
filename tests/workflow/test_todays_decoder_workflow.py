"""The study of today's decoder in the real Snakemake: blocks, budgets and observations on the way to tables."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from project import CONFIG, Project

pytestmark = pytest.mark.slow

STUDY = "todays_decoder"
WIDTHS = {1: [8, 12, 16, 20], 2: [8, 12, 16]}
GRID: dict[str, Any] = {
    "vocab_size": 257,
    "context_length": 16,
    "heads": 2,
    "learning_rates": [1e-3, 4e-3],
    "recipe": {"schedule": "constant", "evaluate_every": 10},
    "grids": [{"budget": {"steps": 20}, "widths": WIDTHS, "repeated": {1: [12]}, "observed_steps": [10]}],
}


def test_blocks_budgets_and_observations_end_in_tables(
    tmp_path_factory: pytest.TempPathFactory, with_corpus: Path
) -> None:
    training = {**CONFIG["training"], "warmup_steps": 1}
    training.pop("steps")
    sections = {
        "studies": [STUDY],
        STUDY: GRID,
        "training": {**training, "steps": 20},
        "execution": {"runs_per_job": 32},
    }
    project = Project(tmp_path_factory.mktemp("today"), with_corpus, **sections)
    project.snakemake("--quiet", "rules")
    folder = project.folder / "results" / STUDY
    runs = pd.read_parquet(folder / "runs.parquet")
    assert len(runs) == 2 * 2 * (7 + 1)
    assert set(runs["status"]) == {"FINISHED"}
    assert set(runs["block"].dropna()) == {"llama"}
    assert set(runs["schedule"]) == {"constant"}
    for text, loss in zip(runs["observations"], runs["test_loss"], strict=True):
        observed = dict(pair.split(":") for pair in text.split())
        assert list(observed) == ["10", "20"]
        assert float(observed["20"]) == loss
    losses = pd.read_csv(folder / "losses.csv")
    assert set(losses["budget"]) == {"10 steps, undecayed", "20 steps, undecayed"}
    crossings = pd.read_csv(folder / "crossings.csv")
    assert len(crossings) == 2 * 2 * 3  # blocks, budgets, two rates and the best
    fit = json.loads((folder / "fit.json").read_text())
    assert fit["study"] == STUDY
    assert (folder / "logged").exists()
    assert project.planned() == []
