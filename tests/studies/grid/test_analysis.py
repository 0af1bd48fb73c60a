"""Cells' transitions, effects of axes and best shapes of runs whose effects are known."""

import math
from functools import partial

import pandas as pd
import pytest
from grid_runs import HEADS_COST, RANK_COST, analysed, grid_runs
from small import REPOSITORY

from shapelaw.errors import Parts, UserError
from shapelaw.studies.grid.analysis import analyse_cells, analyse_grid, pooled, require_two_depths
from shapelaw.studies.grid.cells import Cell, cells_of
from shapelaw.studies.transitions.analysis import Options, analyse_runs

FEW = Options(draws=200)
LAPTOP = REPOSITORY / "docs" / "results" / "laptop_depth_width.parquet"


@pytest.mark.parametrize(
    ("widths", "depths"), [((16, 24, 80), (1, 2, 4)), ((16, 32, 48), (2,)), ((32,), (1, 2))]
)
def test_effects_without_noise_are_exact(widths: tuple[int, ...], depths: tuple[int, ...]) -> None:
    analysis = analysed(depths=depths, widths=widths)
    of = {(e.axis, e.one.values[e.axis], e.other.values[e.axis]): e for e in analysis.effects}
    assert len(analysis.effects) == 12 + 6 + 6
    assert {e.unit for e in analysis.effects} == {"bits_per_byte"}
    assert of["heads", 1, 4].found.mean == pytest.approx(2 * HEADS_COST)
    assert of["heads", 1, 4].found.value == pytest.approx(2 * HEADS_COST)
    assert of["embedding_rank", 8, None].found.mean == pytest.approx(-RANK_COST)
    assert of["vocab_size", 257, 500].found.mean == pytest.approx(0)
    assert math.isnan(of["heads", 1, 4].found.mean_err)  # one seed each


def test_widths_that_the_cells_do_not_share_are_interpolated() -> None:
    one = grid_runs(heads=(1,), ranks=(None,), vocab_sizes=(257,))
    other = grid_runs(widths=(20, 40), heads=(4,), ranks=(None,), vocab_sizes=(257,))
    (effect,) = analyse_grid(pd.concat([one, other]), "x", FEW, ("heads",)).effects
    assert effect.found.mean == pytest.approx(2 * HEADS_COST)
    assert len(effect.found.size) == 2 * 3  # depths; 20, 32, 40 of 16, 20, 32, 40, 48


def test_the_interval_holds_the_truth_and_noise_is_that_of_a_text() -> None:
    analysis = analysed(seeds=3, noise=0.01)
    # a slope with the width takes up to one of them
    assert [round(noise.dof + 0.49) for noise in analysis.noise.values()] == [2 * 36, 2 * 36]
    by_text = [noise.std for noise in analysis.noise.values()]
    assert by_text == pytest.approx([0.01, 0.018], rel=0.25)
    found = [e for e in analysis.effects if e.axis == "heads" and e.one.values["heads"] == 1]
    off = [(e.found.mean - HEADS_COST * math.log2(e.other.values["heads"])) / e.found.mean_err for e in found]
    assert max(map(abs, off)) < 3


def test_a_mixed_table_has_the_crossing_of_its_original() -> None:
    """Heads mixed into one kind of network would raise the noise from 0.0077 to 0.0287 and the error threefold."""
    runs = pd.read_parquet(LAPTOP)
    other = runs.assign(heads=4, attention_dim=runs["width"] // 4, seed=runs["seed"] + 10)
    other["test_loss"] += 0.05
    mixed = pd.concat([runs, other], ignore_index=True)
    cells = cells_of(mixed, source="mixed")
    by_heads = {"pool": lambda cell: cell.value("heads"), "parts": Parts()}
    alone, _ = analyse_cells(cells.cells, "mixed", Options(), **by_heads)
    analysis = analyse_grid(mixed, "mixed")
    original = analyse_runs(alone[0].runs, Options()).bootstrap_rows[0]
    assert (round(original["width"], 1), round(original["width_err"], 1)) == (137.2, 3.2)
    assert alone[0].transitions.bootstrap_rows[0] == pytest.approx(original, nan_ok=True)
    widths = [one.transitions.bootstrap_rows[0]["width"] for one in analysis.analyses]
    assert widths == pytest.approx([137.2, 137.2], abs=0.05)
    (effect,) = analysis.effects
    assert effect.found.mean == pytest.approx(0.05)
    assert 0.001 < effect.found.mean_err < 0.0025


def test_a_pool_without_repeats_borrows_where_asked() -> None:
    twice = pd.DataFrame({"depth": 1, "width": 8, "seed": [0, 1], "loss": [1.0, 1.2]})
    runs = [(Cell({"heads": heads}, (), rows), rows) for heads, rows in ((1, twice), (2, twice[:1]))]
    of_heads = partial(pooled, runs, lambda cell: cell.value("heads"), parts=Parts())
    assert of_heads()[2] is None
    assert of_heads(borrow=True)[2] == of_heads()[1]
    assert of_heads(0.5)[2].std == 0.5


def test_wrong_tables_are_sentences() -> None:
    runs = grid_runs(heads=(1,), ranks=(None,))
    with pytest.raises(UserError, match=r"x \(V = 257\), row .*: test_loss must be above zero"):
        analyse_grid(runs.assign(test_loss=-1), "x", FEW)
    with pytest.raises(UserError, match="10 bootstrap draws are too few"):
        analyse_grid(runs, "x", Options(draws=10))
    one_depth = analyse_grid(runs[runs["depth"] == 1], "x", FEW)
    with pytest.raises(UserError, match="x has no vocabulary with two depths"):
        require_two_depths([one.runs for one in one_depth.analyses], "x", "vocabulary")
