"""The fits of the memorization studies: heads that saturate, knees, gains, and runs that make no curve."""

import numpy as np
import pytest
from memorization_analyses import HEAD_COUNTS, HEAD_DIMS, our_runs, study_of
from memorizing_networks import simulate

from shapelaw.errors import UserError
from shapelaw.fits.plateau import KneeStatus
from shapelaw.studies.memorization import tables
from shapelaw.studies.memorization.analysis import (
    ALONG_CONTEXT,
    ALONG_HEAD_DIM,
    ALONG_HEADS,
    examples_of,
    guaranteed_examples,
)
from shapelaw.studies.memorization.results import summary, warnings
from shapelaw.studies.memorization.tables import comparison_table


def test_saturated_heads_are_reported():
    analysis = study_of(our_runs(), ALONG_HEADS)
    table = analysis.saturated.set_index(["examples", "heads"])
    assert len(table) == 32
    row = table.loc[(10000, 1)]
    assert row["saturated_share"] == pytest.approx(0.849, abs=1e-3)
    assert row["examples_with_free_head"] == pytest.approx(0.151, abs=1e-3)
    assert row["mean_saturated_heads"] == pytest.approx(0.849, abs=1e-3)
    silent = study_of(simulate(HEAD_COUNTS), ALONG_HEADS)
    assert silent.saturated["saturated_share"].isna().all()


def test_the_theorem_guarantees_each_point_of_its_sizes():
    heads, head_dims = simulate((1, 4, 8)), simulate((3,), head_dim=(8, 32, 64))
    (along_heads,) = study_of(heads, ALONG_HEADS).curves
    assert guaranteed_examples(along_heads.curve).tolist() == [32, 125, 249]  # H (min(32, 64) - 1) + 1
    assert along_heads.guaranteed.tolist() == [0.0032, 0.0125, 0.0249]
    (along_head_dim,) = study_of(head_dims, ALONG_HEAD_DIM).curves
    assert guaranteed_examples(along_head_dim.curve).tolist() == [22, 94, 94]
    assert examples_of(along_head_dim.curve).tolist() == [10000] * 3


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
    assert summary(analysis).count("n < d") == 1


def test_no_curve_is_a_sentence():
    with pytest.raises(UserError, match="differ in head_dim at the same H, n, T"):
        study_of(simulate(HEAD_COUNTS), ALONG_HEAD_DIM)
