"""`snakemake plan` by a cost model, in the real Snakemake."""

import json
from pathlib import Path

import pytest
from project import Project

from shapelaw.specs.cost import CostModel, model_to_dict


@pytest.mark.slow
def test_plan_tells_the_hours_of_the_model_and_what_is_wrong_with_its_file(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.configure(execution={"cost_model": "cost.json"})
    said = project.snakemake("plan", ok=False)
    assert "execution.cost_model: The cost model" in said.stderr + said.stdout
    assert "Traceback" not in said.stderr
    model = CostModel(10.0, 0.0, 0.0, 0.0, 300.0, 1.25)  # six runs of 30 steps: an hour
    (project.folder / "cost.json").write_text(json.dumps(model_to_dict(model)))
    said = project.snakemake("plan", "--quiet", "rules")
    assert "6 runs" in said.stdout
    assert (
        "about 1.0 hours of one device by cost.json (a run within a factor of 1.25, typically)" in said.stdout
    )
    # ten minutes of training each: no job may be given less
    assert project.planned().count("train_small") == 6
    (project.folder / "cost.json").write_text(json.dumps(model_to_dict(CostModel(20, 0, 0, 0, 300, 1))))
    assert project.planned().count("train_medium") == 6


@pytest.mark.slow
def test_a_grid_has_its_line_its_targets_and_its_sentences(tmp_path: Path) -> None:
    project = Project(tmp_path)
    axes = {"depth": [1, 2], "width": [8, 16], "heads": [1, 2], "embedding_rank": [4, None]}
    axes["corpus"] = [project.sections["corpus"]["name"], "other"]
    mine = {"grids": {"mine": {"axes": axes, "vocab_size": 257}}, "studies": ["mine"]}
    project.configure(**mine, corpora={"other": {"sources": ["gcide"]}})
    said = project.snakemake("plan", "--quiet", "rules")
    assert "mine: 32 runs to train; networks up to" in said.stdout
    assert "grids.mine: every network has one seed" in said.stderr
    planned = project.planned()
    made = [planned.count(rule) for rule in ("prepare_corpus", "train_tokenizer", "encode", "mine")]
    assert made == [2, 2, 4, 1]
    said = project.snakemake("-n", "results/mine/efects.csv", ok=False)
    assert "The study mine makes no file efects.csv (did you mean effects.csv?)." in said.stderr + said.stdout
    project.configure(**mine)
    said = project.snakemake("plan", ok=False)
    assert "grids.mine.axes.corpus has other, of which the config has no sources" in said.stderr + said.stdout
