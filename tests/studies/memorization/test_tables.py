"""The fits, tables and figures of the memorization studies."""

import numpy as np
import pandas as pd
import pytest
from memorization_analyses import BEND, CONTEXTS, HEAD_COUNTS, HEAD_DIMS, labelled, our_runs, study_of
from memorizing_networks import CHANCE, simulate
from small import REPOSITORY

from shapelaw.errors import UserError
from shapelaw.fits.line import FitStatus
from shapelaw.fits.plateau import KneeStatus
from shapelaw.studies.memorization import analysis as tables
from shapelaw.studies.memorization import results as figures
from shapelaw.studies.memorization.analysis import (
    ALONG_CONTEXT,
    ALONG_HEAD_DIM,
    ALONG_HEADS,
    comparison_table,
    guaranteed_examples,
)
from shapelaw.studies.memorization.results import present, warnings


def test_the_theorem_guarantees_each_point_of_its_sizes():
    heads, head_dims = simulate((1, 4, 8)), simulate((3,), head_dim=(8, 32, 64))
    (along_heads,) = study_of(heads, ALONG_HEADS).curves
    assert guaranteed_examples(along_heads.curve).tolist() == [32, 125, 249]  # H (min(32, 64) - 1) + 1
    assert along_heads.guaranteed.tolist() == [0.0032, 0.0125, 0.0249]
    (along_head_dim,) = study_of(head_dims, ALONG_HEAD_DIM).curves
    assert guaranteed_examples(along_head_dim.curve).tolist() == [22, 94, 94]
    assert along_head_dim.guaranteed.tolist() == [0.0022, 0.0094, 0.0094]


def test_the_knee_is_at_the_context(head_dims):
    by_examples = {one.curve.examples: one for one in head_dims.curves}
    assert by_examples[10000].knee.status is KneeStatus.SATURATED
    assert np.isnan(by_examples[10000].gain.gain)
    for examples in (15000, 20000):
        one = by_examples[examples]
        assert one.knee.allows(32)
        assert abs(one.gain.gain) < 3 * one.gain.err
        assert one.gain.p_value > 0.01
    table = tables.knee_table(head_dims)
    assert table["knee_holds_context"].tolist() == ["open", "yes", "yes"]
    agrees = comparison_table(head_dims).set_index("quantity").loc["knee in d_h", "agrees"]
    assert agrees.tolist() == ["open", "yes", "yes"]


def test_a_gain_beyond_the_context_is_found():
    runs = simulate((30,), head_dim=HEAD_DIMS, examples=(20000,), noise=0.005)
    runs["accuracy"] += 0.002 * (runs["head_dim"] - 32).clip(lower=0)
    (one,) = study_of(runs, ALONG_HEAD_DIM).curves
    assert one.gain.p_value < 1e-3
    assert one.gain.gain == pytest.approx(0.002 * (64 - 35), abs=3 * one.gain.err)
    two = runs[runs["head_dim"].isin([10, 15, 20, 25, 30, 40, 64])]
    (short,) = study_of(two, ALONG_HEAD_DIM).curves
    assert short.gain.n_points == 2
    assert short.gain.gain == pytest.approx(0.002 * 24, abs=3 * short.gain.err)


def test_beyond_the_theorem_nothing_is_promised():
    runs = simulate((20,), context=(16, 32, 64, 96), examples=(20000,))
    analysis = study_of(runs, ALONG_CONTEXT)
    assert np.isfinite(analysis.curves[0].guaranteed).tolist() == [True, True, False, False]
    (sentence,) = warnings(analysis)
    assert "(n < d), and here n = 64, 96 at d = 64" in sentence
    assert present(analysis).summary.count("n < d") == 1


def test_no_curve_is_a_sentence():
    with pytest.raises(UserError, match="differ in head_dim at the same H, n, T"):
        study_of(simulate(HEAD_COUNTS), ALONG_HEAD_DIM)


def test_the_papers_findings_are_recovered_along_heads(heads):
    lines = tables.TABLES["linear_part"].frame(heads).set_index(["task", "examples"])
    assert (lines["status"] == "converged").all()
    assert (lines["curvature_p"] > 0.05).all()
    for (task, examples), row in lines.iterrows():
        true = (12 if task == "regression" else 15) * 31
        assert abs(row["examples_per_head"] - true) < 3 * row["examples_per_head_err"], (task, examples)
        assert abs(row["intercept"] - CHANCE) < 3 * row["intercept_err"]
    capacities = tables.capacity_table(heads).set_index("heads")
    assert capacities["theory"].tolist() == [31 * h + 1 for h in HEAD_COUNTS]
    assert 20000 <= capacities.loc[60, "capacity"] <= 60 * 31 * 15 / (0.99 - CHANCE)
    comparison = comparison_table(heads)
    assert set(comparison.loc[comparison["quantity"] != "exponent of the share in H", "agrees"]) <= {
        "yes",
        "open",
    }
    bends = comparison[comparison["quantity"] == BEND]
    assert bends["agrees"].tolist() == ["yes"] * 4
    assert bends["note"].str.endswith("points doesn't show a line").all()


