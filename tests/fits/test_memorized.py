"""The share that networks memorize, its noise from seed to seed, and the search for the largest T."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from memorizing_networks import simulate
from small import listed

from shapelaw.errors import UserError
from shapelaw.fits.memorized import (
    bracket,
    check_memorization_runs,
    memorization_curves,
    next_sizes,
    share_noise,
    standard_errors,
)

RUNS = pd.DataFrame(
    {
        "heads": [8, 4, 4],
        "context": 32,
        "head_dim": 64,
        "examples": 1000,
        "seed": [0, 1, 0],
        "accuracy": [0.9, 0.5, 0.4],
    }
)


def test_the_least_table_gets_its_defaults_and_a_run_that_memorized_all_may_stop_early():
    runs = check_memorization_runs(RUNS.assign(host="ignored"), "runs.csv")
    assert runs["share"].tolist() == [0.4, 0.5, 0.9]
    assert set(runs["task"]) == {"classification"}
    assert set(runs["context_type"]) == {"shared"}
    assert set(runs["width"]) == {64}
    done = RUNS.assign(accuracy=[1.0, 0.5, 0.4], steps=100, steps_done=[20, 100, 100])
    assert check_memorization_runs(done, "runs.csv")["share"].tolist() == [0.4, 0.5, 1.0]


@pytest.mark.parametrize(("change", "words"), listed("fits/mistakes.yaml", "memorizers"))
def test_wrong_values_are_named_by_row(change, words):
    with pytest.raises(UserError, match=words):
        check_memorization_runs(RUNS.assign(**change), "runs.csv")


def test_missing_columns_are_named():
    with pytest.raises(UserError, match=r"runs\.csv lacks head_dim, seed"):
        check_memorization_runs(RUNS.drop(columns=["head_dim", "seed"]), "runs.csv")
    with pytest.raises(UserError, match=r"has neither accuracy .* nor loss"):
        check_memorization_runs(RUNS.drop(columns="accuracy"), "runs.csv")


def test_curves_know_their_points_seeds_and_noise():
    rng = np.random.default_rng(1)
    runs = simulate((4, 8, 12, 40), examples=(10000,), noise=0.0, seeds=4)
    deviations = rng.standard_normal((3, 4)) * 0.02
    below = runs["heads"] < 40
    runs.loc[below, "accuracy"] += deviations.ravel()
    runs = runs.drop(runs.index[0])
    (curve,) = memorization_curves(check_memorization_runs(runs, "runs.csv"), "heads")
    assert curve.x.tolist() == [4, 8, 12, 40]
    assert curve.seeds.tolist() == [3, 4, 4, 4]
    squares = 2 * np.var(deviations[0, 1:], ddof=1) + 3 * np.var(deviations[1:], axis=1, ddof=1).sum()
    assert curve.noise.dof == 8  # not the saturated point
    assert curve.noise.std == pytest.approx(np.sqrt(squares / 8))
    assert standard_errors(curve) == pytest.approx(curve.noise.at(curve.share) / np.sqrt([3, 4, 4, 4]))
    assert curve.spread[1] == pytest.approx(np.std(deviations[1], ddof=1))


def test_other_sizes_make_other_curves_and_single_points_none():
    runs = simulate((4, 8), (16, 32), (64,), (1000, 2000))
    checked = check_memorization_runs(runs, "runs.csv")
    assert len(memorization_curves(checked, "heads")) == 4
    assert len(memorization_curves(checked, "examples")) == 4
    assert memorization_curves(checked, "head_dim") == []


def test_options_and_a_second_value_dimension_make_other_curves_unless_it_follows_the_heads_dimension():
    runs = simulate((20,), head_dim=(8, 16, 32))
    follows = runs.assign(value_dim=runs["head_dim"])
    assert len(memorization_curves(check_memorization_runs(follows, "r"), "head_dim")) == 1
    two = pd.concat([runs, runs.assign(value_dim=1)], ignore_index=True)
    first, second = memorization_curves(check_memorization_runs(two, "r"), "head_dim")
    assert "d_v = 1," in first.setting
    assert "d_v = 64," in second.setting
    runs = simulate((4, 8))
    two = pd.concat([runs.assign(logit_scale="none"), runs.assign(logit_scale="width")], ignore_index=True)
    curves = memorization_curves(check_memorization_runs(two, "r"), "heads")
    assert [curve.variant for curve in curves] == ["logit_scale none", "logit_scale width"]
    assert "logit_scale width, n = 32" in curves[1].setting


SHARES = np.array([0.02, 0.05, 0.1, 0.2, 0.4, 0.6])
# 0.004 at a share of 0.02 and 0.05 at 0.6, as measured on real networks
UNEQUAL = 0.21 * SHARES * (1 - SHARES)


def estimated(std, seeds, rng):
    runs = SHARES[:, None] + std[:, None] * rng.standard_normal((len(SHARES), seeds))
    spread = runs.std(axis=1, ddof=1)
    noise = share_noise(runs.mean(axis=1).clip(0, 1), spread, np.full(len(SHARES), seeds - 1.0))
    return runs.mean(axis=1), noise


@pytest.mark.parametrize(("power", "std"), [(0.0, 0.02), (0.5, 0.05), (1.0, 0.2)])
def test_the_power_and_the_size_are_found(power, std):
    rng, true = np.random.default_rng(2), std * (SHARES * (1 - SHARES)) ** power
    _, noise = estimated(true, 200, rng)
    assert noise.power == pytest.approx(power, abs=0.1)
    assert noise.at(SHARES) == pytest.approx(true, rel=0.15)
    assert noise.dof == 6 * 199
    assert noise.std == pytest.approx(np.sqrt((true**2).mean()), rel=0.05)


@pytest.mark.parametrize("seeds", [2, 3, 6])
def test_intervals_of_single_shares_hold_where_pooled_ones_do_not(seeds):
    """400 experiments: the true share within one standard error in 55 to 88%; pooled 97% and more at the
    smallest shares, 50% at most at the largest."""
    rng, ours, pooled = np.random.default_rng(5), [], []
    for _ in range(400):
        mean, noise = estimated(UNEQUAL, seeds, rng)
        off = np.abs(mean - SHARES) * np.sqrt(seeds)
        ours.append(off < noise.at(mean.clip(0, 1)))
        pooled.append(off < noise.std)
    held, before = np.mean(ours, axis=0), np.mean(pooled, axis=0)
    assert ((held > 0.55) & (held < 0.88)).all()
    assert before[:2].min() >= 0.97
    assert before[-1] <= 0.5


def test_a_curve_has_it_at_its_shares_and_nothing_beyond_what_was_repeated():
    (curve,) = memorization_curves(check_memorization_runs(simulate((1, 5, 10, 20, 30)), "r"), "heads")
    err, noise = standard_errors(curve), curve.noise
    assert err[0] < err[1] < err[2]
    assert noise.highest == curve.share[2]  # the next ones are saturated
    assert (err[3:] == err[2]).all()
    assert share_noise(SHARES, np.full(6, np.nan), np.zeros(6)) is None
    assert share_noise(SHARES, np.zeros(6), np.ones(6)) is None


def search(is_memorized, low, high, within):
    """All T that were tried, in order."""
    memorized, tried = {}, []
    while sizes := next_sizes(memorized, low, high, within):
        assert len(tried) < 40
        for size in sizes:
            assert size not in memorized
            memorized[size] = is_memorized(size)
        tried += sizes
    return memorized, tried


@given(st.integers(1, 500), st.integers(2, 5000), st.integers(1, 50), st.floats(0, 1))
def test_it_ends_within_the_width_around_the_truth(low, span, within, place):
    high = low + span
    truth = low + int(place * (span - 1))  # memorized up to here, below high
    memorized, tried = search(lambda size: size <= truth, low, high, within)
    below, above = bracket(memorized)
    assert below <= truth < above
    assert above - below <= max(within, 1)
    assert len(tried) <= 2 + max(span, 1).bit_length()


def test_ends_that_are_alike_are_bounds():
    assert search(lambda size: True, 100, 200, 10) == ({100: True, 200: True}, [100, 200])
    assert bracket({100: True, 200: True}) == (200, None)
    assert search(lambda size: False, 100, 200, 10) == ({100: False, 200: False}, [100, 200])
    assert bracket({100: False, 200: False}) == (None, 100)


def test_luck_is_kept():
    """450 is not memorized by chance, 550 is: the largest is looked for above 550."""
    memorized = {100: True, 450: False, 550: True, 800: False}
    assert bracket(memorized) == (550, 800)
    assert next_sizes(memorized, 100, 800, 50) == [675]
