"""What the study of undertraining writes."""

from pathlib import Path

import pandas as pd
import pytest
from recipes import with_another, with_recipe
from undertraining_runs import CELLS, NOISE, undertraining_runs

from shapelaw.errors import UserError
from shapelaw.fits.inputs import TEXT_AND_BLOCK
from shapelaw.report.write import Table, check_declared, write_results
from shapelaw.studies.grid.cells import Best
from shapelaw.studies.grid.rates import RatesAnalysis, rates_figure
from shapelaw.studies.grid.tables import NO_RATIO, losses_table
from shapelaw.studies.registry import STUDIES
from shapelaw.studies.transitions.analysis import Options
from shapelaw.studies.undertraining.results import (
    STUDY,
    analyse_cells,
    answer,
    named,
    present,
    ratios_table,
    steps_of,
    transition_rate_figure,
)


def test_all_that_is_declared_is_made(tmp_path: Path) -> None:
    analysis = analyse_cells(undertraining_runs(), "runs.csv", Options(draws=200))
    results, study = present(analysis), STUDIES["undertraining"]
    check_declared(results, study.tables, study.figures)
    write_results(results, tmp_path / "out", study.name)
    assert "4,000 steps, rate 0.001: depth 4 against 8: width 2" in results.summary
    assert "From 1,000 to 4,000 steps the transition from depth 4 moves by a factor of " in results.summary
    assert "36 of 36 best rates are the lowest or the highest that was tried" in results.summary


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
    last = STUDY.seed_noise(analysis).iloc[-1]
    assert last["steps"] == "pooled"
    assert last["loss_std"] == pytest.approx(NOISE, rel=0.4)


def test_every_cell_is_drawn() -> None:
    runs = undertraining_runs()
    without = runs[(runs["steps"] == 1000) | (runs["learning_rate"] == 0.001)]
    analysis = analyse_cells(without, "runs.csv", Options(draws=100))
    panels = rates_figure(analysis.cells, steps_of).figure().axes
    titles = [axis.get_title(loc="left").replace("\n", " ") for axis in panels if axis.axison]
    assert titles == [cell.cell.name for cell in analysis.cells]
    (axis,) = transition_rate_figure(analysis).figure().axes
    assert set(axis.get_legend_handles_labels()[1]) == {"1,000 steps", "4,000 steps"}
    assert [label.get_text() for label in axis.get_xticklabels()] == ["0.001", "0.002", "best"]


def test_without_a_transition_the_figure_says_so() -> None:
    once = undertraining_runs().query("seed == 0")  # without noise nothing is significant
    why = transition_rate_figure(analyse_cells(once, "runs.csv", Options(draws=100)))
    assert why == "there is no transition within the widths that were trained"


def tables(*rows):
    columns = [
        "learning_rate",
        "depth",
        "deeper_depth",
        "few_steps",
        "many_steps",
        "ratio",
        "ratio_low",
        "ratio_high",
    ]
    return {"ratios": Table(pd.DataFrame(rows, columns=[*columns, "p_equal", "status"]), "")}


def test_the_best_rates_decide():
    one = (0.001, 1, 2, 1000, 4000, 0.9, 0.8, 1.0, 0.04, "measured")
    best = ("best rates", 1, 2, 1000, 4000, 0.8, 0.7, 0.9, 0.001, "measured")
    found = answer(tables(one, best))
    assert found.decided
    assert found.sentence == (
        "Yes: from 1,000 to 4,000 steps, at the best rates, the width where depth 2 overtakes 1 moves by a factor of "
        "0.80 (0.70 to 0.90)."
    )


def test_no_significant_move_and_nothing_to_compare_are_undecided():
    unmoved = (0.001, 1, 2, 1000, 4000, 0.9, 0.7, 1.1, 0.4, "measured")
    assert "does not move significantly" in answer(tables(unmoved)).sentence
    assert not answer(tables(unmoved)).decided
    none = (0.001, 1, 2, 1000, 4000, None, None, None, float("nan"), "not both are crossings")
    assert answer(tables(none)).sentence.endswith("not both are crossings.")
    assert not answer(tables()).decided
