"""Separation ranks, in one line."""

import pandas as pd

from shapelaw.report.write import Table
from shapelaw.studies.separation_rank.answer import answer


def told(holds, violated, unclear):
    theorems = pd.DataFrame([{"holds": holds, "violated": violated, "open": unclear}])
    ranks = pd.DataFrame({"status": ["exact", "exact", "lower bound"]})
    return answer({"theorems": Table(theorems, ""), "ranks": Table(ranks, "")})


def test_bounds_that_hold_and_that_do_not():
    assert told(7, 0, 0).sentence == "No bound is violated: 7 hold, for 2 exact ranks out of 3 networks."
    assert told(7, 1, 2).sentence.startswith("1 bounds are violated: 7 hold")
    assert "2 are open" in told(7, 1, 2).sentence
    assert not told(0, 0, 3).decided
