"""Degree of the building block, in one line."""

import pandas as pd

from shapelaw.report.write import Table
from shapelaw.studies.block_degree.answer import answer

COLUMNS = [
    "targets",
    "rates_chosen_on",
    "width",
    "matrices",
    "network",
    "ratio",
    "low95",
    "high95",
    "p_value_holm",
]


def told(*rows):
    return answer({"pooled": Table(pd.DataFrame(rows, columns=[*COLUMNS, "verdict"]), "")})


def test_whole_degrees_at_the_largest_budget():
    found = told(
        ("R > 1", "all seeds", 16, 12, "degree 2", 1.5, 1.2, 1.9, 0.001, "worse"),
        ("R > 1", "all seeds", 16, 12, "mixture of 2 and 3", 0.9, 0.8, 1.0, None, "better"),
        ("R > 1", "all seeds", 8, 6, "degree 2", 1.0, 0.9, 1.1, 0.9, "no significant difference"),
        ("all R", "all seeds", 16, 12, "degree 2", 9.0, 8.0, 10.0, 0.001, "worse"),
    )
    assert found.decided
    assert found.sentence == (
        "Loss over that of degree 3, 12 matrices of 16 x 16: degree 2 1.50 times (1.20 to 1.90), worse."
    )


def test_nothing_to_compare_is_undecided():
    assert not told().decided
