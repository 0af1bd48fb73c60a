"""Transitions of each block, budget and rate against known ones."""

import pandas as pd
import pytest
from todays_runs import CELLS, todays_runs

from shapelaw.errors import UserError
from shapelaw.studies.grid.cells import Best
from shapelaw.studies.todays_decoder.analysis import analyse_cells, is_undecayed, name_of, series_of
from shapelaw.studies.transitions.analysis import Options

FAST = Options(draws=150)


def test_each_cell_has_its_transition_and_the_best_rates_come_last() -> None:
    analysis = analyse_cells(todays_runs(), "runs.csv", FAST)
    assert [name_of(cell) for cell in analysis.cells] == [
        *(f"{block}, 1,000 steps, {rate}" for block in ("gpt2", "llama") for rate in RATES),
        *("gpt2, 4,000 steps, rate 0.001", "llama, 4,000 steps, rate 0.001"),
    ]
    found = {
        tuple(map(cell.cell.value, ("block", "budget", "learning_rate"))): cell for cell in analysis.cells
    }
    widths = {key: cell.transitions.bootstrap_rows[0]["width"] for key, cell in found.items()}
    known = {(block, f"{steps:,} steps", rate): width for (block, steps, rate), width in CELLS.items()}
    assert {key: widths[key] for key in known} == pytest.approx(known, rel=0.06)
    assert widths["llama", "1,000 steps", Best.RATES] == pytest.approx(240.0, rel=0.06)
    for block in ("gpt2", "llama"):
        noise = analysis.noise[block]
        assert noise is not None
        assert noise.dof == len(CELLS) / 2 * 2 * 2 * 2  # its cells, depths, repeated shapes, seeds less one


def test_the_noise_of_one_block_is_not_that_of_the_other() -> None:
    runs = todays_runs()
    louder = runs["block"] == "llama"
    means = runs[louder].groupby(["steps", "learning_rate", "depth", "width"])["test_loss"].transform("mean")
    runs.loc[louder, "test_loss"] = means + 5 * (runs.loc[louder, "test_loss"] - means)
    found, before = (analyse_cells(one, "runs.csv", FAST).noise for one in (runs, todays_runs()))
    assert found["gpt2"] == before["gpt2"]
    assert found["llama"].std == pytest.approx(5 * before["llama"].std)
    alone = analyse_cells(runs[~louder | (runs["seed"] == 0)], "runs.csv", FAST).noise
    assert alone["llama"] == alone["gpt2"] == before["gpt2"]


RATES = ("rate 0.001", "rate 0.002", "best rates")


def test_another_budget_or_scaling_is_another_series() -> None:
    runs = todays_runs({("gpt2", 1000, 0.001): 120.0})
    scaled = runs.assign(base_width=96)
    tokens = runs.assign(budget="20 tokens per parameter", steps=range(1000, 1000 + len(runs)))
    analysis = analyse_cells(pd.concat([runs, scaled, tokens], ignore_index=True), "runs.csv", FAST)
    assert {series_of(cell) for cell in analysis.cells} == {
        "gpt2, 1,000 steps",
        "gpt2, 1,000 steps, scaled from 96",
        "gpt2, 20 tokens per parameter",
    }


def test_runs_of_two_parametrizations_are_refused() -> None:
    runs = todays_runs({("gpt2", 1000, 0.001): 120.0})
    both = pd.concat([runs, runs.assign(parametrization="completep")], ignore_index=True)
    with pytest.raises(UserError, match=r"different values of parametrization \(empty, completep\)"):
        analyse_cells(both, "runs.csv", FAST)


def test_test_losses_on_the_way_are_budgets_of_their_own() -> None:
    runs = todays_runs({("llama", 4000, 0.001): 120.0})
    early = todays_runs({("llama", 1000, 0.001): 240.0}, seed=5)
    pairs = zip(early["test_loss"], runs["test_loss"], strict=True)
    runs = runs.assign(schedule="constant", observations=[f"1000:{a!r} 4000:{b!r}" for a, b in pairs])
    analysis = analyse_cells(runs, "runs.csv", FAST, [1000, 4000])
    assert {
        cell.cell.value("budget"): cell.transitions.bootstrap_rows[0]["width"] for cell in analysis.cells
    } == pytest.approx({"1,000 steps, undecayed": 240.0, "4,000 steps, undecayed": 120.0}, rel=0.06)
    assert is_undecayed(analysis)
    alone = analyse_cells(runs, "runs.csv", FAST)
    assert [cell.cell.value("budget") for cell in alone.cells] == ["4,000 steps, undecayed"]
    assert is_undecayed(alone)  # also without a loss on the way
    again = analyse_cells(runs.assign(schedule="redecayed"), "runs.csv", FAST, [1000])
    assert again.cells[0].cell.value("budget") == "1,000 steps, re-decayed"
    assert not is_undecayed(again)


def test_a_loss_that_two_runs_of_a_network_have_is_taken_once() -> None:
    """Two grids of a constant rate: at 1,000 steps there are the end of the short runs and a loss of the long ones."""
    short = todays_runs({("llama", 1000, 0.001): 240.0}, seed=5)
    long = todays_runs({("llama", 4000, 0.001): 120.0})
    observed = [f"500:3.0 1000:{loss!r} 4000:2.0" for loss in short["test_loss"]]
    runs = pd.concat(
        [short.assign(observations="500:3.0"), long.assign(observations=observed)], ignore_index=True
    ).assign(schedule="constant")
    cells = {
        cell.cell.value("budget"): cell for cell in analyse_cells(runs, "runs.csv", FAST, [500, 1000]).cells
    }
    assert {budget: len(cell.runs) for budget, cell in cells.items()} == {
        f"{steps} steps, undecayed": len(long) for steps in ("500", "1,000", "4,000")
    }
    row = cells["1,000 steps, undecayed"].transitions.bootstrap_rows[0]
    assert row["width"] == pytest.approx(240.0, rel=0.06)


def test_unusable_runs_are_a_sentence() -> None:
    runs = todays_runs({("gpt2", 1000, 0.001): 120.0})
    for change, sentence in (
        (runs.drop(columns="learning_rate"), "lacks learning_rate"),
        (runs.assign(steps=0), "steps must be above zero"),
        (runs.assign(steps=10.5), "steps must be a whole number"),
        (runs[runs["depth"] == 4], "no block, budget and rate with two depths"),
        (
            runs.assign(schedule="constant", observations="1000=2.3"),
            "row 1: observations must be `steps:loss` pairs",
        ),
    ):
        with pytest.raises(UserError, match=sentence):
            analyse_cells(change, "runs.csv", FAST, [500])
