"""The degree study from a table of runs to its files, on tables whose truth is known."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pandas as pd
import pytest
from degree_runs import BEST_RATE, TRUE_LOSS, table, with_mixtures

from shapelaw.report.write import write_results
from shapelaw.studies.block_degree.results import analyse, present, summary


@pytest.mark.slow
def test_every_degree_gets_its_best_rate_and_the_truth_is_found(tmp_path: Path) -> None:
    table().to_csv(tmp_path / "runs.csv", index=False)
    found = analyse(tmp_path / "runs.csv")
    write_results(present(found), tmp_path / "out", "study")
    verdicts = {(one.tuned.task.target_rank, one.tuned.name): one.verdict for one in found.differences}
    for rank in (2, 8):
        assert verdicts[rank, "degree 1"] == verdicts[rank, "degree 2"] == "worse"
        assert verdicts[rank, "degree 4"] == "no significant difference"
    losses = pd.read_csv(tmp_path / "out" / "losses.csv").set_index(["target_rank", "network"])
    for degree, loss in TRUE_LOSS.items():
        row = losses.loc[(2, f"degree {degree}")]
        assert row["learning_rate"] == BEST_RATE[degree]
        assert row["low95"] < row["loss"] < row["high95"]
        assert row["loss"] == pytest.approx(loss * 2**0.3, rel=0.1)
        assert row["rates_at_edge"] == (5 if degree in (1, 4) else 0)
    speed = pd.read_csv(tmp_path / "out" / "speed.csv").set_index(["target_rank", "network", "threshold"])
    assert (2, "degree 1", 0.2) not in speed.index
    three, one = speed.loc[(2, "degree 3", 0.2)], speed.loc[(2, "degree 1", 0.5)]
    assert three["reached"] == three["seeds"] == 5
    assert three["steps_to_it"] == pytest.approx(500 * TRUE_LOSS[3] * 2**0.3, rel=0.1)
    assert three["steps_to_it_low95"] < three["steps_to_it"] < three["steps_to_it_high95"]
    assert math.isnan(three["ratio"])
    assert one["ratio_low95"] < TRUE_LOSS[1] / TRUE_LOSS[3] < one["ratio_high95"]
    fit = json.loads((tmp_path / "out" / "fit.json").read_text())
    assert fit["status"] == "converged"
    assert len(fit["differences"]) == 6
    assert "degree 1 against 3: loss times" in summary(found)
    for figure in ("losses", "differences", "speed", "mixtures", "rank"):
        assert (tmp_path / "out" / f"{figure}.svg").stat().st_size > 1000


def test_a_network_that_diverges_at_every_rate_is_in_the_tables(tmp_path: Path) -> None:
    runs = table()
    runs.loc[runs["degrees"] == "2.2.2.2.2.2", "loss"] = None
    runs.to_csv(tmp_path / "runs.csv", index=False)
    analysis = analyse(tmp_path / "runs.csv")
    write_results(present(analysis), tmp_path / "out", "study")
    losses = pd.read_csv(tmp_path / "out" / "losses.csv").set_index(["target_rank", "network"])
    assert losses.loc[(2, "degree 2"), "diverged"] == runs["seed"].nunique()
    assert math.isnan(losses.loc[(2, "degree 2"), "loss"])
    assert "degree 2" not in {one.tuned.name for one in analysis.differences}


@pytest.mark.slow
def test_a_mixture_is_compared_with_e(tmp_path: Path) -> None:
    with_mixtures().to_csv(tmp_path / "runs.csv", index=False)
    write_results(present(analyse(tmp_path / "runs.csv")), tmp_path / "out", "study")
    mixtures = pd.read_csv(tmp_path / "out" / "mixtures.csv").set_index(["target_rank", "network"])
    half, begun = mixtures.loc[(2, "mixture of 2 and 3")], mixtures.loc[(2, "mixture of 2 and 3, from 2.9")]
    assert [half["begins_at"], begun["begins_at"]] == [2.5, 2.9]
    assert half["mean_degree"] == pytest.approx(2.52)
    assert begun["mean_degree"] == pytest.approx(math.e)
    assert half["p_value_of_e"] < 1e-3
    assert begun["p_value_of_e"] > 0.9
