"""Redundancies beside others: the papers', and those of the committed runs."""

import io

import pandas as pd
import pytest
from golden_tables import golden

from shapelaw.advice.models.bottlenecks import AS_T5, MEASURED, RANK, RATIO, TOKENS, Basis, known_redundancies
from shapelaw.fits.redundancy import Redundancy, RedundancyStatus
from shapelaw.specs.sizes import SizeAxis
from shapelaw.studies.decoders.redundancies import compared_redundancy
from shapelaw.studies.study import published


def found(status: RedundancyStatus, value: float) -> Redundancy:
    return Redundancy(value, value - 0.01, value + 0.01, 0.0, status)


@pytest.mark.parametrize(
    ("status", "value", "agrees"),
    [
        (RedundancyStatus.AT_LEAST, 0.2, "yes"),
        (RedundancyStatus.AT_LEAST, 0.3, "no"),
        (RedundancyStatus.AT_MOST, 0.2, "no"),
        (RedundancyStatus.AT_MOST, 0.3, "open"),
        (RedundancyStatus.MEASURED, 0.28, "yes"),
        (RedundancyStatus.MEASURED, 0.3, "no"),
        (RedundancyStatus.NO_NOISE, 0.25, "open"),
    ],
)
def test_a_bound_agrees_only_on_its_side(status: RedundancyStatus, value: float, agrees: str) -> None:
    """With 0.225 to 0.275, "about 75%"."""
    theirs = published("attention_ratio", "redundancy", 4)
    row = compared_redundancy(theirs, "redundancy of ratio 4", "L = 12", found(status, value))
    assert (row["ours"], row["published"], row["status"]) == (value, "0.25", status.value)
    assert row["agrees"] == agrees


@pytest.mark.parametrize("study", ["embedding_rank", "attention_ratio"])
def test_they_are_made_from_the_committed_runs(study: str) -> None:
    """The golden tables are (tests/test_tables.py)."""
    for name in ("redundancy", "losses"):
        made, ours = io.StringIO(golden(study)[name]), MEASURED / study / f"{name}.csv"
        pd.testing.assert_frame_equal(pd.read_csv(made), pd.read_csv(ours), rtol=1e-6)


@pytest.mark.parametrize("axis", list(SizeAxis))
def test_ours_come_before_the_published(axis: SizeAxis) -> None:
    known = known_redundancies(axis)
    for kind, setting in ((RANK, TOKENS), (RATIO, AS_T5)):
        of_kind = [one.basis for one in known if (one.kind, one.setting) == (kind, setting)]
        assert of_kind == [Basis.FIT, Basis.PUBLISHED]
