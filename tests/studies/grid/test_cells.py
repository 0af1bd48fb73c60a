"""Which runs of a table are one cell, and its transitions, effects and best shapes where these are known."""

import math
from functools import partial
from itertools import combinations

import pandas as pd
import pytest
from grid_runs import HEADS_COST, RANK_COST, analysed, grid_runs
from hypothesis import given, settings
from hypothesis import strategies as st
from small import LAPTOP

from shapelaw.errors import Parts, UserError
from shapelaw.studies.grid.analysis import analyse_cells, analyse_grid, pooled, require_two_depths
from shapelaw.studies.grid.cells import (
    Best,
    Cell,
    cells_of,
    differing_in_one,
    frame_of,
    name_of,
    order_of,
    typed,
)
from shapelaw.studies.transitions.analysis import Options, analyse_runs


def names(table: pd.DataFrame, *axes: str, **options) -> list[str]:
    return [cell.name for cell in cells_of(table, axes or None, source="runs.csv", **options).cells]


def test_a_grid_splits_by_what_it_lists_and_names_what_follows() -> None:
    found = cells_of(grid_runs(), ("depth", "width", "heads", "embedding_rank", "vocab_size"), source="x")
    assert found.axes == ("vocab_size", "embedding_rank", "heads")
    assert len(found.cells) == 12
    first = found.cells[0]
    assert first.values == {"vocab_size": 257, "embedding_rank": 8, "heads": 1}
    assert first.rules == ("attention_dim = width",)
    assert found.cells[4].name == "V = 257, full rank, H = 2"
    assert found.cells[4].rules == ("attention_dim = width / 2",)
    assert found.values_of("embedding_rank") == [8, None]
    assert found.name_of([cell for cell in found.cells if cell.values["heads"] == 2]) == "H = 2"


def test_a_table_from_elsewhere_has_the_same_cells() -> None:
    runs = grid_runs()
    assert names(runs) == names(runs, "heads", "embedding_rank", "vocab_size")


@settings(max_examples=20)
@given(st.permutations(range(36)))
def test_the_order_of_rows_does_not_matter(order: list[int]) -> None:
    runs = grid_runs(vocab_sizes=(257,))
    assert names(runs.iloc[order]) == names(runs)


def test_heads_at_one_head_dimension_follow_from_the_width() -> None:
    fixed = pd.concat([grid_runs(heads=(1,)).assign(attention_dim=size) for size in (8, 16)])
    fixed = fixed.assign(heads=fixed["width"] // fixed["attention_dim"])
    found = cells_of(fixed, source="x")
    assert found.axes == ("vocab_size", "embedding_rank", "attention_dim")
    assert {cell.rules for cell in found.cells} == {("heads = width / 8",), ("heads = width / 16",)}


def test_a_column_that_grows_with_the_width_splits_by_its_ratio() -> None:
    runs = grid_runs(heads=(2,), ranks=(None,), vocab_sizes=(257,))
    both = pd.concat([runs.assign(ff_width=factor * runs["width"]) for factor in (2, 4)])
    found = cells_of(both, source="x")
    assert [cell.values for cell in found.cells] == [{"ff_width / width": 2}, {"ff_width / width": 4}]
    assert found.cells[0].rules == ("attention_dim = width / 2", "ff_width = 2 width")
    empty = both.assign(ff_width=both["ff_width"].where(both["ff_width"] != 4 * both["width"]))
    assert names(empty) == names(both)


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"learning_rate": lambda runs: 0.002 / runs["depth"]}, "by depth (1: 0.002, 2: 0.001)"),
        ({"learning_rate": lambda runs: 0.1 / runs["width"]}, "learning_rate by width"),
        ({"learning_rate": lambda runs: runs["depth"] + runs["width"] % 7}, "by depth and width"),
        ({"steps": lambda runs: runs["total_params"]}, "steps = 1.02e+03 tokens per parameter"),
        ({"steps": lambda runs: runs["width"] ** 2 + runs["depth"], "budget": "20 tpp"}, "steps follow"),
    ],
)
def test_what_follows_from_depth_and_width_is_named(changes, rule: str) -> None:
    runs = grid_runs(heads=(2,), ranks=(None,), vocab_sizes=(257,))
    found = cells_of(runs.assign(**changes), source="x")
    assert len(found.cells) == 1
    assert rule in found.cells[0].rules[-1]


