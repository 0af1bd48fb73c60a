"""Our estimator of the transition, and its calibration on surfaces whose transitions are known exactly."""

import numpy as np
import pytest
from loss_surfaces import NOISE, grid_of, simulate

from shapelaw.fits.crossing import bootstrap_crossing
from shapelaw.fits.curves import TransitionStatus, loss_curves
from shapelaw.fits.noise import Noise, pooled_noise
from shapelaw.fits.smooth import smooth_loss

DRAWS = 200


def compare(runs, noise=None, **options):
    runs = runs.rename(columns={"test_loss": "loss"})
    noise = pooled_noise(runs) if noise is None else noise
    curves = loss_curves(runs, noise)
    return bootstrap_crossing(*curves.values(), noise, **options)


@pytest.mark.parametrize(
    ("count", "known_noise"),
    [*(pytest.param(count, False, marks=pytest.mark.slow) for count in (6, 8, 10)), (8, True)],
)
def test_calibration(count, known_noise):
    """200 experiments: truth in the 68% interval in 58 to 78% of them, bias of log width under a third of its error."""
    rng = np.random.default_rng(17)
    inside, errors, sigmas = [], [], []
    for draw in range(DRAWS):
        true_width = float(np.exp(rng.uniform(np.log(300), np.log(460))))
        runs = simulate(grid_of((6, 12), 1.5e6, 8e7, count), {6: true_width}, seed=draw)
        noise = Noise(NOISE, np.inf) if known_noise else None
        found, _ = compare(runs, noise, draws=300, seed=draw)
        assert found.status is TransitionStatus.CROSSING
        inside.append(found.width_low <= true_width <= found.width_high)
        errors.append(np.log(found.width / true_width))
        sigmas.append(found.width_err / found.width)
    assert 0.58 <= np.mean(inside) <= 0.78
    assert abs(np.mean(errors)) < np.mean(sigmas) / 3
    assert np.mean(sigmas) == pytest.approx(np.std(errors), rel=0.25)


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["straight", "saturating"])
def test_calibration_does_not_hang_on_the_surface(shape):
    """The same for a difference that is a straight line in log(P), and for one that saturates on both sides."""
    rng = np.random.default_rng(5)
    inside, errors, sigmas = [], [], []
    for draw in range(DRAWS):
        true_width = float(np.exp(rng.uniform(np.log(300), np.log(460))))
        runs = simulate(grid_of((6, 12), 1.5e6, 8e7, 8), {6: true_width}, noise=0.0)
        runs = runs[runs["seed"] == 0].reset_index(drop=True)
        x = np.log(12 * runs["depth"] * runs["width"] ** 2.0)
        distance = x - np.log(72 * true_width**2)
        difference = -0.012 * distance if shape == "straight" else -0.02 * np.tanh(distance / 1.2)
        common = 2.2 + 1.1 * np.exp(-0.12 * (x - 14))
        runs["test_loss"] = (
            common + (runs["depth"] == 12) * difference + NOISE * rng.standard_normal(len(runs))
        )
        found, _ = compare(runs, Noise(NOISE, np.inf), draws=300, seed=draw)
        assert found.status is TransitionStatus.CROSSING
        inside.append(found.width_low <= true_width <= found.width_high)
        errors.append(np.log(found.width / true_width))
        sigmas.append(found.width_err / found.width)
    assert 0.58 <= np.mean(inside) <= 0.78
    assert abs(np.mean(errors)) < np.mean(sigmas) / 3


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


def test_equal_networks_have_no_transition():
    """Two depths that differ in nothing: an estimator that finds crossings in noise would report many."""
    reported, widths = 0, grid_of((6, 12), 1.5e6, 8e7, 9)
    for draw in range(60):
        runs = simulate(widths, {6: 360.0}, noise=0.0)
        size = 12 * runs["depth"] * runs["width"] ** 2.0
        rng = np.random.default_rng(draw)
        runs["test_loss"] = 2 + 30 * size**-0.2 + NOISE * rng.standard_normal(len(runs))
        reported += (
            compare(runs, Noise(NOISE, np.inf), draws=300, seed=draw)[0].status is TransitionStatus.CROSSING
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
    assert smooth.noise_scale == 1.0
    assert draws.noise_scale > 4
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


def test_smoothed_losses_are_closer_to_the_truth_and_know_their_error():
    widths = grid_of((6,), 1.5e6, 8e7, 12)
    truth = simulate(widths, {}, noise=0.0, seeds=1)["test_loss"].to_numpy()
    pulls, raw = [], []
    for draw in range(100):
        runs = simulate(widths, {}, seed=draw, seeds=1).rename(columns={"test_loss": "loss"})
        curve = loss_curves(runs, Noise(NOISE, np.inf))[6]
        loss, err = smooth_loss(curve, curve.params)
        pulls.append((loss - truth) / err)
        raw.append(np.std(loss - truth) / NOISE)
    assert np.mean(raw) < 0.7
    assert np.std(pulls) == pytest.approx(1.0, abs=0.15)
    without = loss_curves(runs, None)[6]
    assert smooth_loss(without, without.params)[0] == pytest.approx(without.loss, abs=1e-12)
