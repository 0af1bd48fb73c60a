"""Attention wider than the network, in one line."""

import pandas as pd

from shapelaw.report.write import Table
from shapelaw.studies.attention_ratio.answer import answer

COLUMNS = ["ratio", "size", "size_axis", "redundancy", "low", "high", "status", "significant"]


def told(*rows):
    printed = pd.DataFrame(
        {"quantity": ["redundancy of ratio 4", "largest fall"], "published": ["0.25", "none"]}
    )
    return answer(
        {"redundancy": Table(pd.DataFrame(rows, columns=COLUMNS), ""), "comparison": Table(printed, "")}
    )


def test_the_widest_attention_at_the_largest_size():
    found = told(
        (4.0, 1000.0, "block", 0.2, 0.1, 0.3, "measured", "yes"),
        (16.0, 2000.0, "block", 0.45, 0.4, 0.5, "measured", "yes"),
        (16.0, 1000.0, "block", 0.1, 0.0, 0.2, "measured", "no"),
    )
    assert found.decided
    assert found.sentence.startswith(
        "At H d_a / d = 16 and 2K parameters in the blocks, 45% (40% to 50%) of them"
    )
    assert found.published == "25% (redundancy of ratio 4)."


def test_nothing_to_compare_is_undecided():
    assert not told((4.0, 1000.0, "total", 0.2, 0.1, 0.3, "measured", "yes")).decided
