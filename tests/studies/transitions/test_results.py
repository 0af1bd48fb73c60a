"""All tables, figures and fit.json of depth against width, written."""

import json
from pathlib import Path

import pandas as pd
from loss_surfaces import grid_of, simulate

from shapelaw.fits.crossing import BOOTSTRAP, PAPER_RULE
from shapelaw.fits.inputs import check_runs
from shapelaw.fits.line import FitStatus
from shapelaw.report.write import write_results
from shapelaw.studies.transitions.analysis import analyse_runs
from shapelaw.studies.transitions.figures import figures_of
from shapelaw.studies.transitions.results import analyse, present


def test_one_depth_alone_is_no_comparison(tmp_path):
    study = analyse_runs(check_runs(simulate(grid_of((6,), 3e6, 5e7, 5), {}), "made"))
    assert study.transitions.empty
    assert study.fit.status is FitStatus.TOO_FEW_POINTS
    drawn = figures_of({"": study})
    assert drawn["loss_adjacent"] == "there are no two depths to compare"
    assert drawn["best_depth"] == "no two depths share a size, so none is the best"
    assert len(write_results(present(study), tmp_path, "study")) > 20


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


def test_points_off_their_line_have_a_widened_error_and_no_projection():
    found = analyse(transitions=Path(__file__).parents[2] / "faults" / "curvefit" / "scattered.csv")
    made = present(found)
    assert "b = 0.02319 ± 0.01746" in made.summary
    assert "no projection: the slope b = 0.0232 ± 0.017 is not significantly above zero" in made.summary
    assert made.tables["projection"].frame["depth"].isna().all()
