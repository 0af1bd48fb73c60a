"""Token budgets: one, several, in proportion or too mixed."""

import numpy as np
import pandas as pd
import pytest

from shapelaw.advice.own_runs.budgets import budgets_of
from shapelaw.errors import UserError

SHAPES = pd.DataFrame({"depth": range(1, 11), "width": 64.0, "seed": 0, "loss": 3.0})


def at(*tokens):
    return pd.concat([SHAPES.assign(tokens=value) for value in tokens], ignore_index=True)


def test_no_tokens_and_one_budget():
    (unknown,) = budgets_of(SHAPES, "runs.csv", least=8)
    assert "names no tokens" in unknown.rule
    (one,) = budgets_of(at(1e9).assign(tokens=1e9 + np.arange(10) * 1e6), "runs.csv", least=8)
    assert one.rule == "every run saw 1e+09 tokens"


def test_several_budgets_are_several_tables():
    """Also those of checkpoints every 10B tokens: neighbours late in training differ by less than 5%."""
    parts = budgets_of(at(1e9, 4e9), "runs.csv", least=8)
    assert [part.tokens for part in parts] == [1e9, 4e9]
    assert [len(part.runs) for part in parts] == [10, 10]
    assert [part.folder for part in parts] == ["tokens-1e09", "tokens-4e09"]
    (chosen,) = budgets_of(at(1e9, 4e9), "runs.csv", least=8, only=4.1e9)
    assert chosen.tokens == 4e9
    assert len(budgets_of(at(*np.arange(1, 36) * 1e10), "runs.csv", least=8)) == 35
    few = pd.concat([at(1e9), SHAPES[:3].assign(tokens=5e9)])
    assert [part.tokens for part in budgets_of(few, "runs.csv", least=8)] == [1e9]


def test_tokens_of_nominal_sizes_are_a_ladder():
    """Three numbers of tokens at 20 a parameter, but for 12% of rounding, and the same at twice as many tokens."""
    nominal = np.repeat([1e8, 2e8, 4e8], [4, 3, 3])
    sizes = nominal * np.linspace(0.94, 1.06, 10)
    table = SHAPES.assign(total_params=sizes, tokens=20 * nominal)
    with pytest.raises(UserError, match="mixed token budgets: 3 of them"):
        budgets_of(table, "runs.csv", least=8)
    both = pd.concat([table, table.assign(tokens=40 * nominal)], ignore_index=True)
    parts = budgets_of(both, "runs.csv", least=8, ladders=True)
    assert [part.folder for part in parts] == ["tokens-20-per-parameter", "tokens-40-per-parameter"]
    assert [len(part.runs) for part in parts] == [10, 10]
    assert "each of 3 numbers of tokens has a level of its own" in parts[0].rule
    blocks = both.rename(columns={"total_params": "block_params"})
    assert [part.ratio for part in budgets_of(blocks, "runs.csv", least=8, ladders=True)] == [
        part.ratio for part in parts
    ]
    odd = both.assign(
        total_params=both["total_params"] * np.geomspace(1, 9, 20), block_params=both["total_params"]
    )
    assert [len(part.runs) for part in budgets_of(odd, "runs.csv", least=8, ladders=True)] == [10, 10]


def test_ladders_leave_a_budget_that_has_enough_shapes():
    nominal = np.repeat([1e8, 2e8, 4e8], [4, 3, 3])
    steps = [SHAPES.assign(total_params=nominal, tokens=ratio * nominal) for ratio in (20, 40)]
    one = at(5e11).assign(total_params=2e6 * SHAPES["depth"])
    parts = budgets_of(pd.concat([*steps, one], ignore_index=True), "runs.csv", least=8, ladders=True)
    assert [len(part.runs) for part in parts] == [10, 10, 10]
    assert parts[-1].tokens == 5e11


def test_runs_that_equal_tokens_compare_are_no_ladder():
    """A budget of many shapes beside another of few, as sizes do not follow tokens there."""
    table = pd.concat([at(1e9), SHAPES[:3].assign(tokens=5e9)]).assign(total_params=1e7)
    assert [part.tokens for part in budgets_of(table, "runs.csv", least=8, ladders=True)] == [1e9]


def test_tokens_that_grow_with_the_size_are_one_budget():
    table = SHAPES.assign(total_params=1e6 * SHAPES["depth"], tokens=2e7 * SHAPES["depth"])
    (part,) = budgets_of(table, "runs.csv", least=8)
    assert part.rule == "tokens grow with the size, 20 for each parameter"
    assert np.isnan(part.tokens)


def test_mixed_budgets_and_wrong_choices():
    mixed = SHAPES.assign(tokens=np.geomspace(1e9, 1e11, 10)[np.random.default_rng(0).permutation(10)])
    with pytest.raises(
        UserError, match=r"mixed token budgets: 10 of them, 1e\+09 to 1e\+11 tokens, with 1 shapes"
    ):
        budgets_of(mixed, "runs.csv", least=8)
    with pytest.raises(UserError, match=r"no run of 2e\+09 tokens; it has 1e\+09, 4e\+09"):
        budgets_of(at(1e9, 4e9), "runs.csv", least=8, only=2e9)
    with pytest.raises(UserError, match="no column of tokens"):
        budgets_of(SHAPES, "runs.csv", least=8, only=2e9)
