"""The depth-width study: from runs to the published law, its tables and its figures."""

import json

import numpy as np
import pandas as pd
import pytest
from loss_surfaces import grid_of, simulate

from shapelaw.fits.crossing import BOOTSTRAP
from shapelaw.fits.curves import SizeAxis, loss_curves
from shapelaw.fits.inputs import check_runs, check_transitions
from shapelaw.fits.line import FitStatus
from shapelaw.fits.noise import Noise, noise_from_stds
from shapelaw.fits.transitions import PAPER_RULE
from shapelaw.report.write import write_results
from shapelaw.studies.depth_width import tables
from shapelaw.studies.depth_width.analysis import WITHOUT_LIMITS, published, published_fit
from shapelaw.studies.depth_width.figures import (
    best_depth_figure,
    extrapolation_figure,
    loss_figure,
    transition_size_figure,
    transition_width_figure,
)
from shapelaw.studies.depth_width.results import Options, analyse_runs, analyse_transitions, present, summary

DEPTHS = (4, 6, 8, 10, 12)
A, B = 4.0, 0.10
TRUE_WIDTHS = {depth: float(np.exp(A + B * depth)) for depth in DEPTHS}


def runs_of(**options):
    return check_runs(simulate(grid_of(DEPTHS, 6e4, 6e6, 12), TRUE_WIDTHS, noise=0.0008, **options), "made")


@pytest.fixture(scope="module")
def analysis():
    return analyse_runs(runs_of(), Options(draws=600))


@pytest.fixture(scope="module")
def refitted():
    return analyse_transitions(check_transitions(published("transitions"), "table 4a"))


def words(figure):
    texts = [text.get_text() for axes in figure.axes for text in axes.texts]
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    return [text.replace("\n", " ") for text in texts + titles]


def legend_of(figure):
    return [text.get_text() for text in figure.axes[0].get_legend().get_texts()]


def lines(figure):
    return [line for line in figure.axes[0].get_lines() if len(line.get_xdata()) > 50]


def test_the_law_is_recovered_from_runs(analysis):
    fit = analysis.fit
    assert fit.status is FitStatus.CONVERGED
    assert abs(fit.b - B) < 3 * fit.b_err
    assert abs(fit.a - A) < 3 * fit.a_err
    assert fit.b_err < 0.25 * B
    assert fit.n_points == 4
    assert set(analysis.fits) == {BOOTSTRAP, PAPER_RULE}


def test_transitions_have_the_promised_columns_and_pairs(analysis):
    table = analysis.transitions
    assert list(table.columns) == [
        *("depth", "deeper_depth", "width", "width_err", "width_low", "width_high", "method", "status"),
        *("bound", "bound_err", "side", "reportable_low", "reportable_high", "noise_scale", "caution"),
    ]
    assert table["method"].value_counts().to_dict() == {BOOTSTRAP: 4, PAPER_RULE: 4}
    for method in (BOOTSTRAP, PAPER_RULE):
        rows = table[table["method"] == method]
        assert rows["depth"].tolist() == [4, 6, 8, 10]
        assert rows["deeper_depth"].tolist() == [6, 8, 10, 12]
    found = table[table["status"] == "crossing"]
    assert (found["width_low"] < found["width"]).all()
    assert (found["width"] < found["width_high"]).all()
    assert [(p.shallow.depth, p.deep.depth) for p in analysis.runs.doubled] == [(4, 8), (6, 12)]


def test_the_papers_numbers_from_the_papers_transitions(refitted):
    comparison = tables.comparison_table(refitted).set_index("quantity")
    error = (comparison["ours"] / comparison["published"] - 1).abs()
    assert error.drop(["relative error of N_transition(100)", "cov_bb"]).max() < 0.006
    assert error.max() < 0.05
    err_error = (comparison["ours_err"] / comparison["published_err"] - 1).abs().dropna()
    assert len(err_error) == 9
    assert err_error.max() < 0.03


def test_the_projection_is_the_papers_table_1(refitted):
    table = tables.projection_table(refitted.fit)
    assert len(table) == 9
    assert (table["depth"] - table["published_depth"]).abs().max() <= 1
    assert (table["width"] / table["published_width"] - 1).abs().max() <= 0.015
    assert (table["status"] == "projected").all()
    small = table.set_index("model").loc["GPT-3 Small"]
    assert small["non_embedding_params"] == 125e6 - 50257 * 768
    assert table["width_err"].between(0, 0.05 * table["width"]).all()


def test_reference_tables_say_where_they_are_from():
    for name in ("grid", "transitions", "seed_std", "projection"):
        assert published(name)["source"].str.startswith("Levine et al. 2020, table").all()
    grid = published("grid")
    assert len(grid) == 196
    assert len(grid.drop_duplicates(["depth", "width"])) == 193
    misprint = grid[grid["width"] != grid["published_width"]]
    assert misprint[["row", "depth", "width", "published_width"]].to_numpy().tolist() == [[24, 12, 340, 240]]
    assert "misprint" in misprint["note"].item()
    assert published_fit()["b"] == 0.0555
    assert noise_from_stds(published("seed_std")["loss_std"], 3).std == pytest.approx(0.001446, abs=1e-6)


