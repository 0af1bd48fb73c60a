"""Transitions of each learning rate and number of steps against known ones."""

import pytest
from recipes import with_another, with_recipe
from undertraining_runs import CELLS, undertraining_runs

from shapelaw.errors import UserError
from shapelaw.fits.inputs import TEXT_AND_BLOCK
from shapelaw.studies.grid.cells import Best
from shapelaw.studies.transitions.analysis import Options
from shapelaw.studies.undertraining.analysis import analyse_cells


def test_each_cell_has_its_transition_and_the_best_rates_come_last() -> None:
    analysis = analyse_cells(undertraining_runs(), "runs.csv", Options(draws=200))
    assert [cell.cell.name for cell in analysis.cells] == [
        *("1,000 steps, rate 0.001", "1,000 steps, rate 0.002", "1,000 steps, best rates"),
        *("4,000 steps, rate 0.001", "4,000 steps, rate 0.002", "4,000 steps, best rates"),
    ]
    found = {
        (cell.cell.value("steps"), cell.cell.value("learning_rate")): cell.transitions.bootstrap_rows[0][
            "width"
        ]
        for cell in analysis.cells
    }
    assert {key: found[key] for key in CELLS} == pytest.approx(CELLS, rel=0.06)
    assert (found[1000, Best.RATES], found[4000, Best.RATES]) == pytest.approx((120.0, 240.0), rel=0.06)
    assert analysis.noise[None].dof == 4 * 2 * 2 * 2  # cells, depths, repeated shapes, seeds less one


def test_the_noise_of_other_cells_serves_a_cell_without_repeats() -> None:
    runs = undertraining_runs()
    once = runs[(runs["steps"] == 1000) | (runs["seed"] == 0)]
    analysis = analyse_cells(once, "runs.csv", Options(draws=200))
    assert {cell.transitions.bootstrap_rows[0]["status"] for cell in analysis.cells} == {"crossing"}


@pytest.mark.parametrize("name", TEXT_AND_BLOCK)
def test_networks_of_other_texts_or_blocks_are_a_sentence(name: str) -> None:
    runs = with_recipe(undertraining_runs())
    analyse_cells(runs, "runs.csv", Options(draws=2))
    with pytest.raises(UserError, match=f"with different values of {name} "):
        analyse_cells(with_another(runs, name, runs["steps"] == runs["steps"].min()), "runs.csv", Options())


def test_unusable_runs_are_a_sentence() -> None:
    runs = undertraining_runs()
    for change, sentence in (
        (runs.drop(columns="learning_rate"), "lacks learning_rate"),
        (runs.assign(steps=0), "steps must be above zero"),
        (runs.assign(steps=10.5), "steps must be a whole number"),
        (runs[runs["depth"] == 4], "no learning rate and steps with two depths"),
    ):
        with pytest.raises(UserError, match=sentence):
            analyse_cells(change, "runs.csv", Options(draws=100))
