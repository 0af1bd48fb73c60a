"""Runs at the best of several learning rates, and what the studies of them find and write."""

from typing import Any

import pandas as pd
import pytest
from transition_runs import UNDERTRAINING, todays_runs, undertraining_runs

from shapelaw.studies.decoders import todays_decoder as todays
from shapelaw.studies.decoders.todays_decoder import (
    OTHER_SEEDS,
    OWN_LOSS,
    RatesAnalysis,
    at_best_rates,
    best_of_seeds,
)
from shapelaw.studies.grid.cells import Best
from shapelaw.studies.grid.tables import NO_RATIO
from shapelaw.studies.transitions.analysis import Options

FAST = Options(draws=150)
ONE = {("gpt2", 1000, 0.001): 120.0}


def todays_of(runs: pd.DataFrame) -> RatesAnalysis:
    return todays.analyse_cells(runs, "runs.csv", FAST)


def width_of(cell: Any) -> float:
    return float(cell.transitions.bootstrap_rows[0]["width"])


def test_each_cell_has_its_transition() -> None:
    cells = todays_of(undertraining_runs()).cells
    found = {(one.cell.value("steps"), one.cell.value("learning_rate")): width_of(one) for one in cells}
    best = {(1000, Best.RATES): 120.0, (4000, Best.RATES): 240.0}
    assert found == pytest.approx(UNDERTRAINING | best, rel=0.06)


def test_a_bound_gives_no_ratio_and_the_noise_of_other_cells_serves_one_without_repeats() -> None:
    runs = undertraining_runs({**UNDERTRAINING, (4000, 0.001): 5000.0})
    once = runs[(runs["steps"] == 1000) | (runs["seed"] == 0)]
    table = todays.ratios_table(todays_of(once)).query("compared == 'budget'").set_index("at")
    at = {rate: f"gpt2, one for all widths, {rate}" for rate in ("0.001", "0.002", "best rates")}
    assert table.loc[at["0.001"], "status"] == NO_RATIO
    assert table["ratio"].isna().to_dict() == {at["0.001"]: True, at["0.002"]: False, at["best rates"]: True}


def test_the_noise_of_one_block_is_not_that_of_the_other() -> None:
    runs = todays_runs({(block, 1000, 0.001): 120.0 for block in ("gpt2", "llama")})
    before = todays_of(runs).noise
    louder = runs["block"] == "llama"
    means = runs[louder].groupby(["steps", "learning_rate", "depth", "width"])["test_loss"].transform("mean")
    runs.loc[louder, "test_loss"] = means + 5 * (runs.loc[louder, "test_loss"] - means)
    found = todays_of(runs).noise
    assert found["gpt2"] == before["gpt2"]
    assert found["llama"].std == pytest.approx(5 * before["llama"].std)
    alone = todays_of(runs[~louder | (runs["seed"] == 0)]).noise
    assert alone["llama"] == alone["gpt2"] == before["gpt2"]


def test_another_budget_or_scaling_is_another_series() -> None:
    runs = todays_runs(ONE)
    tokens = runs.assign(budget="20 tokens per parameter", steps=range(1000, 1000 + len(runs)))
    analysis = todays_of(pd.concat([runs, runs.assign(base_width=96), tokens], ignore_index=True))
    assert {todays.series_of(cell) for cell in analysis.cells} == {
        "gpt2, 1,000 steps",
        "gpt2, 1,000 steps, scaled from 96",
        "gpt2, 20 tokens per parameter",
    }


def made(losses: dict[tuple[int, int], float]) -> pd.DataFrame:
    """Runs of depth 1: losses by width and seed."""
    rows = [{"depth": 1, "width": w, "seed": s, "loss": loss} for (w, s), loss in losses.items()]
    return pd.DataFrame(rows)


def test_each_seed_of_a_shape_has_a_rate_and_a_shape_without_one_is_left_out() -> None:
    at_rates = {
        0.001: made({(8, 1): 1.0, (8, 0): 1.1, (16, 0): 3.0}),
        0.002: made({(8, 1): 2.0, (8, 0): 0.9, (16, 0): 2.0}),
    }
    of_seeds = pd.DataFrame({"depth": 1, "width": 8, "seed": [0, 1], "learning_rate": [0.002, 0.001]})
    assert at_best_rates(at_rates, of_seeds)["loss"].tolist() == [0.9, 1.0]


def test_a_rate_is_picked_on_the_other_seeds_and_the_edge_is_said() -> None:
    """At width 8 each seed is luckiest at the rate that is worse for the other two."""
    low = made({(8, 0): 1.0, (8, 1): 1.3, (8, 2): 1.3, (16, 0): 1.0})
    middle = made({(8, 0): 1.1, (8, 1): 1.1, (8, 2): 1.1, (16, 0): 1.4})
    high = made({(8, 0): 2.0, (8, 1): 2.0, (8, 2): 2.0, (16, 0): 1.5})
    best = best_of_seeds({1e-3: low, 2e-3: middle, 4e-3: high})
    rates = best.set_index(["width", "seed"])["learning_rate"].to_dict()
    assert rates == {(8, 0): 2e-3, (8, 1): 2e-3, (8, 2): 2e-3, (16, 0): 1e-3}
    assert best["loss"].tolist() == [1.1, 1.1, 1.1, 1.0]  # not the lucky 1.0 of width 8
    assert best["picked_on"].tolist() == [OTHER_SEEDS] * 3 + [OWN_LOSS]
    assert best["at_edge"].tolist() == [False, False, False, True]


def test_a_shape_without_every_rate_has_no_best_one() -> None:
    best = best_of_seeds({1e-3: made({(8, 0): 1.0, (16, 0): 1.0}), 2e-3: made({(8, 0): 2.0})})
    assert best["width"].tolist() == [8]
