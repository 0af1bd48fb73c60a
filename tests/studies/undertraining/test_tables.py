"""The tables of the study of undertraining."""

import pytest
from undertraining_runs import CELLS, NOISE, undertraining_runs

from shapelaw.studies.grid.rates import RatesAnalysis
from shapelaw.studies.grid.tables import losses_table
from shapelaw.studies.transitions.analysis import Options
from shapelaw.studies.transitions.ratios import NO_RATIO
from shapelaw.studies.undertraining.analysis import analyse_cells, named
from shapelaw.studies.undertraining.tables import ratios_table, seed_noise_table


@pytest.fixture(scope="module")
def analysis() -> RatesAnalysis:
    return analyse_cells(undertraining_runs(), "runs.csv", Options(draws=300))


def test_a_transition_that_moves_is_told_from_one_that_stays(analysis: RatesAnalysis) -> None:
    table = ratios_table(analysis).set_index("learning_rate")
    assert table["ratio"].to_dict() == pytest.approx(
        {"0.001": 2.0, "0.002": 1.0, "best rates": 2.0}, rel=0.08
    )
    assert table.loc["0.001", "p_equal"] < 1e-4
    assert table.loc["0.002", "p_equal"] > 0.003
    assert (table["ratio_low"] < table["ratio"]).all()
    assert (table["ratio"] < table["ratio_high"]).all()


def test_a_bound_gives_no_ratio() -> None:
    beyond = undertraining_runs({**CELLS, (4000, 0.001): 5000.0})
    table = ratios_table(analyse_cells(beyond, "runs.csv", Options(draws=100))).set_index("learning_rate")
    assert table.loc["0.001", "status"] == NO_RATIO
    assert table["ratio"].isna().to_dict() == {"0.001": True, "0.002": False, "best rates": True}


def test_losses_are_of_the_rates_that_were_trained(analysis: RatesAnalysis) -> None:
    table = losses_table(analysis.trained, named)
    assert set(table["learning_rate"]) == {"0.001", "0.002"}
    assert len(table) == 4 * 2 * 9


def test_every_cell_has_the_pooled_noise(analysis: RatesAnalysis) -> None:
    last = seed_noise_table(analysis).iloc[-1]
    assert last["steps"] == "pooled"
    assert last["loss_std"] == pytest.approx(NOISE, rel=0.4)
