"""The fits, tables and figures of the memorization studies."""

import numpy as np
import pandas as pd
import pytest
from memorizing_networks import BEND, HEAD_COUNTS, HEAD_DIMS, simulate, study_of
from small import REPOSITORY

from shapelaw.errors import UserError
from shapelaw.studies.memorization import analysis as tables
from shapelaw.studies.memorization.analysis import (
    ALONG_HEAD_DIM,
    ALONG_HEADS,
    comparison_table,
)


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


def test_no_curve_is_a_sentence():
    with pytest.raises(UserError, match="differ in head_dim at the same H, n, T"):
        study_of(simulate(HEAD_COUNTS), ALONG_HEAD_DIM)


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