def test_empty_fields_are_their_defaults_and_empty_columns_may_be_left_out() -> None:
    runs = grid_runs(heads=(2,), ranks=(None,), vocab_sizes=(257,))
    named = pd.concat([runs.assign(block=None, kv_heads=None), runs.assign(block="gpt2", kv_heads=2, seed=9)])
    assert names(named) == ["all runs"]
    assert names(pd.concat([runs.assign(block=None), runs.assign(block="llama")])) == ["gpt2", "llama"]
    runs = grid_runs(ranks=(None,), vocab_sizes=(257,)).drop(columns="embedding_rank")
    assert names(runs, "heads", "embedding_rank") == ["H = 1", "H = 2", "H = 4"]


def test_measured_and_unknown_columns_never_split() -> None:
    runs = grid_runs(heads=(2,), ranks=(None,), vocab_sizes=(257,))
    runs = runs.assign(train_loss=range(len(runs)), mood=range(len(runs)), key=range(len(runs)))
    assert names(runs) == ["all runs"]
    assert len(names(runs, "mood")) == len(runs)  # unless a grid lists it


def test_rates_and_steps_split_a_grid_and_are_refused_elsewhere() -> None:
    runs = grid_runs(heads=(2,), ranks=(None,), vocab_sizes=(257,))
    rates = pd.concat([runs.assign(learning_rate=rate) for rate in (0.002, 0.001)])
    assert names(rates, "learning_rate") == ["rate 0.001", "rate 0.002"]
    with pytest.raises(UserError, match=r"several values of learning_rate \(0.001, 0.002\) at one depth and"):
        cells_of(rates, source="runs.csv")
    with pytest.raises(UserError, match="several values of steps"):
        cells_of(pd.concat([runs, runs.assign(steps=200)]), source="runs.csv")


@pytest.mark.parametrize(
    ("change", "axes", "sentence"),
    [
        ({}, ("head",), "no column head, which is listed as an axis; did you mean heads"),
        ({}, ("zzz",), "no column zzz, .* axes are columns such as corpus"),
        ({"train_loss": 1.0}, ("train_loss",), "train_loss of runs.csv is measured"),
        ({"width": "wide"}, None, "width must be a finite number"),
    ],
)
def test_wrong_tables_and_axes_are_sentences(change, axes, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        cells_of(grid_runs().assign(**change), axes, source="runs.csv")
    with pytest.raises(UserError, match="lacks seed"):
        cells_of(grid_runs().drop(columns="seed"), source="runs.csv")


def test_the_committed_runs_are_one_cell_and_a_copy_with_other_heads_is_another() -> None:
    runs = pd.read_parquet(LAPTOP)
    assert names(runs) == ["all runs"]
    other = runs.assign(heads=4, attention_dim=runs["width"] // 4, seed=runs["seed"] + 10)
    assert names(pd.concat([runs, other])) == ["H = 2", "H = 4"]


def test_values_are_said_sorted_and_typed() -> None:
    values = {
        "steps": 4000,
        "corpus": "wiki",
        "base_width": None,
        "learning_rate": Best.RATES,
        "kv_heads": None,
    }
    assert name_of(values) == "4,000 steps, wiki, one rate for all widths, best rates, no kv_heads"
    assert sorted([None, Best.RATES, "x", 2, 0.5], key=order_of) == [0.5, 2, "x", None, Best.RATES]
    assert typed(pd.Series([1, None], dtype=object)).dtype == "Int64"
    table = frame_of([({"r": None}, pd.DataFrame({"x": [1.5]})), ({"r": 3}, pd.DataFrame({"x": [2.5]}))])
    assert table.to_csv(index=False) == "r,x\n,1.5\n3,2.5\n"
    (cell,) = cells_of(grid_runs(heads=(1,), ranks=(8,), vocab_sizes=(257,)), source="x").cells
    assert cell.value("heads") == 1
    assert cell.value("depth") is None


def test_pairs_that_differ_in_one_thing_are_those_of_all_pairs():
    named = [
        {"heads": heads, "rank": rank, "V": size}
        for heads in (1, 2, 4)
        for rank in (8, None)
        for size in (257, 500)
    ]
    named.append({"heads": 8, "rank": 16, "V": 257})
    for axis in ("heads", "rank", "V"):
        slow = [
            (one, other)
            for one, other in combinations(range(len(named)), 2)
            if [name for name, value in named[one].items() if named[other][name] != value] == [axis]
        ]
        assert differing_in_one(named, axis) == slow


FEW = Options(draws=200)


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
