"""The study of separation ranks from measurements to fit.json and sentences."""

import pandas as pd

from shapelaw.report.write import Table
from shapelaw.studies.separation_rank.results import answer


def told(holds, violated, unclear):
    theorems = pd.DataFrame([{"holds": holds, "violated": violated, "open": unclear}])
    ranks = pd.DataFrame({"status": ["exact", "exact", "lower bound"]})
    return answer({"theorems": Table(theorems, ""), "ranks": Table(ranks, "")})


def test_bounds_that_hold_and_that_do_not():
    assert told(7, 0, 0).sentence == "Yes: all 7 that can be told."
    assert told(7, 1, 2).sentence == "No: 1 are violated, and 7 hold."
    assert told(7, 1, 2).more.startswith("2 of 3 networks have exact ranks. 2 are open")
    assert not told(0, 0, 3).decided
