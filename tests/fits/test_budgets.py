"""Token budgets: one, several, in proportion to the size, or too mixed to compare."""

import numpy as np
import pandas as pd
import pytest

from shapelaw.errors import UserError
from shapelaw.fits.budgets import budgets_of

SHAPES = pd.DataFrame({"depth": range(1, 11), "width": 64.0, "seed": 0, "loss": 3.0})


def at(*tokens):
    return pd.concat([SHAPES.assign(tokens=value) for value in tokens], ignore_index=True)


def test_no_tokens_and_one_budget():
    (unknown,) = budgets_of(SHAPES, "runs.csv", least=8)
    assert "names no tokens" in unknown.rule
    (one,) = budgets_of(at(1e9).assign(tokens=1e9 + np.arange(10) * 1e6), "runs.csv", least=8)
    assert one.rule == "every run saw 1e+09 tokens"


def test_several_budgets_are_several_tables():
    parts = budgets_of(at(1e9, 4e9), "runs.csv", least=8)
    assert [part.tokens for part in parts] == [1e9, 4e9]
    assert [len(part.runs) for part in parts] == [10, 10]
    assert [part.folder for part in parts] == ["tokens-1e09", "tokens-4e09"]
    (chosen,) = budgets_of(at(1e9, 4e9), "runs.csv", least=8, only=4.1e9)
    assert chosen.tokens == 4e9


def test_budgets_close_to_each_other_do_not_run_into_one():
    """Checkpoints every 10B tokens: neighbours late in training differ by less than 5%."""
    parts = budgets_of(at(*np.arange(1, 36) * 1e10), "runs.csv", least=8)
    assert len(parts) == 35


def test_a_budget_with_too_few_shapes_is_left_out():
    table = pd.concat([at(1e9), SHAPES[:3].assign(tokens=5e9)])
    (part,) = budgets_of(table, "runs.csv", least=8)
    assert part.tokens == 1e9


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
