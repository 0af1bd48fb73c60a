"""The study of separation ranks from measurements to fit.json and sentences."""

import itertools
import json

import pandas as pd

from shapelaw.report.write import Table, write_results
from shapelaw.studies.registry import STUDIES
from shapelaw.studies.separation_rank.results import analyse, answer, fits, present, summary


def test_fit_json_counts_what_was_found(results):
    found = json.loads((results / "out/fit.json").read_text())
    assert found["status"] == "exact"
    assert found["theorems"]["violated"] == 0
    assert found["largest_exact_rank"] == 110
    assert found["fractional_degrees"] == {"budgets": 1, "largest_is_mixed": 1, "largest_is_of_one_degree": 0}
    for name, ending in itertools.product(STUDIES["separation_rank"].figures, ("svg", "png")):
        assert (results / "out" / f"{name}.{ending}").stat().st_size > 1000


def test_a_summary_says_what_was_found(results, tmp_path):
    found = analyse(results / "measured.json")
    write_results(present(found), tmp_path, "study")
    said = summary(found)
    assert "0 of them with a lower bound only" in said
    assert "product, d = 2, N = 2: degree of largest rank by matrices: 5 at 5; 3 at 6." in said
    assert fits(found)["degree_budgets"]["budgets"] == 3


def told(holds, violated, unclear):
    theorems = pd.DataFrame([{"holds": holds, "violated": violated, "open": unclear}])
    ranks = pd.DataFrame({"status": ["exact", "exact", "lower bound"]})
    return answer({"theorems": Table(theorems, ""), "ranks": Table(ranks, "")})


def test_bounds_that_hold_and_that_do_not():
    assert told(7, 0, 0).sentence == "Yes: all 7 that can be told."
    assert told(7, 1, 2).sentence == "No: 1 are violated, and 7 hold."
    assert told(7, 1, 2).more.startswith("2 of 3 networks have exact ranks. 2 are open")
    assert not told(0, 0, 3).decided
