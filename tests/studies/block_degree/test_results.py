"""The degree study from a table of runs to its files, on tables whose truth is known."""

from __future__ import annotations

import pytest
from degree_runs import BEST_RATE, TRUE_LOSS, table, tuned_of

from shapelaw.studies.block_degree.results import (
    analyse,
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
