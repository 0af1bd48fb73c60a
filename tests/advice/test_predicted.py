"""What the evidence tells of runs that it has not seen, against what was measured."""

import numpy as np
import pandas as pd
import pytest

from shapelaw.advice.evidence.predicted import by_budget, predicted, size_terms
from shapelaw.advice.evidence.public import public_evidence
from shapelaw.studies.study import REFERENCE

RUNS = pd.read_csv(REFERENCE / "bian_morph.csv", comment="#")


@pytest.mark.parametrize("factor", [1.0, 0.5])
def test_losses_that_are_as_told_leave_nothing_and_have_their_factor(factor: float) -> None:
    told = predicted(RUNS, public_evidence(), "x")
    loss = 3.0 - 0.2 * np.log(RUNS["total_params"] / 1e8) - 0.1 * np.log(RUNS["tokens"] / 1e10)
    found = by_budget(predicted(RUNS.assign(loss=loss + factor * told["told"]), public_evidence(), "x"))
    assert found["factor"].to_numpy() == pytest.approx(factor)
    assert (found["size_alone"] > 0.01).all()
    if factor == 1.0:
        assert found["with_told"].to_numpy() == pytest.approx(0.0, abs=1e-9)
        assert (found["held"] == 1.0).all()


def test_runs_are_compared_at_equal_tokens() -> None:
    """A constant for each number of tokens takes whatever they do to the loss."""
    part = RUNS[RUNS["budget"] == "20N"]
    terms = size_terms(part)
    assert terms.shape == (35, part["tokens"].nunique() + 1)
    shifted = RUNS.assign(loss=RUNS["loss"] + RUNS["tokens"].rank(method="dense"))
    before, after = (by_budget(predicted(runs, public_evidence(), "x")) for runs in (RUNS, shifted))
    pd.testing.assert_frame_equal(before, after)
