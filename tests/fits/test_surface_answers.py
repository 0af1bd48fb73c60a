"""What a surface says of a size, of a shape and of two depths; and what it must not say."""

import numpy as np
import pytest
from scattered_shapes import Design, draw_shapes, middle_depth, power_law, skewed_law, symmetric, true_depth

from shapelaw.fits.surface import fit_surface
from shapelaw.fits.surface_answers import best_depth, lowest, overtakings, penalties, tried_depths
from shapelaw.fits.surface_shapes import Shapes, SurfaceStatus


@pytest.fixture(scope="module")
def exact():
    return fit_surface(draw_shapes(symmetric, Design(30, noise=1e-4), 0)[0], None, draws=300)


def test_a_parabola_has_its_lowest_point_between_the_grid(exact):
    grid = np.linspace(0.0, 1.0, 11)
    at, loss = lowest((grid - 0.437)[None, :] ** 2 + 2.0, grid)
    assert at[0] == pytest.approx(0.437)
    assert loss[0] == pytest.approx(2.0)
    at, loss = lowest(grid[None, :], grid)
    assert (at[0], loss[0]) == (0.0, 0.0)


def test_penalties_are_those_of_the_surface(exact):
    shapes = exact.shapes
    for index, cost in enumerate(penalties(exact)):
        x, z = shapes.x[index], shapes.z[index]
        best = middle_depth(x)
        expected = symmetric(x, z) - symmetric(x, best)
        needed = np.exp(x - 0.25 * (z - best) ** 2)
        low, high = tried_depths(shapes, x)
        if low < best < high:
            assert cost.loss == pytest.approx(expected, abs=1e-3)
            if needed > shapes.size.min() * 1.03:
                assert cost.needed == pytest.approx(needed, rel=0.03)
            elif needed < shapes.size.min() / 1.03:
                assert np.isnan(cost.needed)
                assert cost.needed_high >= shapes.size.min()
            assert cost.low <= cost.loss <= cost.high


def test_a_size_beyond_the_shapes_is_extrapolated(exact):
    found = best_depth(exact, 8e9)
    assert found.status is SurfaceStatus.EXTRAPOLATED
    assert found.depth == pytest.approx(true_depth(symmetric, np.log(8e9)), rel=0.03)


@pytest.mark.parametrize(("shift", "status"), [(-1.6, SurfaceStatus.DEEPER), (1.6, SurfaceStatus.SHALLOWER)])
def test_an_optimum_beyond_the_shapes_is_a_bound(shift, status):
    shapes, _ = draw_shapes(symmetric, Design(30, spread=0.7, shift=shift), 0)
    found = best_depth(fit_surface(shapes, None, draws=300), 3e8)
    assert found.status is status
    assert np.isnan(found.depth)
    bound = found.low if status is SurfaceStatus.DEEPER else found.high
    assert (bound < 16.0) if status is SurfaceStatus.DEEPER else (bound > 16.0)


def test_a_bound_holds_where_the_best_depth_lies_at_the_edge_of_the_shapes():
    """It promises 84%; by all forms' draws together it held in 5 of these 21."""
    held = []
    for seed in range(9):
        shapes, _ = draw_shapes(skewed_law, Design(40), seed)
        surface = fit_surface(shapes, None, draws=300, seed=seed)
        for x in np.quantile(shapes.x, (0.3, 0.5, 0.7)):
            found = best_depth(surface, float(np.exp(x)))
            if found.status is SurfaceStatus.DEEPER:
                held.append(found.low < true_depth(skewed_law, x))
    assert len(held) > 15
    assert np.mean(held) > 0.7


def test_noise_that_hides_the_optimum_is_said():
    """A surface that no depth is better on, and one whose penalty drowns."""
    for surface, design in ((lambda x, z: power_law(x), Design(16)), (symmetric, Design(12, noise=0.1))):
        found = []
        for seed in range(6):
            fitted = fit_surface(draw_shapes(surface, design, seed)[0], None, draws=100)
            found.append(best_depth(fitted, 3e8).status)
            assert fitted.told == (fitted.chance < 0.05)
        assert found.count(SurfaceStatus.NOT_IDENTIFIABLE) >= 5
    assert {cost.status for cost in penalties(fitted)} == {SurfaceStatus.NOT_IDENTIFIABLE}


def test_a_size_at_which_one_depth_alone_was_tried_is_not_told():
    shapes, _ = draw_shapes(symmetric, Design(20, noise=1e-4), 0)
    alone = np.append(shapes.depth, 16.0), np.append(shapes.width, 16384.0)
    size = 12.0 * alone[0] * alone[1] ** 2
    loss = np.append(shapes.loss, symmetric(np.log(size[-1:]), np.log([16.0])))
    surface = fit_surface(Shapes(*alone, size, loss, np.ones(21)), None, draws=100)
    assert best_depth(surface, float(size[-1])).status is SurfaceStatus.NOT_IDENTIFIABLE
    assert penalties(surface)[-1].status is SurfaceStatus.NOT_IDENTIFIABLE


def test_depths_tried_at_a_size_are_those_of_its_neighbours():
    depth, size = np.array([2.0, 8.0, 4.0, 32.0]), np.array([1e6, 1e6, 1e9, 1e9])
    shapes = Shapes(depth, depth, size, depth, np.ones(4))
    assert np.exp(tried_depths(shapes, np.log(1e6))) == pytest.approx([2.0, 8.0])
    middle = np.exp(tried_depths(shapes, np.log(1e6 * 1000**0.5)))
    assert middle == pytest.approx([np.sqrt(8.0), 16.0])


def test_one_depth_overtakes_another_where_their_losses_cross():
    width = {2: (64, 90, 128, 180, 256, 362, 512, 724), 8: (32, 45, 64, 90, 128, 181, 256, 362)}
    width[4] = tuple(round(value / 2**0.5) for value in width[2])
    depth = np.repeat(list(width), 8).astype(float)
    widths = np.concatenate([width[key] for key in width]).astype(float)
    size = 12 * depth * widths**2
    best = np.log(4.0) + 0.5 * (np.log(size) - np.log(2e6))
    loss = power_law(np.log(size) + 4 - 0.3 * (np.log(depth) - best) ** 2)
    noise = 1e-4 * np.random.default_rng(0).standard_normal(24)
    surface = fit_surface(Shapes(depth, widths, size, loss + noise, np.ones(24)), None, draws=300)
    first, second = overtakings(surface)
    # equally far from the best depth: halfway between the two in log depth
    assert first.size == pytest.approx(2e6 * (np.sqrt(8.0) / 4.0) ** 2, rel=0.03)
    assert second.size == pytest.approx(2e6 * (np.sqrt(32.0) / 4.0) ** 2, rel=0.03)
