"""Transitions of each block, budget and rate against known ones, and what the study of today's decoder writes."""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from todays_runs import CELLS, DEPTHS, NOISE, todays_runs

from shapelaw.errors import UserError
from shapelaw.report.write import Table, check_declared, write_results
from shapelaw.studies.grid.cells import Best
from shapelaw.studies.grid.rates import RatesAnalysis, rates_figure
from shapelaw.studies.grid.tables import losses_table
from shapelaw.studies.registry import STUDIES
from shapelaw.studies.todays_decoder.results import (
    STUDY,
    UNDECAYED,
    add_options,
    analyse_cells,
    answer,
    crossings_figure,
    crossings_table,
    is_undecayed,
    name_of,
    named,
    ratios_table,
    results,
    series_of,
)
from shapelaw.studies.transitions.analysis import Options
from shapelaw.studies.transitions.figures import NO_TRANSITION

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


def test_all_that_is_declared_is_made(tmp_path: Path) -> None:
    todays_runs().to_csv(tmp_path / "runs.csv", index=False)
    parser = argparse.ArgumentParser()
    parser.add_argument("input", type=Path)
    parser.add_argument("--keep", action="store_true")
    add_options(parser)
    made = results(parser.parse_args([str(tmp_path / "runs.csv"), "--draws", "100"]))
    study = STUDIES["todays_decoder"]
    check_declared(made, study.tables, study.figures)
    write_results(made, tmp_path / "out", study.name)
    assert "llama, 4,000 steps, rate 0.001: depth 4 against 8: width 1" in made.summary
    assert "From gpt2 to llama (one for all widths, 1,000 steps, best rates) the transition" in made.summary
    assert "best rates are the lowest or the highest that was tried" in made.summary
    assert (
        "with one seed and picked by the loss that is compared; the others are picked on other seeds"
        in made.summary
    )
    assert "Seed noise: " in made.summary
    assert UNDECAYED not in made.summary


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
    last = STUDY.seed_noise(analysis).tail(2)
    assert last["block"].tolist() == ["gpt2, pooled", "llama, pooled"]
    assert last["loss_std"].tolist() == pytest.approx([NOISE] * 2, rel=0.4)


def test_every_cell_is_drawn() -> None:
    analysis = analyse_cells(todays_runs(), "runs.csv", Options(draws=100))
    losses = rates_figure(analysis.cells, series_of).figure()
    titles = [axis.get_title(loc="left").replace("\n", " ") for axis in losses.axes if axis.axison]
    assert titles == [name_of(cell) for cell in analysis.cells]
    assert len({axis.get_xlim() for axis in losses.axes}) == 1
    first, second = crossings_figure(analysis).figure().axes
    assert first.get_ylim() == second.get_ylim()
    assert [axis.get_title(loc="left") for axis in (first, second)] == ["1,000 steps", "4,000 steps"]
    assert set(first.get_legend_handles_labels()[1]) == {"gpt2", "llama"}
    assert [label.get_text() for label in first.get_xticklabels()] == ["0.001", "0.002", "best"]


def test_without_a_transition_the_figure_says_so() -> None:
    once = todays_runs(dict(list(CELLS.items())[:1])).query(
        "seed == 0"
    )  # without noise nothing is significant
    assert crossings_figure(analyse_cells(once, "runs.csv", Options(draws=100))) == NO_TRANSITION


def test_a_budget_without_a_transition_has_no_panel_and_is_named() -> None:
    runs = todays_runs()
    later = runs["steps"] == runs["steps"].max()
    deep = later & (runs["depth"] == DEPTHS[1])
    turn = runs.loc[deep, "width"].rank(method="dense") % 2
    runs.loc[deep, "test_loss"] += np.where(
        turn, 0.3, -0.3
    )  # better and worse in turn: no transition, no bound
    analysis = analyse_cells(runs, "runs.csv", Options(draws=100))
    (axis,) = (figure := crossings_figure(analysis).figure()).axes
    assert axis.get_title(loc="left") == "1,000 steps"
    assert figure.get_suptitle() == f"4,000 steps: {NO_TRANSITION}"


def test_blocks_are_told_apart_without_colour() -> None:
    axis = crossings_figure(analyse_cells(todays_runs(), "runs.csv", Options(draws=100))).figure().axes[0]
    drawn = {label: handle for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    markers = {name: bars.lines[0].get_marker() for name, bars in drawn.items()}
    assert len(set(markers.values())) == len(markers) == 2


def told(*rows):
    columns = ["one", "other", "at", "ratio", "ratio_low", "ratio_high", "p_equal"]
    transitions = pd.DataFrame({"status": ["crossing", "too few sizes"]})
    return answer(
        {"ratios": Table(pd.DataFrame(rows, columns=columns), ""), "transitions": Table(transitions, "")}
    )


def test_ratios_the_clearest_first():
    found = told(
        ("gpt2", "llama", "rate 0.001", 1.1, 0.9, 1.3, 0.5),
        ("gpt2", "llama", "best rates", 1.5, 1.3, 1.7, 0.01),
    )
    assert found.decided
    assert found.sentence.startswith(
        "No: the transition moves significantly in 1 of 2 comparisons: from gpt2 to llama (best rates) by 1.50 "
    )
    assert not told(("gpt2", "llama", "rate 0.001", 1.1, 0.9, 1.3, 0.5)).decided


def test_nothing_to_compare_is_undecided():
    found = told(("gpt2", "llama", "rate 0.001", None, None, None, None))
    assert (found.decided, found.sentence) == (
        False,
        "No two transitions can be compared: 1 of 2 are crossings.",
    )
