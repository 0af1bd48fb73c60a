"""Degree of attention, in one line."""

import pandas as pd

from shapelaw.report.write import Table
from shapelaw.studies.attention_degree.answer import answer

COLUMNS = ["depth", "width", "attention", "against", "difference", "low95", "high95", "verdict"]


def told(*rows):
    return answer({"differences": Table(pd.DataFrame(rows, columns=COLUMNS), "")})


def test_the_largest_network_against_degree_3():
    found = told(
        (1, 64, "softmax", "degree 3", 0.0, -0.1, 0.1, "no significant difference"),
        (2, 64, "softmax", "degree 3", -0.05, -0.06, -0.04, "better"),
        (2, 64, "degree 2", "softmax", 0.1, 0.05, 0.15, "worse"),
    )
    assert found.decided
    assert (
        found.sentence
        == "Against degree 3, at depth 2, width 64: softmax -0.050 nats (-0.060 to -0.040), better."
    )


def test_one_seed_decides_nothing():
    nan = float("nan")
    assert not told((1, 64, "softmax", "degree 3", 0.1, nan, nan, "one seed: no comparison")).decided
    assert not told().decided
