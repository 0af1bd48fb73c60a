"""Token budgets: one, several, in proportion or too mixed; and which runs went wrong, and that noise alone is none."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shapelaw.errors import UserError
from shapelaw.fits.comparable import budgets_of, off_neighbours, off_surfaces, off_twins

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


WIDTHS = (32, 64, 128, 256, 512)


def runs(seeds, noise=lambda width: 0.01, rng=None):
    rng = rng or np.random.default_rng(0)
    rows = [
        (depth, width, seed, 2.0 + 8.0 * (depth * width**2) ** -0.15 + noise(width) * rng.standard_normal())
        for depth in (1, 2, 4)
        for width in WIDTHS
        for seed in range(seeds)
    ]
    return pd.DataFrame(rows, columns=["depth", "width", "seed", "loss"])


@pytest.mark.parametrize("seeds", [3, 5])
@pytest.mark.parametrize("loss", [9.87, 4.5])
def test_one_of_several_seeds_is_off_by_itself(seeds, loss):
    table = runs(seeds)
    table.loc[2 * seeds, "loss"] = loss
    off, pairs = off_twins(table)
    assert table.index[off].tolist() == [2 * seeds]
    assert not pairs.any()


@pytest.mark.parametrize("loss", [9.87, 4.5])
def test_of_two_seeds_nobody_can_say_which_is_off(loss):
    """The higher one was left out, so that noise of 0.008 and 0.018 beside it fell to 0.0012."""
    table = runs(2)
    table.loc[4, "loss"] = loss
    off, pairs = off_twins(table)
    assert not off.any()
    assert table.index[pairs].tolist() == [4, 5]


def test_of_three_seeds_the_two_that_agree_are_right_and_without_agreement_the_lowest():
    table = runs(3)
    table.loc[6, "loss"] = 0.5
    assert table.index[off_twins(table)[0]].tolist() == [6]
    table.loc[[6, 7], "loss"] = [7.1, 9.4]
    assert table.index[off_twins(table)[0]].tolist() == [6, 7]


def test_of_hundreds_of_seeds_the_one_is_off_that_is():
    """All pairs of 250 seeds of 15 shapes would be half a million, and the slopes between those 10 to the 11."""
    table = runs(250)
    table.loc[1000, "loss"] += 0.5
    assert table.index[off_twins(table)[0]].tolist() == [1000]


def test_rows_of_another_setting_side_by_side_are_no_small_noise():
    """Where no column says it, twins are what they are: rows in the order of a setting lie no closer than others."""
    table = pd.concat([runs(6).assign(loss=lambda rows, by=by: rows["loss"] + by) for by in (0.0, 0.3, 0.6)])
    assert not off_twins(table.reset_index(drop=True))[0].any()


def test_noise_that_follows_the_width_is_no_divergence():
    rng = np.random.default_rng(1)
    off = [off_twins(runs(3, lambda width: 0.05 * (32 / width) ** 0.75, rng))[0].sum() for _ in range(40)]
    assert sum(off) <= 2  # of 1,800 runs


def test_above_both_neighbours_at_any_place_of_a_curve_but_the_first():
    for at in (1, 2, 3, 4, 7, 9):
        table = runs(1)
        table.loc[at, "loss"] = 9.87
        above, _ = off_neighbours(table)
        assert table.index[above].tolist() == [at]


def test_above_its_neighbours_among_more_than_a_thousand_shapes():
    widths = np.arange(8, 8 + 4 * 1100, 4)
    table = pd.DataFrame({"depth": 2, "width": widths, "loss": 2.0 + 8.0 * widths**-0.3})
    table["loss"] += 0.001 * np.random.default_rng(0).standard_normal(len(table))
    table.loc[500, "loss"] += 0.1
    above, out = off_neighbours(table)
    assert table.index[above].tolist() == [500]
    assert not out.any()


def test_smooth_curves_and_noise_have_nothing_above():
    rng = np.random.default_rng(2)
    for noise in (0.0, 0.01, 0.1):
        found = [off_neighbours(runs(1, lambda _, noise=noise: noise, rng)) for _ in range(20)]
        assert sum(above.sum() for above, _ in found) <= 1
        assert sum(out.sum() for _, out in found) <= 6  # of 300 runs
    few = runs(1).iloc[[0, 1, 5, 6]]
    assert not off_neighbours(few)[0].any()
    assert not any(told.any() for told in off_twins(few))


def anywhere(draw_depth, widths, noise, rng):
    """Shapes at three depths and one alone at a depth of its own; their losses follow a surface."""
    shapes = [(depth, width) for depth in (4, 8, 16) for width in widths] + [(draw_depth, widths[1])]
    table = pd.DataFrame(shapes, columns=["depth", "width"]).assign(seed=0)
    size, aspect = 12.0 * table["depth"] * table["width"] ** 2, np.log(table["width"] / table["depth"] / 30)
    table["loss"] = 1.6 + 40.0 * size**-0.25 + 0.02 * aspect**2 + noise * rng.standard_normal(len(table))
    return table


@settings(deadline=None, max_examples=60)
@given(
    depth=st.sampled_from([2, 6, 12, 24, 32]),
    at=st.integers(0, 12),
    share=st.floats(2.0, 4.0),
    noise=st.sampled_from([0.0, 0.002, 0.01]),
    seed=st.integers(0, 1000),
)
def test_a_run_off_every_surface_is_found_wherever_it_stands_and_no_other(depth, at, share, noise, seed):
    table = anywhere(depth, (64, 96, 144, 216), noise, np.random.default_rng(seed))
    assert not off_surfaces(table).any()
    table.loc[at, "loss"] *= share
    assert table.index[off_surfaces(table)].tolist() == [at]


def test_runs_off_every_surface_do_not_hide_each_other():
    table = anywhere(24, (64, 96, 144, 216), 0.002, np.random.default_rng(0))
    table.loc[[0, 12], "loss"] = 7.8
    assert table.index[off_surfaces(table)].tolist() == [0, 12]
    twins = pd.concat([anywhere(24, (64, 96, 144, 216), 0.002, np.random.default_rng(s)) for s in (0, 1)])
    twins = twins.reset_index(drop=True)
    twins.loc[25, "loss"] = 7.8  # of two seeds, by the surface through other shapes
    assert twins.index[off_surfaces(twins)].tolist() == [25]


def test_shapes_that_determine_no_surface_have_nothing_off():
    assert not off_surfaces(anywhere(24, (64, 96), 0.0, np.random.default_rng(0))).any()
    line = pd.DataFrame({"depth": 2, "width": [8 * n for n in range(1, 12)], "seed": 0})
    line["loss"] = 2.0 + 8.0 * line["width"] ** -0.5
    assert not off_surfaces(line).any()
