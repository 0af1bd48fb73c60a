"""All tables, figures and fit.json of depth against width, written."""

import json
from pathlib import Path

import pandas as pd
import pytest
from loss_surfaces import grid_of, simulate
from recipes import with_another, with_recipe
from transition_runs import runs_of

from shapelaw.errors import UserError
from shapelaw.fits.crossing import BOOTSTRAP
from shapelaw.fits.inputs import TEXT_AND_BLOCK, check_runs
from shapelaw.fits.line import FitStatus
from shapelaw.fits.transitions import PAPER_RULE
from shapelaw.report.write import write_results
from shapelaw.studies.transitions.analysis import analyse_runs
from shapelaw.studies.transitions.figures import best_depth_figure, loss_figure
from shapelaw.studies.transitions.results import analyse, present


def test_one_depth_alone_is_no_comparison(tmp_path):
    study = analyse_runs(check_runs(simulate(grid_of((6,), 3e6, 5e7, 5), {}), "made"))
    assert study.transitions.empty
    assert study.fit.status is FitStatus.TOO_FEW_POINTS
    assert loss_figure(study.runs.adjacent, "test loss") == "there are no two depths to compare"
    assert best_depth_figure(study.runs) == "no two depths share a size, so none is the best"
    assert len(write_results(present(study), tmp_path, "study")) > 20


@pytest.mark.parametrize("name", TEXT_AND_BLOCK)
def test_networks_of_other_texts_or_blocks_are_a_sentence(tmp_path, name):
    runs = with_recipe(runs_of().rename(columns={"loss": "test_loss"}))
    with_another(runs, name, runs["depth"] == 6).to_csv(tmp_path / "runs.csv", index=False)
    with pytest.raises(UserError, match=f"with different values of {name} "):
        analyse(runs=tmp_path / "runs.csv")


def test_everything_is_written(analysis, tmp_path):
    files = {path.name for path in write_results(present(analysis), tmp_path, "study")}
    assert files == {path.name for path in tmp_path.iterdir()}
    for name in ("transitions", "fit", "projection", "comparison", "seed_noise", "best_depth"):
        assert {f"{name}.csv", f"{name}.html"} <= files
    assert {"tables.md", "tables.tex"} <= files
    figures = (
        "transition_width",
        "transition_size",
        "extrapolation",
        "loss_adjacent",
        "loss_doubled",
        "best_depth",
    )
    for name in figures:
        assert {f"{name}.svg", f"{name}.png"} <= files
        if name != "best_depth":
            assert (tmp_path / f"{name}.svg").stat().st_size > 5000
    fit = json.loads((tmp_path / "fit.json").read_text())
    assert fit["a"] == analysis.fit.a
    assert fit["method"] == BOOTSTRAP
    assert fit["other_methods"][PAPER_RULE]["status"] in {"converged", "too few points"}
    assert pd.read_csv(tmp_path / "fit.csv")["method"].tolist() == [BOOTSTRAP, PAPER_RULE, "published"]


def test_several_kinds_of_networks_are_a_sentence(tmp_path):
    runs = runs_of().rename(columns={"loss": "test_loss"}).assign(heads=2)
    pd.concat([runs, runs.assign(heads=4)]).to_csv(tmp_path / "runs.csv", index=False)
    with pytest.raises(
        UserError, match=r"has 2 kinds of networks \(H = 2; H = 4\), and one line is of one kind"
    ):
        analyse(runs=tmp_path / "runs.csv")


def test_points_off_their_line_have_a_widened_error_and_no_projection():
    found = analyse(transitions=Path(__file__).parents[2] / "faults" / "curvefit" / "scattered.csv")
    made = present(found)
    assert "b = 0.02319 ± 0.01746" in made.summary
    assert "no projection: the slope b = 0.0232 ± 0.017 is not significantly above zero" in made.summary
    assert made.tables["projection"].frame["depth"].isna().all()
