"""The paper's findings beside ours: yes, no, or open with the reason."""

import numpy as np
from memorization_analyses import BEND, CONTEXTS, HEAD_COUNTS, study_of
from memorizing_networks import simulate

from shapelaw.fits.line import FitStatus
from shapelaw.studies.memorization import figures, tables
from shapelaw.studies.memorization.analysis import ALONG_CONTEXT, ALONG_HEADS
from shapelaw.studies.memorization.comparison import comparison_table
from shapelaw.studies.memorization.results import summary


def test_a_curve_that_bends_does_not_agree():
    runs = simulate(HEAD_COUNTS, examples=(40000,), noise=0.002)
    runs["accuracy"] = 0.85 * (1 - np.exp(-runs["heads"] / 8)) + 0.001 * runs["seed"]
    comparison = comparison_table(study_of(runs, ALONG_HEADS)).set_index("quantity")
    assert comparison.loc[BEND, "agrees"] == "no"
    assert "more slowly than a line" in comparison.loc[BEND, "note"]


def test_no_line_is_open_and_never_drawn():
    analysis = study_of(simulate(HEAD_COUNTS, examples=(2000,)), ALONG_HEADS)
    (one,) = analysis.curves
    assert one.linear.line.status is FitStatus.TOO_FEW_POINTS
    rows = comparison_table(analysis).set_index("quantity")
    assert rows.loc[BEND, "agrees"] == "open"
    assert rows.loc[BEND, "note"] == "1 point: a line and a check of its fit need 3"
    assert "not measured" in summary(analysis)
    axes = figures.share_figure(analysis).axes[0]
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


def test_one_seed_claims_nothing():
    analysis = study_of(simulate(context=CONTEXTS, seeds=1), ALONG_CONTEXT)
    rows = comparison_table(analysis).set_index("quantity")
    assert rows.loc["largest fall of the share in n", "agrees"] == "open"
    assert "no seeds are repeated" in summary(analysis)
