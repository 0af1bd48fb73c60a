"""Capacities, the linear part and the growth of curves whose truth is known."""

from dataclasses import replace

import numpy as np
import pytest
from memorizing_networks import CHANCE, simulate

from shapelaw.fits.capacity import CapacityStatus, capacity, exponents, fit_growth, heads_needed, linear_part
from shapelaw.fits.line import FitStatus
from shapelaw.fits.memorized import MemorizationCurve, check_memorization_runs, memorization_curves

EXAMPLES = np.array([200.0, 300, 400, 500, 600, 700])


def curve_of(shares, x=EXAMPLES, along="examples"):
    """A curve of (n, s) shares, or of one seed's (n,)."""
    shares = np.atleast_2d(np.asarray(shares).T).T
    return MemorizationCurve(
        "classification", "shared", 64, "", along, 4, 32, 64, None, np.asarray(x), shares
    )


def shares_of(capacities, x):
    """Each seed memorizes all up to a capacity of its own, then falls linearly; (n, s)."""
    return np.clip(1.0 - 0.002 * (x[:, None] - capacities), 0.0, 1.0)


def test_between_two_sizes():
    found = capacity(curve_of(shares_of(np.array([450.0]), EXAMPLES)))
    # 1 at T = 400, 0.9 at T = 500: linear between them
    assert found.size == pytest.approx(410.0)
    assert (found.memorized, found.not_memorized) == (400.0, 500.0)
    assert found.status is CapacityStatus.FOUND
    assert (found.low, found.high) == (400.0, 500.0)  # one seed: what the list of T leaves open
    noisy = capacity(curve_of([1.0, 0.985, 1.0, 0.9, 0.95, 0.5]))  # below before the crossing, by noise
    assert (noisy.memorized, noisy.not_memorized) == (400.0, 500.0)


LISTS = {
    "even": EXAMPLES,
    "doubling": np.array([100.0, 200, 400, 800, 1600]),
    "five uneven": np.array([200.0, 260, 500, 640, 1100]),
}


@pytest.mark.parametrize(("listed", "seeds"), [("even", 1), ("even", 2), ("doubling", 3), ("five uneven", 6)])
def test_capacities_are_calibrated(listed, seeds):
    """100 experiments: the true T at 99% in the interval in 68% and more, which is no narrower than the list of T."""
    rng, x, fine = np.random.default_rng([8, seeds]), LISTS[listed], np.arange(200.0, 700.0, 2.0)
    inside, ends = [], []
    for draw in range(100):
        middle = float(rng.uniform(320, 560))
        truth = fine[shares_of(middle + 25 * rng.standard_normal(400), fine).mean(axis=1) >= 0.99][-1]
        found = capacity(
            curve_of(shares_of(middle + 25 * rng.standard_normal(seeds), x), x=x), draws=300, seed=draw
        )
        assert found.status is CapacityStatus.FOUND
        inside.append(not (truth < found.low or truth > found.high))
        ends.append(not (found.low > found.memorized or found.high < found.not_memorized))
    assert np.mean(inside) >= 0.68
    assert all(ends)


def test_the_same_along_the_heads():
    """A share of 0.06 + 0.06 H: 99% are reached between the trained 10 and 20."""
    heads = np.array([1.0, 5, 10, 20, 40])
    shares = np.minimum(0.06 + 0.06 * heads, 1.0)[:, None]
    found = heads_needed(curve_of(shares, x=heads, along="heads"))
    assert found.status is CapacityStatus.FOUND
    assert (found.low, found.high) == (10.0, 20.0)
    assert (found.not_memorized, found.memorized) == (10.0, 20.0)
    assert found.size == pytest.approx(10 + 10 * (0.99 - 0.66) / (1.0 - 0.66))
    seeds = np.repeat(shares, 3, axis=1)
    seeds[3] = [1.0, 1.0, 0.9]
    noisy = heads_needed(curve_of(seeds, x=heads, along="heads"))
    assert (noisy.low, noisy.high) == (10.0, 40.0)
    few = heads_needed(curve_of(shares[:3], x=heads[:3], along="heads"))
    assert (few.status, few.size) == (CapacityStatus.AT_LEAST, 10.0)
    all_of_them = heads_needed(curve_of(np.ones((5, 1)), x=heads, along="heads"))
    assert (all_of_them.status, all_of_them.size) == (CapacityStatus.BELOW, 1.0)
    with pytest.raises(ValueError, match="need a curve along heads"):
        heads_needed(curve_of(shares, x=heads))
    with pytest.raises(ValueError, match="needs a curve along examples"):
        capacity(curve_of(shares, x=heads, along="heads"))


