"""Our estimator of the transition, and its calibration on surfaces whose transitions are known exactly.

The whole calibration, 30 surfaces in minutes, is `benchmarks/transitions.py`.
"""

import numpy as np
import pytest
from hostile_surfaces import BY_SIZE, CROSSING, WITHOUT, draw_runs
from loss_surfaces import NOISE, grid_of, simulate

from shapelaw.fits.crossing import bootstrap_crossing
from shapelaw.fits.curves import Side, TransitionStatus, loss_curves
from shapelaw.fits.noise import Noise, pooled_noise

SURFACES = {surface.name: surface for surface in (*CROSSING, *WITHOUT, *BY_SIZE)}


def compare(runs, noise=None, **options):
    runs = runs.rename(columns={"test_loss": "loss"})
    noise = pooled_noise(runs) if noise is None else noise
    curves = loss_curves(runs, noise)
    return bootstrap_crossing(*curves.values(), noise, **options)


def found_on(name, draws):
    """The transition and the true width of that many draws of a surface."""
    drawn = [draw_runs(SURFACES[name], number) for number in range(draws)]
    return [(compare(runs, draws=200, seed=k)[0], width) for k, (runs, width) in enumerate(drawn)]


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("power laws", 0.60, 0.84),
        ("6 sizes a depth", 0.60, 0.96),
        ("noise grows, repeats at small sizes", 0.55, 0.84),
        ("scatter twice the noise", 0.42, 0.84),
        ("noise falls, 20 degrees of freedom", 0.60, 0.84),
    ],
)
def test_calibration(name, least, most):
    """40 experiments: the share of 68% intervals that hold the truth, and hardly a bias of the log width."""
    found = [(one, width) for one, width in found_on(name, 40) if one.status is TransitionStatus.CROSSING]
    assert len(found) >= 36
    assert least <= np.mean([one.width_low <= width <= one.width_high for one, width in found]) <= most
    errors = np.array([np.log(one.width / width) for one, width in found])
    sigmas = np.array([one.width_err / one.width for one, _ in found])
    assert abs(errors.mean()) < sigmas.mean() / 3
    assert 0.65 < sigmas.mean() / np.sqrt((errors**2).mean()) < 1.6


@pytest.mark.parametrize(
    ("name", "status", "least"),
    [
        ("equal", TransitionStatus.TOO_NOISY, 0.8),
        ("deeper worse, then equal", TransitionStatus.AT_EDGE, 0.9),
        ("gap that decays to zero", TransitionStatus.AT_EDGE, 0.9),
        ("two crossings, deeper better between", TransitionStatus.SEVERAL, 0.9),
        ("two crossings, deeper worse between", TransitionStatus.SEVERAL, 0.9),
        ("deeper better, then worse", TransitionStatus.REVERSED, 0.9),
    ],
)
def test_nothing_is_invented(name, status, least):
    """15 experiments without a crossing, or with more than one: at most one is reported as a crossing."""
    statuses = [one.status for one, _ in found_on(name, 15)]
    assert statuses.count(TransitionStatus.CROSSING) <= 1
    assert statuses.count(status) >= 15 * least
    assert TransitionStatus.DEEPER_BETTER not in statuses


def test_a_run_far_off_its_curve_is_named():
    found = [one for one, _ in found_on("one run 7 sigma off near the crossing", 12)]
    named = [one.caution for one in found if "L12-d" in one.caution and "sigma off" in one.caution]
    assert len(named) >= 9
    clean = [one.caution for one, _ in found_on("power laws", 12)]
    assert sum("sigma off" in caution for caution in clean) <= 1


def test_doubtful_designs_are_marked():
    assert "repeated at small sizes only" in found_on("noise grows, repeats at small sizes", 1)[0][0].caution
    assert "only 4 sizes" in found_on("4 sizes a depth", 1)[0][0].caution
    assert found_on("power laws", 1)[0][0].caution == ""


@pytest.mark.parametrize(
    ("true_width", "status"),
    [
        (40.0, TransitionStatus.DEEPER_BETTER),
        (4000.0, TransitionStatus.SHALLOWER_BETTER),
        (165.0, TransitionStatus.AT_EDGE),
        (980.0, TransitionStatus.AT_EDGE),
        (360.0, TransitionStatus.CROSSING),
    ],
)
def test_status(true_width, status):
    """Sizes from 1.5M (width 144 at depth 6) to 80M (width 1054)."""
    found, draws = compare(simulate(grid_of((6, 12), 1.5e6, 8e7, 9), {6: true_width}, noise=0.0005))
    assert found.status is status
    assert draws is not None
    assert np.isnan(found.width) == (status is not TransitionStatus.CROSSING)
    assert np.isfinite(found.bound) == (found.side is not None) == (status is not TransitionStatus.CROSSING)
    if found.side is Side.ABOVE:
        assert found.bound - 2 * found.bound_err < true_width
    if found.side is Side.BELOW:
        assert found.bound + 2 * found.bound_err > true_width
    if found.side is Side.AT:
        assert abs(found.bound - true_width) < 3 * found.bound_err


