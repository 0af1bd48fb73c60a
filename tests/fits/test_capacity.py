"""T and H at 99%: statuses, and their calibration on networks whose capacity is known."""

import numpy as np
import pytest

from shapelaw.fits.capacity import CapacityStatus, capacity, heads_needed
from shapelaw.fits.memorized import MemorizationCurve

EXAMPLES = np.array([200.0, 300, 400, 500, 600, 700])


def curve_of(shares, x=EXAMPLES, along="examples"):
    return MemorizationCurve(
        "classification", "shared", 64, "", along, 4, 32, 64, None, np.asarray(x), np.asarray(shares)
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


LISTS = {
    "even": EXAMPLES,
    "doubling": np.array([100.0, 200, 400, 800, 1600]),
    "five uneven": np.array([200.0, 260, 500, 640, 1100]),
}


@pytest.mark.parametrize("listed", LISTS)
@pytest.mark.parametrize("seeds", [1, 2, 3, 6])
def test_calibration(listed, seeds):
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


def test_all_or_none_memorized_are_bounds():
    all_of_them = capacity(curve_of(np.ones((6, 3))))
    assert (all_of_them.status, all_of_them.size) == (CapacityStatus.AT_LEAST, 700.0)
    none = capacity(curve_of(np.full((6, 3), 0.8)))
    assert (none.status, none.size) == (CapacityStatus.BELOW, 200.0)
    assert np.isnan(none.memorized)
    assert np.isnan(all_of_them.not_memorized)
    alone = capacity(curve_of(np.ones((1, 3)), x=EXAMPLES[:1]))
    assert alone.status is CapacityStatus.AT_LEAST


def test_noise_above_the_first_fall_leaves_one_crossing():
    shares = np.array([1.0, 0.985, 1.0, 0.9, 0.95, 0.5])[:, None]
    found = capacity(curve_of(shares))
    assert (found.memorized, found.not_memorized) == (400.0, 500.0)


def test_interval_ends_that_leave_the_sizes_are_open():
    shares = np.array([[1.0, 1.0, 0.98], [0.9, 0.8, 0.7]])
    found = capacity(curve_of(shares, x=EXAMPLES[:2]))
    assert np.isnan(found.low)
    assert found.high == 300.0


def test_missing_seeds_and_determinism():
    shares = shares_of(np.array([400.0, 450.0, 480.0, 510.0]), EXAMPLES)
    shares[2, 0] = np.nan
    one, other = (capacity(curve_of(shares), seed=5) for _ in range(2))
    assert one == other
    assert one.low < one.size < one.high
    assert capacity(curve_of(shares), seed=6).size == one.size


def test_only_curves_along_the_examples():
    with pytest.raises(ValueError, match="needs a curve along examples"):
        capacity(curve_of(np.ones((6, 1)), along="heads"))
