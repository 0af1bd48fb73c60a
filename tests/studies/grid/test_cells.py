"""Which runs of a table are one cell, and what follows in it."""

from itertools import combinations

import pandas as pd
import pytest
from grid_runs import grid_runs
from hypothesis import given, settings
from hypothesis import strategies as st
from small import REPOSITORY

from shapelaw.errors import UserError
from shapelaw.studies.grid.cells import Best, cells_of, differing_in_one, frame_of, name_of, order_of, typed

RESULTS = REPOSITORY / "docs" / "results"


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
    runs = pd.read_parquet(RESULTS / "laptop_depth_width.parquet")
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
