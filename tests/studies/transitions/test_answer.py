"""Depth or width, in one line."""

import math

import pandas as pd
import pytest

from shapelaw.report.write import Table
from shapelaw.studies.transitions.answer import answer

NAN = math.nan
PUBLISHED = [("transition width at depth 1 (published: by the line)", 163.1), ("a", 5.039), ("b", 0.0555)]


def tables(rows, **fit):
    columns = ["depth", "deeper_depth", "width", "width_low", "width_high", "status", "side", "bound"]
    frames = {
        "transitions": pd.DataFrame(rows, columns=columns).assign(method="bootstrap"),
        "fit": pd.DataFrame([{"method": "bootstrap", "status": "too few points", **fit}]),
        "comparison": pd.DataFrame(PUBLISHED, columns=["quantity", "published"]),
    }
    return {name: Table(frame, "") for name, frame in frames.items()}


def test_a_crossing_stands_beside_the_published_width():
    found = answer(tables([(1, 2, 137.2, 133.0, 141.4, "crossing", None, NAN)]))
    assert found.decided
    assert found.sentence == "Depth 2 overtakes depth 1 at width 137 (133 to 141)."
    assert found.published == "width 163 at depth 1; log d = 5.039 + 0.0555 L (Levine et al. 2020)."


def test_the_law_follows_where_the_line_converged():
    rows = [(depth, depth + 1, 100.0 + depth, NAN, NAN, "crossing", None, NAN) for depth in (1, 2, 3, 4)]
    found = answer(tables(rows, status="converged", a=5.0, a_err=0.03, b=0.05, b_err=0.002))
    assert "; and 1 more. Law: log d = a + b L, a = 5 ± 0.03, b = 0.05 ± 0.002." in found.sentence


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (
            (1, 2, NAN, NAN, NAN, "none in range, shallower better everywhere", "above", 180.0),
            "depth 1 against 2: the shallower network is better at every size tried, so a crossing would lie "
            "above width 180.",
        ),
        ((1, 2, NAN, NAN, NAN, "too few sizes", None, NAN), "depth 1 against 2: too few sizes."),
    ],
)
def test_no_crossing_is_undecided_with_its_reason(row, said):
    found = answer(tables([row]))
    assert not found.decided
    assert found.sentence.endswith(said)
    assert not answer(tables([])).decided
