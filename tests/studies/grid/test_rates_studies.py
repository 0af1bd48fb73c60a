"""What the studies of several learning rates find and write: undertraining and today's decoder."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pandas as pd
import pytest
from rates_runs import UNDERTRAINING, todays_runs, undertraining_runs
from recipes import with_another, with_recipe

from shapelaw.errors import UserError
from shapelaw.fits.inputs import TEXT_AND_BLOCK
from shapelaw.studies.decoders import todays_decoder as todays
from shapelaw.studies.decoders import undertraining
from shapelaw.studies.decoders.rates import RatesAnalysis
from shapelaw.studies.grid.cells import Best
from shapelaw.studies.grid.tables import NO_RATIO
from shapelaw.studies.transitions.analysis import Options

FAST = Options(draws=150)
ONE = {("gpt2", 1000, 0.001): 120.0}


class Case(NamedTuple):
    """A study, and what is the same of both."""

    room: Any
    runs: Callable[[], pd.DataFrame]
    what: str


CASES = {
    "undertraining": Case(undertraining, undertraining_runs, "learning rate and steps"),
    "todays_decoder": Case(todays, todays_runs, "block, budget and rate"),
}
BOTH = pytest.mark.parametrize("name", CASES)


@pytest.fixture(scope="module")
def analyses() -> dict[str, RatesAnalysis]:
    return {name: one.room.analyse_cells(one.runs(), "runs.csv", FAST) for name, one in CASES.items()}


def todays_of(runs: pd.DataFrame, *observed: int) -> RatesAnalysis:
    return todays.analyse_cells(runs, "runs.csv", FAST, observed)


def width_of(cell: Any) -> float:
    return float(cell.transitions.bootstrap_rows[0]["width"])


@BOTH
def test_unusable_runs_are_a_sentence(name: str) -> None:
    runs, room = CASES[name].runs(), CASES[name].room
    for change, sentence in (
        (runs.drop(columns="learning_rate"), "lacks learning_rate"),
        (runs.assign(steps=0), "steps must be above zero"),
        (runs.assign(steps=10.5), "steps must be a whole number"),
        (runs.assign(learning_rate=0), "learning_rate must be above zero"),
        (runs[runs["depth"] == 4], f"no {CASES[name].what} with two depths"),
    ):
        with pytest.raises(UserError, match=sentence):
            room.analyse_cells(change, "runs.csv", FAST)


def test_each_cell_of_undertraining_has_its_transition(analyses: dict[str, RatesAnalysis]) -> None:
    cells = analyses["undertraining"].cells
    found = {(one.cell.value("steps"), one.cell.value("learning_rate")): width_of(one) for one in cells}
    best = {(1000, Best.RATES): 120.0, (4000, Best.RATES): 240.0}
    assert found == pytest.approx(UNDERTRAINING | best, rel=0.06)


@pytest.mark.parametrize("name", TEXT_AND_BLOCK)
def test_networks_of_other_texts_or_blocks_are_a_sentence(name: str) -> None:
    runs = with_recipe(undertraining_runs())
    assert not any(runs[column].nunique() > 1 for column in TEXT_AND_BLOCK)
    other = with_another(runs, name, runs["steps"] == runs["steps"].min())
    with pytest.raises(UserError, match=f"with different values of {name} "):
        undertraining.analyse_cells(other, "runs.csv", Options())


def test_a_bound_gives_no_ratio_and_the_noise_of_other_cells_serves_one_without_repeats() -> None:
    runs = undertraining_runs({**UNDERTRAINING, (4000, 0.001): 5000.0})
    once = runs[(runs["steps"] == 1000) | (runs["seed"] == 0)]
    table = undertraining.ratios_table(undertraining.analyse_cells(once, "runs.csv", FAST))
    table = table.set_index("learning_rate")
    assert table.loc["0.001", "status"] == NO_RATIO
    assert table["ratio"].isna().to_dict() == {"0.001": True, "0.002": False, "best rates": True}


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


def test_runs_of_two_parametrizations_and_observations_of_no_loss_are_refused() -> None:
    runs = todays_runs(ONE)
    both = pd.concat([runs, runs.assign(parametrization="completep")], ignore_index=True)
    with pytest.raises(UserError, match=r"different values of parametrization \(empty, completep\)"):
        todays_of(both)
    unread = runs.assign(schedule="constant", observations="1000=2.3")
    with pytest.raises(UserError, match="row 1: observations must be `steps:loss` pairs"):
        todays_of(unread, 500)


def test_test_losses_on_the_way_are_budgets_of_their_own() -> None:
    runs = todays_runs({("llama", 4000, 0.001): 120.0})
    early = todays_runs({("llama", 1000, 0.001): 240.0}, seed=5)
    pairs = zip(early["test_loss"], runs["test_loss"], strict=True)
    runs = runs.assign(schedule="constant", observations=[f"1000:{a!r} 4000:{b!r}" for a, b in pairs])
    analysis = todays_of(runs, 1000, 4000)
    widths = {cell.cell.value("budget"): width_of(cell) for cell in analysis.cells}
    known = {"1,000 steps, undecayed": 240.0, "4,000 steps, undecayed": 120.0}
    assert widths == pytest.approx(known, rel=0.06)
    assert todays.is_undecayed(analysis)
    alone = todays_of(runs)
    assert [cell.cell.value("budget") for cell in alone.cells] == ["4,000 steps, undecayed"]
    assert todays.is_undecayed(alone)  # also without a loss on the way
    again = todays_of(runs.assign(schedule="redecayed"), 1000)
    assert again.cells[0].cell.value("budget") == "1,000 steps, re-decayed"
    assert not todays.is_undecayed(again)


def test_a_loss_that_two_runs_of_a_network_have_is_taken_once() -> None:
    """Two grids of a constant rate: at 1,000 steps there are the end of the short runs and a loss of the long ones."""
    short = todays_runs({("llama", 1000, 0.001): 240.0}, seed=5)
    long = todays_runs({("llama", 4000, 0.001): 120.0})
    observed = [f"500:3.0 1000:{loss!r} 4000:2.0" for loss in short["test_loss"]]
    both = [short.assign(observations="500:3.0"), long.assign(observations=observed)]
    runs = pd.concat(both, ignore_index=True).assign(schedule="constant")
    cells = {cell.cell.value("budget"): cell for cell in todays_of(runs, 500, 1000).cells}
    assert {budget: len(cell.runs) for budget, cell in cells.items()} == {
        f"{steps} steps, undecayed": len(long) for steps in ("500", "1,000", "4,000")
    }
    assert width_of(cells["1,000 steps, undecayed"]) == pytest.approx(240.0, rel=0.06)