def test_all_or_none_memorized_are_bounds():
    all_of_them = capacity(curve_of(np.ones((6, 3))))
    assert (all_of_them.status, all_of_them.size) == (CapacityStatus.AT_LEAST, 700.0)
    none = capacity(curve_of(np.full((6, 3), 0.8)))
    assert (none.status, none.size) == (CapacityStatus.BELOW, 200.0)
    assert np.isnan(none.memorized)
    assert np.isnan(all_of_them.not_memorized)
    assert capacity(curve_of(np.ones((1, 3)), x=EXAMPLES[:1])).status is CapacityStatus.AT_LEAST


def test_interval_ends_that_leave_the_sizes_are_open_and_seeds_may_be_missing():
    shares = np.array([[1.0, 1.0, 0.98], [0.9, 0.8, 0.7]])
    found = capacity(curve_of(shares, x=EXAMPLES[:2]))
    assert np.isnan(found.low)
    assert found.high == 300.0
    shares = shares_of(np.array([400.0, 450.0, 480.0, 510.0]), EXAMPLES)
    shares[2, 0] = np.nan
    missing = capacity(curve_of(shares))
    assert missing.low < missing.size < missing.high


HEADS = np.array([5.0, 10, 20, 30, 40, 50])
ALL = np.ones(6, dtype=np.bool_)


def along_heads(shares):
    return curve_of(shares, HEADS, "heads")


def power_law(exponent, rng, noise, seeds):
    share = 0.8 * (HEADS / 50) ** exponent
    return share[:, None] + noise * (share * (1 - share))[:, None] * rng.standard_normal((6, seeds))


def test_the_readings_of_an_exponent_are_apart_where_guesses_count():
    """Shares of H^1.3 with one in a hundred guessed on top: what is above the guesses is a power, the share none."""
    heads = np.array([1.0, 2.0, 5.0, 10.0, 20.0])
    curve = curve_of(0.01 + 0.99 * 0.8 * (heads / 20) ** 1.3, heads, "heads")
    least, most = exponents(curve, np.ones(5, dtype=bool), 0.01)
    assert most == pytest.approx(1.3, abs=1e-6)
    assert 1.2 < least < 1.3
    assert exponents(along_heads(0.8 * (HEADS / 50) ** 1.3), ALL, 0.0) == pytest.approx((1.3, 1.3))


@pytest.mark.parametrize("exponent", [0.8, 1.0, 1.4])
def test_an_exact_exponent_is_found(exponent):
    found = fit_growth(along_heads(0.8 * (HEADS / 50) ** exponent), ALL)
    assert found.exponent == pytest.approx(exponent, abs=1e-6)
    assert found.err < 1e-6
    few = fit_growth(along_heads(0.01 * HEADS), np.arange(6) < 2)
    assert (few.status, np.isnan(few.exponent)) == (FitStatus.TOO_FEW_POINTS, True)
    assert "2 points" in few.message


@pytest.mark.parametrize("seeds", [2, 4])
def test_exponents_are_calibrated(seeds):
    """200 experiments: the 68% interval holds the truth in 58 to 80%."""
    rng, inside = np.random.default_rng(seeds), []
    for _ in range(200):
        exponent = float(rng.uniform(1.1, 1.6))
        found = fit_growth(along_heads(power_law(exponent, rng, 0.15, seeds)), ALL)
        assert found.status is FitStatus.CONVERGED
        inside.append(found.low <= exponent <= found.high)
    assert 0.58 <= np.mean(inside) <= 0.80


PAPER_HEADS = (1, 5, 10, 20, 30, 40, 50, 60)


