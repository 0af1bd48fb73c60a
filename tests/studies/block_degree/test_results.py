"""The degree study from a table of runs to its files, on tables whose truth is known."""

from __future__ import annotations

import pandas as pd
import pytest
from degree_runs import BEST_RATE, TRUE_LOSS, table, tuned_of

from shapelaw.report.write import Table
from shapelaw.studies.block_degree.results import (
    analyse,
    answer,
    losses_table,
    present,
)
from shapelaw.studies.study_runs import StudyRuns


def test_every_degree_gets_its_best_rate_and_the_truth_is_found() -> None:
    found = analyse(StudyRuns(table(), "runs", ()), rank_seconds=0.01)
    results = present(found)
    verdicts = {(one.tuned.task.target_rank, one.tuned.name): one.verdict for one in found.differences}
    for rank in (2, 8):
        assert verdicts[rank, "degree 1"] == verdicts[rank, "degree 2"] == "worse"
        assert verdicts[rank, "degree 4"] == "no significant difference"
    losses = results.tables["losses"].frame.set_index(["target_rank", "network"])
    for degree, loss in TRUE_LOSS.items():
        row = losses.loc[(2, f"degree {degree}")]
        assert row["learning_rate"] == BEST_RATE[degree]
        assert row["low95"] < row["loss"] < row["high95"]
        assert row["loss"] == pytest.approx(loss * 2**0.3, rel=0.1)
        assert row["rates_at_edge"] == (5 if degree in (1, 4) else 0)
    assert results.fit["status"] == "converged"
    assert len(results.fit["differences"]) == 6


def test_one_seed_is_no_comparison() -> None:
    assert losses_table(tuned_of(table(seeds=1)))["low95"].isna().all()


COLUMNS = "targets rates_chosen_on width matrices block until_converged network ratio low95 high95 p_value_holm verdict"


def told(*rows):
    return answer({"pooled": Table(pd.DataFrame(rows, columns=COLUMNS.split()), "")})


def test_the_answer_is_of_whole_degrees_at_the_largest_budget():
    found = told(
        ("R > 1", "all seeds", 16, 12, "", False, "degree 2", 1.5, 1.2, 1.9, 0.001, "worse"),
        ("R > 1", "all seeds", 16, 12, "", False, "mixture of 2 and 3", 0.9, 0.8, 1.0, None, "better"),
        ("R > 1", "all seeds", 8, 6, "", False, "degree 2", 1.0, 0.9, 1.1, 0.9, "no significant difference"),
        ("all R", "all seeds", 16, 12, "", False, "degree 2", 9.0, 8.0, 10.0, 0.001, "worse"),
    )
    assert found.decided
    assert found.sentence == (
        "Loss over that of degree 3, 12 matrices of 16 x 16: degree 2 1.50 times (1.20 to 1.90), worse."
    )
    assert not told().decided
    signs = ("signs, R > 1", "all seeds", 16, 12, "ReLU", True, "degree 2", 1.5, 1.2, 1.9, 0.001, "worse")
    assert told(signs).sentence.startswith(
        "Loss over that of degree 3, 12 matrices of 16 x 16, ReLU: degree 2 1.50"
    )