def test_seed_noise_stands_beside_the_published_one():
    runs = simulate(grid_of((6, 12), 3e6, 5e7, 5), {6: 300.0})
    runs.loc[runs["width"] == runs["width"].unique()[1], "width"] = 320
    study = analyse_runs(check_runs(runs, "made"), Options(draws=100)).runs
    table = tables.seed_noise_table(study)
    assert table.loc[table["width"] == 320, "published_std"].item() == 0.00192
    pooled = table.iloc[-1]
    assert pooled["depth"] == "pooled"
    assert pooled["loss_std"] == study.noise.std
    assert pooled["seeds"] == 12


def test_best_depth_changes_at_the_transitions():
    truth = check_runs(simulate(grid_of((4, 8, 16), 1e5, 1e7, 25), {4: 90.0, 8: 130.0}, noise=0.0), "made")
    curves = loss_curves(truth.drop_duplicates(["depth", "width"]), Noise(1e-5, np.inf))
    table = tables.best_depth_table(tables.rank_depths(curves, Noise(1e-5, np.inf)))
    assert table["best_depth"].tolist() == [4, 8, 16]
    assert table["size_high"][0] == pytest.approx(12 * 4 * 90**2, rel=0.03)
    assert table["size_low"][2] == pytest.approx(12 * 8 * 130**2, rel=0.03)
    assert (table["certain"] > 0.85).all()
    unknown = tables.best_depth_table(tables.rank_depths(loss_curves(truth, None), None))
    assert (unknown["certain"] == 0).all()


def test_without_noise_nothing_is_claimed():
    study = analyse_runs(runs_of(seeds=1), Options(draws=100))
    assert (study.transitions["status"] == "no noise estimate").all()
    assert study.transitions["width"].isna().all()
    assert study.fit.status is FitStatus.TOO_FEW_POINTS
    assert "no shape has more than one seed" in summary(study)
    assert "no fit is possible, too few points" in summary(study)
    given = analyse_runs(runs_of(seeds=1), Options(noise=0.0008, draws=300))
    assert given.fit.usable


def test_params_replace_the_size(analysis):
    runs = runs_of()
    doubled = runs.assign(block_params=2 * 12.0 * runs["depth"] * runs["width"] ** 2)
    other = analyse_runs(doubled, Options(draws=600))
    pd.testing.assert_frame_equal(other.transitions, analysis.transitions, rtol=1e-6)
    assert other.runs.curves[4].size == pytest.approx(2 * analysis.runs.curves[4].size)


def test_the_main_method_is_a_choice():
    both = analyse_runs(runs_of(), Options(method=PAPER_RULE, draws=100))
    assert both.fit is both.fits[PAPER_RULE]
    again = analyse_transitions(check_transitions(both.transitions, "t"), PAPER_RULE)
    assert again.fits[PAPER_RULE].to_dict() == both.fit.to_dict()


def test_a_size_axis_is_a_choice_and_the_others_stand_beside_it():
    """Embeddings move equal total parameters to narrower shallow networks than equal blocks."""
    runs = simulate(grid_of((4, 8), 6e4, 6e6, 12), {4: 85.0}, noise=0.0008)
    blocks = 12.0 * runs["depth"] * runs["width"] ** 2
    runs = runs.assign(params=blocks, total_params=blocks + 300 * runs["width"], step_flops=6 * blocks)
    checked = check_runs(runs, "made", size=SizeAxis.TOTAL)
    total = analyse_runs(checked, Options(draws=300, size=SizeAxis.TOTAL))
    block = analyse_runs(checked, Options(draws=300))
    table = total.runs.size_axes.set_index("size_axis")
    assert list(table.index) == ["block", "total", "flops"]
    pd.testing.assert_frame_equal(table, block.runs.size_axes.set_index("size_axis"))
    assert table.loc["total", "width"] == total.transitions.set_index("method").loc[BOOTSTRAP, "width"]
    assert table.loc["total", "width"] < table.loc["block", "width"] - table.loc["block", "width_err"]
    assert table.loc["flops", "width"] == pytest.approx(table.loc["block", "width"], rel=1e-6)
    assert "at equal all parameters (width" in summary(total)
    assert "at equal parameters of the blocks (width" in summary(block)
    losses = loss_figure(total.runs.adjacent, "test loss", total.runs.size)
    assert losses.axes[1].get_xlabel() == "all parameters"
    assert best_depth_figure(total.runs).axes[1].get_xlabel().startswith("all parameters")