def simulated(**options):
    (curve,) = memorization_curves(
        check_memorization_runs(simulate(PAPER_HEADS, **options), "runs.csv"), "heads"
    )
    return curve


def curves_of(seeds, draws):
    """Of each `per_head` and `seed`, without a table for each: making and checking it takes 20 times the fit."""
    one = simulated(examples=(20000,), seeds=seeds)
    for per_head, seed in draws:
        runs = simulate(PAPER_HEADS, examples=(20000,), per_head=per_head, seeds=seeds, seed=seed)
        yield replace(one, shares=runs["accuracy"].to_numpy().reshape(len(PAPER_HEADS), seeds))


def test_points_are_used_up_to_the_first_saturated_one():
    curve = simulated(examples=(20000,), noise=0.001)
    part = linear_part(curve)
    assert part.used.tolist() == [True] * 5 + [False] * 3  # H = 40 is at 0.95
    assert part.line.r_squared > 0.9999
    assert part.errors == "seed noise"
    # a later point that falls back below is not used again
    shares = curve.shares.copy()
    shares[6] = 0.5
    bent = type(curve)(**{**vars(curve), "shares": shares})
    assert linear_part(bent).used.tolist() == part.used.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [2, 4])
def test_lines_are_calibrated(seeds):
    """200 experiments: the true slope within one error in 58 to 80%, its bias under a third of the error.

    The noise of 2 seeds a point is itself uncertain; still p is below 5% in about 5% of them.
    """
    rng = np.random.default_rng(3)
    pulls, p_values, bent = [], [], 0
    draws = [(float(rng.uniform(8, 16)), draw) for draw in range(200)]
    for (per_head, _), curve in zip(draws, curves_of(seeds, draws), strict=True):
        line = linear_part(curve).line
        p_values.append(line.p_value)
        if line.status is FitStatus.CURVED:
            bent += 1
            continue
        pulls.append(((line.b - per_head * 31 / 20000) / line.b_err, (line.a - CHANCE) / line.a_err))
    assert bent <= 20  # 5% are called bent by chance
    inside = np.mean(np.abs(pulls) < 1, axis=0)
    assert (inside > 0.58).all()
    assert (inside < 0.8).all()
    assert np.abs(np.mean(pulls, axis=0)).max() < 1 / 3
    assert 0.02 <= np.mean(np.array(p_values) < 0.05) <= 0.085
    assert 0.42 <= np.mean(np.array(p_values) < 0.5) <= 0.58


def bent_curve(shares):
    return curve_of(shares, np.array(PAPER_HEADS, dtype=np.float64), "heads")


def test_one_seed_needs_four_points_to_tell_a_line():
    curve = bent_curve(np.concatenate([[0.1, 0.3, 0.6], np.ones(5)]))
    part = linear_part(curve)
    assert part.line.status is FitStatus.TOO_FEW_POINTS
    assert "can't tell a line from a curve" in part.line.message
    assert np.isnan(part.curvature_p)


@pytest.mark.parametrize("seeds", [1, 3])
def test_the_test_of_a_bend_calls_straight_lines_bent_in_5_percent(seeds):
    """And finds a bend as large as the measured one in 90% and more, with 200 draws each."""
    rng, x = np.random.default_rng([4, seeds]), np.array(PAPER_HEADS, dtype=np.float64)

    def called(share):
        std = 0.06 * share * (1 - share) if seeds > 1 else np.full(8, 0.01)
        draws = [share[:, None] + std[:, None] * rng.standard_normal((8, seeds)) for _ in range(200)]
        return np.mean([linear_part(bent_curve(draw)).curvature_p < 0.05 for draw in draws])

    assert 0.01 <= called(0.02 + 0.0135 * x) <= 0.10
    assert called(0.86 * (x / 60) ** 1.4) >= 0.9


def test_a_test_without_power_is_said():
    """As many points and seeds as tell H^1.4 from a line, and noise in which it drowns."""
    for noise, tells in ((0.001, True), (0.2, False)):
        assert linear_part(simulated(examples=(20000,), noise=noise, seeds=2)).tells is tells
