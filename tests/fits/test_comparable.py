"""Which runs went wrong, that noise alone is none, and which batches say something of a comparison."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shapelaw.fits.batches import apart, batch_columns, batches_of, contrasts
from shapelaw.fits.comparable import off_neighbours, off_surfaces, off_twins

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


@pytest.mark.parametrize(
    ("seeds", "losses", "off", "pairs"),
    [
        *((seeds, {2 * seeds: loss}, [2 * seeds], []) for seeds in (3, 5) for loss in (9.87, 4.5)),
        # of two nobody can say which is off: without the higher one noise of 0.008 and 0.018 fell to 0.0012
        *((2, {4: loss}, [], [4, 5]) for loss in (9.87, 4.5)),
        (3, {6: 0.5}, [6], []),  # the two that agree are right
        (3, {6: 7.1, 7: 9.4}, [6, 7], []),  # without agreement the lowest
        (
            250,
            {1000: 3.0},
            [1000],
            [],
        ),  # all pairs would be half a million, and slopes between those 10 to the 11
    ],
)
def test_of_the_seeds_of_a_shape_those_are_off_that_are(seeds, losses, off, pairs):
    table = runs(seeds)
    table.loc[[*losses], "loss"] = [*losses.values()]
    assert [table.index[found].tolist() for found in off_twins(table)] == [off, pairs]


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


@settings(max_examples=60)
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


RUNS = pd.DataFrame(
    {
        "depth": [1, 1, 1, 2],
        "width": [8, 8, 16, 8],
        "seed": [0, 1, 0, 0],
        "host": ["a", "b", "b", None],
        "started_at": ["2026-11-26T10:00:00Z", "2026-11-26T23:00:00Z", "2026-11-27T01:00:00Z", "2026-11-27"],
        "loss": 1.0,
    }
)


def test_a_shape_has_the_shares_of_its_runs_and_dates_count_by_day() -> None:
    shapes = (1, 8), (1, 16), (2, 8)
    told = {batch: dict(zip(shapes, shares, strict=True)) for batch, shares in batches_of(RUNS).items()}
    assert told["host", "b"] == {(1, 8): 0.5, (1, 16): 1.0, (2, 8): 0.0}
    assert told["host", ""] == {(1, 8): 0.0, (1, 16): 0.0, (2, 8): 1.0}
    assert told["started_at", "2026-11-26"] == {(1, 8): 1.0, (1, 16): 0.0, (2, 8): 0.0}
    assert batch_columns(RUNS.drop(columns=["host", "started_at"])) == {}


def labels(**columns: list[str]) -> dict[tuple[str, str], np.ndarray]:
    return {
        (name, value): np.array([float(each == value) for each in values])
        for name, values in columns.items()
        for value in dict.fromkeys(values)
    }


def test_columns_that_divide_alike_are_one_and_one_of_many_values_has_no_offset() -> None:
    one = labels(host=["a", "a", "b"], torch=["2", "2", "1"], date=["1", "2", "3"])
    other = labels(host=["a", "a", "a"], torch=["2", "2", "2"], date=["4", "5", "6"])
    found = contrasts([one, other])
    assert list(found) == ["host and torch"]
    assert found["host and torch"].tolist() == [0, 0, 1, 0, 0, 0]


@pytest.mark.parametrize(
    ("one", "other", "told"),
    [
        (["a", "a", "b", "b", "b"], ["c", "c", "c", "d", "d"], ["host"]),  # days of one depth and of the next
        (["a", "b", "c", "d", "e"], ["f", "g", "h", "i", "j"], []),  # a value a run: always apart
        (["a", "a", "b", "b", "c"], ["c", "c", "b", "a", "c"], []),
        (["a", "a", "a", "a", "a"], ["b", "b", "b", "b", "b"], []),  # two values: their offset decides
    ],
)
def test_batches_are_apart_beyond_what_chance_does(one: list[str], other: list[str], told: list[str]) -> None:
    assert apart([labels(host=one)], [labels(host=other)]) == told