def test_limits_enter_the_line_and_stand_beside_it(tmp_path):
    """The last pair's crossing lies above the grid: its limit pulls the line, and the line without it is kept."""
    widths = grid_of(DEPTHS, 6e4, 6e6, 12) | {12: grid_of((12,), 6e4, 2.3e6, 10)[12]}
    study = analyse_runs(check_runs(simulate(widths, TRUE_WIDTHS, noise=0.0008), "made"), Options(draws=300))
    last = study.transitions.set_index(["method", "depth"]).loc[(BOOTSTRAP, 10)]
    assert last["status"] != "crossing"
    assert last["side"] == "above"
    assert last["bound"] - 2 * last["bound_err"] < TRUE_WIDTHS[10]
    assert set(study.fits) == {BOOTSTRAP, BOOTSTRAP + WITHOUT_LIMITS, PAPER_RULE}
    assert study.fit.b_err < study.fits[BOOTSTRAP + WITHOUT_LIMITS].b_err
    assert "1 limit used" in summary(study)
    assert any("above" in text for text in legend_of(transition_width_figure(study)))
    write_results(present(study), tmp_path, "study")
    again = analyse_transitions(check_transitions(pd.read_csv(tmp_path / "transitions.csv"), "t"))
    assert (again.fit.a, again.fit.b, again.fit.b_err) == pytest.approx(
        (study.fit.a, study.fit.b, study.fit.b_err), rel=1e-9
    )


def test_what_could_have_been_found_stands_beside_the_published_line():
    study = analyse_runs(runs_of(), Options(draws=300))
    rows = study.transitions[study.transitions["method"] == BOOTSTRAP]
    assert (rows["reportable_low"] < rows["reportable_high"]).all()
    compared = tables.comparison_table(study).set_index("quantity")
    at_4 = compared.loc["transition width at depth 4 (published: by the line)"]
    assert at_4["published"] == pytest.approx(np.exp(5.039 + 4 * 0.0555))
    assert at_4["reportable_low"] == rows["reportable_low"].iloc[0]
    assert compared.loc["transition width at depth 6", "reportable_high"] == rows["reportable_high"].iloc[1]
    assert "any crossing that these sizes could report lies between" in summary(study)


def test_best_depth_ranks_only_what_is_there():
    """Scattered shapes: no certainty across a gap of a decade, nor where a depth has fewer than four sizes."""
    runs = simulate(
        {4: [40, 50, 60, 70, 300, 320], 8: [30, 36, 42, 50, 220, 240], 16: [60, 200]}, {4: 90.0, 8: 130.0}
    )
    curves = loss_curves(check_runs(runs, "made"), Noise(1e-5, np.inf))
    ranking = tables.rank_depths(curves, Noise(1e-5, np.inf))
    assert not ((ranking.size > 5e5) & (ranking.size < 3e6)).any()
    assert not np.isfinite(ranking.excess[ranking.depths.index(16)]).any()
    assert not ranking.certain.any()


def test_one_depth_alone_is_no_comparison(tmp_path):
    study = analyse_runs(check_runs(simulate(grid_of((6,), 3e6, 5e7, 5), {}), "made"))
    assert study.transitions.empty
    assert study.fit.status is FitStatus.TOO_FEW_POINTS
    assert "No two depths to compare." in words(loss_figure(study.runs.adjacent, "test loss"))
    assert any("No two depths share a size" in text for text in words(best_depth_figure(study.runs)))
    assert len(write_results(present(study), tmp_path, "study")) > 20


def test_figures_draw_a_usable_fit(analysis, refitted):
    for figure in (
        transition_width_figure(refitted),
        transition_size_figure(refitted),
        extrapolation_figure(refitted),
    ):
        assert lines(figure)
        assert not any("no fit" in text for text in words(figure))
    depth = lines(extrapolation_figure(refitted))[0].get_xdata()
    assert max(depth) == 100
    losses = loss_figure(analysis.runs.adjacent, "test loss")
    assert any("L = 4 against 6: d = " in text for text in words(losses))
    labels = [text.get_text() for text in best_depth_figure(analysis.runs).axes[0].get_legend().get_texts()]
    assert labels == [f"L = {depth}" for depth in DEPTHS]


def test_figures_say_that_there_is_no_fit_and_draw_none():
    two = analyse_transitions(check_transitions(published("transitions").head(2), "two"))
    for figure in (transition_width_figure(two), transition_size_figure(two), extrapolation_figure(two)):
        assert any("too few points" in text for text in words(figure))
        assert not lines(figure)


def test_a_flat_line_is_drawn_but_not_extrapolated():
    flat = pd.DataFrame({"depth": [6, 12, 18, 24], "width": [300, 301, 299, 300], "width_err": 10})
    study = analyse_transitions(check_transitions(flat, "flat"))
    assert lines(transition_width_figure(study))
    assert not lines(extrapolation_figure(study))
    assert any("not significantly above zero" in text for text in words(extrapolation_figure(study)))
    projection = tables.projection_table(study.fit)
    assert projection["depth"].isna().all()
    assert projection["status"].str.contains("not significantly above zero").all()
    assert "no projection" in summary(study)


def test_everything_is_written(analysis, tmp_path):
    files = {path.name for path in write_results(present(analysis), tmp_path, "study")}
    assert files == {path.name for path in tmp_path.iterdir()}
    for name in ("transitions", "fit", "projection", "comparison", "seed_noise", "best_depth"):
        assert {f"{name}.csv", f"{name}.md", f"{name}.tex"} <= files
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