def test_what_is_learned_of_the_labels_is_nearly_a_line_where_accuracy_is_not(ours):
    """Figure 2a: log(100) less the cross-entropy grows as H^1.01 to H^1.10, accuracy as H^1.4 to H^1.5."""
    runs = our_runs()
    growth = tables.growth_table(ours).set_index("examples")
    assert growth["information_curvature_p"].tolist() == pytest.approx([0.888, 0.027, 0.168, 0.141], abs=2e-3)
    assert growth["information_exponent"].between(1.0, 1.11).all()
    assert (growth["information_exponent"] < growth["exponent"] - 0.3).all()
    by_hand = (
        (np.log(100) - runs.query("heads == 20 and examples == 10000")["loss"].item())
        / np.log(2)
        * 10000
        / 20
    )
    assert growth.loc[10000, "bits_per_head"] == pytest.approx(by_hand)
    silent = tables.growth_table(study_of(runs.drop(columns="loss"), ALONG_HEADS))
    assert silent["bits_per_head"].isna().all()
    assert (silent["exponent"].to_numpy() == growth["exponent"].to_numpy()).all()


def test_six_times_as_many_steps_do_not_straighten_the_curve():
    """Committed runs at 50,000 and 300,000 steps, H = 5 to 20: the numbers of docs/results/memorization.md."""
    runs = pd.read_csv(REPOSITORY / "docs/results/memorization_curvature.csv")
    rows = [growth_of(runs[(runs["steps"] == steps) & (runs["heads"] <= 20)]) for steps in (50_000, 300_000)]
    for column, expected in {
        "exponent": [1.431, 1.438],
        "exponent_err": [0.042, 0.052],
        "information_exponent": [0.980, 0.962],
        "information_exponent_err": [0.027, 0.043],
        "information_curvature_p": [0.667, 0.348],
        "linear_p": [0.041, 0.271],
    }.items():
        assert [row[column] for row in rows] == pytest.approx(expected, abs=1e-3), column


def growth_of(runs):
    """The row of one curve, with the p-value of its line."""
    study = study_of(runs, ALONG_HEADS)
    (growth,) = tables.growth_table(study).to_dict("records")
    return growth | {"linear_p": tables.TABLES["linear_part"].frame(study)["curvature_p"].item()}


def test_a_curve_that_bends_does_not_agree():
    runs = simulate(HEAD_COUNTS, examples=(40000,), noise=0.002)
    runs["accuracy"] = 0.85 * (1 - np.exp(-runs["heads"] / 8)) + 0.001 * runs["seed"]
    analysis = study_of(runs, ALONG_HEADS)
    comparison = comparison_table(analysis).set_index("quantity")
    assert comparison.loc[BEND, "agrees"] == "no"
    assert "more slowly than a line" in comparison.loc[BEND, "note"]


def test_no_line_is_open_and_never_drawn():
    analysis = study_of(simulate(HEAD_COUNTS, examples=(2000,)), ALONG_HEADS)
    (one,) = analysis.curves
    assert one.linear.line.status is FitStatus.TOO_FEW_POINTS
    rows = comparison_table(analysis).set_index("quantity")
    assert rows.loc[BEND, "agrees"] == "open"
    assert rows.loc[BEND, "note"] == "1 point: a line and a check of its fit need 3"
    axes = figures.share_figure(analysis).figure().axes[0]
    assert not [line for line in axes.get_lines() if len(line.get_xdata()) == 60]


def test_monotone_in_the_context():
    runs = simulate(context=CONTEXTS, examples=(6000, 18000))
    analysis = study_of(runs, ALONG_CONTEXT)
    assert set(tables.monotony_table(analysis)["verdict"]) == {"rising, no significant fall"}
    assert set(comparison_table(analysis)["agrees"]) == {"yes"}
    fallen = runs.copy()
    fallen.loc[(runs["context"] == 50) & (runs["examples"] == 18000), "accuracy"] -= 0.3
    rows = comparison_table(study_of(fallen, ALONG_CONTEXT))
    falls = rows[rows["quantity"] == "largest fall of the share in n"]
    assert falls["agrees"].tolist() == ["yes", "no"]
    assert "most from n = 40 to 50" in falls["note"].tolist()[1]


def test_a_regression_alone_has_no_capacity_and_says_so():
    analysis = study_of(simulate(HEAD_COUNTS, task="regression"), ALONG_HEADS)
    assert analysis.capacities == ()
    assert figures.capacity_figure(analysis) == "there are no runs of a classification task"
    assert tables.capacity_table(analysis).empty


def test_figures_draw_the_points_the_line_and_the_theory(heads, head_dims):
    drawn = figures.share_figure(heads).figure()
    assert [axes.get_ylabel() for axes in drawn.axes] == ["accuracy", "mean squared error"]
    assert labelled(drawn.axes[0], "T = 20,000").get_xdata().tolist() == [1, 5, 10, 20, 30]
    fitted = [line for line in drawn.axes[0].get_lines() if len(line.get_xdata()) == 60]
    assert len(fitted) == 3
    dotted = [line for line in drawn.axes[0].get_lines() if line.get_linestyle() == ":"]
    assert dotted[0].get_ydata()[-1] == pytest.approx(1861 / 10000)
    knees = figures.share_figure(head_dims).figure().axes[0]
    assert any(set(line.get_xdata()) == {32.0} for line in knees.get_lines())
    assert [axes.get_yscale() for axes in drawn.axes] == ["linear", "log"]


def test_saturated_heads_are_drawn_or_said_to_be_unknown(ours, head_dims):
    left, right = figures.saturated_figure(ours).figure().axes
    drawn = [line for line in left.get_lines() if len(line.get_xdata()) == 8]
    assert len(drawn) == 4
    assert len(right.get_lines()) == 4
    assert figures.saturated_figure(head_dims) == "no run says how many of its heads are saturated"


def test_the_legend_names_the_bounds_that_are_drawn_and_no_others(ours):
    (legend,) = figures.capacity_figure(ours).figure().legends
    named = [text.get_text() for text in legend.get_texts()]
    assert "no T tried is memorized" in named
    assert "every T tried is memorized" not in named