def test_equal_networks_have_no_transition():
    """Two depths that differ in nothing: an estimator that finds crossings in noise would report many."""
    reported, widths = 0, grid_of((6, 12), 1.5e6, 8e7, 9)
    for number in range(60):
        runs = simulate(widths, {6: 360.0}, noise=0.0)
        size = 12 * runs["depth"] * runs["width"] ** 2.0
        rng = np.random.default_rng(number)
        runs["test_loss"] = 2 + 30 * size**-0.2 + NOISE * rng.standard_normal(len(runs))
        reported += (
            compare(runs, Noise(NOISE, np.inf), draws=300, seed=number)[0].status is TransitionStatus.CROSSING
        )
    assert reported <= 6


def test_more_noise_widens_the_interval_until_nothing_is_reported():
    widths = grid_of((6, 12), 1.5e6, 8e7, 9)
    errors = [
        compare(simulate(widths, {6: 360.0}, noise=n, seed=4), Noise(n, np.inf))[0].width_err
        for n in (2e-4, 1e-3)
    ]
    assert 3 < errors[1] / errors[0] < 7
    assert compare(simulate(widths, {6: 360.0}, noise=0.1), Noise(0.1, np.inf))[0].status not in (
        TransitionStatus.CROSSING,
        TransitionStatus.DEEPER_BETTER,
        TransitionStatus.SHALLOWER_BETTER,
    )


def test_noise_grows_where_the_curves_are_rougher_than_their_seeds():
    """Per-shape jitter that seeds do not show (an untuned rate, say) must widen the interval, and is reported."""
    widths = grid_of((6, 12), 1.5e6, 8e7, 10)
    runs = simulate(widths, {6: 360.0}, noise=0.004, seed=1)
    honest, smooth = compare(runs, Noise(0.004, np.inf), seed=1)
    rough, draws = compare(runs, Noise(0.0005, np.inf), seed=1)
    assert smooth is not None
    assert draws is not None
    assert smooth.noise_scale < 1.4
    assert draws.noise_scale > 4
    assert rough.noise_scale == draws.noise_scale
    assert rough.width_err > honest.width_err / 2


def test_same_seed_same_answer_and_scale_of_loss_does_not_matter():
    runs = simulate(grid_of((6, 12), 1.5e6, 8e7, 8), {6: 360.0}, seed=2)
    first, again = compare(runs)[0], compare(runs)[0]
    assert first == again
    bits = runs.assign(test_loss=runs["test_loss"] / np.log(2))
    assert compare(bits)[0].width == pytest.approx(first.width, rel=1e-6)
    assert compare(bits)[0].width_err == pytest.approx(first.width_err, rel=1e-6)


def test_no_noise_and_too_few_sizes():
    runs = simulate(grid_of((6, 12), 1.5e6, 8e7, 8), {6: 360.0}, seeds=1)
    assert compare(runs)[0].status is TransitionStatus.NO_NOISE
    few = simulate(grid_of((6, 12), 1.5e6, 8e7, 3), {6: 360.0})
    found, draws = compare(few)
    assert found.status is TransitionStatus.TOO_FEW_SIZES
    assert draws is None
    apart = simulate({6: [40, 60, 80, 100, 120], 12: [400, 500, 600, 700, 800]}, {6: 360.0})
    assert compare(apart)[0].status is TransitionStatus.TOO_FEW_SIZES


def test_noise_by_width_narrows_intervals_where_networks_are_quiet():
    """The noise falls sixfold over the sizes: crossings at large widths are known better than one number says."""
    ratio = {True: [], False: []}
    for number in range(12):
        runs, true_width = draw_runs(SURFACES["noise falls, 20 degrees of freedom"], number)
        one, ours = (
            compare(runs, pooled_noise(runs, by_width=by_width), draws=200)[0] for by_width in (False, True)
        )
        ratio[true_width > 420].append(ours.width_err / one.width_err)
    assert np.median(ratio[True]) < 0.9
    assert np.median(ratio[False]) > 1.1 * np.median(ratio[True])
