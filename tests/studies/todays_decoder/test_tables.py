"""The tables of the study of today's decoder."""

import pytest
from todays_runs import NOISE, todays_runs

from shapelaw.studies.grid.rates import RatesAnalysis
from shapelaw.studies.grid.tables import losses_table
from shapelaw.studies.todays_decoder.analysis import analyse_cells, named
from shapelaw.studies.todays_decoder.tables import (
    crossings_table,
    ratios_table,
    seed_noise_table,
)
from shapelaw.studies.transitions.analysis import Options


@pytest.fixture(scope="module")
def analysis() -> RatesAnalysis:
    return analyse_cells(todays_runs(), "runs.csv", Options(draws=200))


def test_crossings_stand_by_block_budget_and_rate(analysis: RatesAnalysis) -> None:
    table = crossings_table(analysis).set_index(["block", "budget", "learning_rate"])
    assert len(table) == 8
    assert table.loc[("llama", "1,000 steps", "best rates"), "width"] == pytest.approx(240, rel=0.06)
    assert (table["width_low"] < table["width_high"]).all()


def test_cells_that_differ_in_one_thing_are_compared(analysis: RatesAnalysis) -> None:
    table = ratios_table(analysis)
    blocks = table[table["compared"] == "block"].set_index("at")["ratio"]
    assert blocks.to_dict() == pytest.approx(
        {
            "one for all widths, 1,000 steps, 0.001": 2.0,
            "one for all widths, 1,000 steps, 0.002": 1.0,
            "one for all widths, 1,000 steps, best rates": 2.0,
            "one for all widths, 4,000 steps, 0.001": 1.5,
        },
        rel=0.1,
    )
    budgets = table[table["compared"] == "budget"]
    assert budgets["ratio"].tolist() == pytest.approx([1.0, 0.75], rel=0.08)
    rates = table[table["compared"] == "learning_rate"]
    assert set(rates["other"]) == {"best rates"}
    assert len(rates) == 4


def test_losses_are_of_the_rates_that_were_trained(analysis: RatesAnalysis) -> None:
    table = losses_table(analysis.trained, named)
    assert set(table["learning_rate"]) == {"0.001", "0.002"}
    assert len(table) == 6 * 2 * 9


def test_every_block_has_its_pooled_noise(analysis: RatesAnalysis) -> None:
    last = seed_noise_table(analysis).tail(2)
    assert last["block"].tolist() == ["gpt2, pooled", "llama, pooled"]
    assert last["loss_std"].tolist() == pytest.approx([NOISE] * 2, rel=0.4)
