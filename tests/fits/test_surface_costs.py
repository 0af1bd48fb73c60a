"""What depths cost by a surface of one's own, at its sizes and as a witness of another question."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scattered_shapes import Design, draw_shapes, flat_valley, middle_depth, symmetric

from shapelaw.fits.projection import size_rule
from shapelaw.fits.shape_costs import Clock, Question
from shapelaw.fits.surface import Surface, fit_surface
from shapelaw.fits.surface_answers import best_depth, penalties
from shapelaw.fits.surface_costs import OwnSurface, costs_of_size, new_run
from shapelaw.fits.surface_shapes import SurfaceStatus
from shapelaw.specs.sizes import Counting, SizeAxis

CLOCK = Clock(1.0, np.array([0.0, 6.0]), np.zeros(2), "none")


@pytest.fixture(scope="module")
def surface() -> Surface:
    return fit_surface(draw_shapes(symmetric, Design(30, noise=1e-4), 0)[0], None, draws=300)


def test_costs_are_those_of_the_surface_with_the_parameters_that_they_are_worth(surface: Surface) -> None:
    found = costs_of_size(surface, best_depth(surface, 3e8))
    assert found is not None
    x = math.log(3e8)
    least = symmetric(np.array([x]), middle_depth(np.array([x])))[0]
    for depth in found.costs.rows():
        cost, t = found.costs.at(depth), math.log(depth) - middle_depth(x)
        loss = symmetric(np.array([x]), np.log([depth]))[0]
        assert cost.value == pytest.approx(loss - least, abs=1e-3)
        assert cost.params_worth == pytest.approx(-math.expm1(-0.25 * t**2), abs=0.015)
    low, high = found.costs.flat()
    assert low < 16 < high


def test_a_worth_below_the_shapes_is_a_bound(surface: Surface) -> None:
    size = 1.1 * float(surface.shapes.size.min())
    found = costs_of_size(surface, best_depth(surface, size))
    assert found is not None
    assert found.costs.worth_more(0.2)
    assert found.costs.worth(0.2) <= 1.0 - 1.0 / 1.1 + 1e-6
    assert not found.costs.worth_more(0.0)


def test_no_costs_where_no_best_depth_is_told_or_three_times_beyond(surface: Surface) -> None:
    assert costs_of_size(surface, best_depth(surface, 3.5 * float(surface.shapes.size.max()))) is None
    deep = fit_surface(draw_shapes(symmetric, Design(30, spread=0.7, shift=-1.6), 0)[0], None, draws=200)
    assert costs_of_size(deep, best_depth(deep, 3e8)) is None


def test_shapes_in_a_flat_valley_may_cost_nothing() -> None:
    """A draw's own least is too low by chance: 12 to 31% of intervals above it held the nothing that they cost."""
    held = []
    for seed in range(6):
        shapes, _ = draw_shapes(flat_valley, Design(40), seed)
        found = penalties(fit_surface(shapes, None, draws=200, seed=seed))
        for x, z, cost in zip(shapes.x, shapes.z, found, strict=True):
            if abs(z - middle_depth(x)) < 0.5 and cost.status is SurfaceStatus.CONVERGED:
                held.append(cost.low <= 1e-9)
    assert len(held) > 60
    assert np.mean(held) > 0.5


def test_the_loss_of_one_more_run_has_the_scatter_of_runs() -> None:
    shapes, _ = draw_shapes(symmetric, Design(40), 0)
    fitted = fit_surface(shapes, None, draws=300)
    x = np.log(3e8)
    curve = np.ptp(np.quantile(fitted.losses(np.array([x]), np.log([16.0])), (0.16, 0.84)))
    middle, low, high = new_run(fitted, 3e8, 16.0)
    assert low < middle < high
    assert high - low > 1.5 * curve
    assert high - low > 1.5 * fitted.scatter


def asked(size: float, counting: Counting) -> Question:
    return Question(size, counting, 1e10, CLOCK)


def own(surface: Surface, axis: SizeAxis = SizeAxis.BLOCK) -> OwnSurface:
    shapes = surface.shapes
    return OwnSurface(surface, axis, size_rule(shapes.depth, shapes.width, shapes.size), 1e9, "mine")


def test_a_surface_is_a_witness_within_three_times_its_range(surface: Surface) -> None:
    block = Counting(SizeAxis.BLOCK)
    said = own(surface).witness(asked(3e8, block))
    assert (said.name, said.block, said.said) == ("mine", "your own", "")
    assert said.depth == pytest.approx(16, abs=1)
    assert said.low <= said.depth <= said.high
    assert said.beyond == 1.0
    assert said.remarks == ("Its runs saw 1 billion tokens, these 10 billion.",)
    beyond = own(surface).witness(asked(2.0 * surface.shapes.size.max(), block))
    assert beyond.beyond == pytest.approx(2.0, rel=0.01)
    assert math.log(beyond.high / beyond.low) > math.log(said.high / said.low)
    far = own(surface).witness(asked(4.0 * surface.shapes.size.max(), block))
    assert far.said == "can't tell"


def test_at_equal_totals_a_witness_is_deeper(surface: Surface) -> None:
    """With an untied vocabulary a deep network of one total has more in its blocks."""
    total = Counting(SizeAxis.TOTAL, 50257)
    found = own(surface).ask(asked(4e8, total)).costs
    blocks = found.blocks
    at_blocks = own(surface).ask(asked(blocks, Counting(SizeAxis.BLOCK))).costs
    assert found.best.depth > at_blocks.best.depth


def test_shapes_too_shallow_are_a_bound() -> None:
    deep = fit_surface(draw_shapes(symmetric, Design(30, spread=0.7, shift=-1.6), 0)[0], None, draws=200)
    said = own(deep).witness(asked(3e8, Counting(SizeAxis.BLOCK)))
    assert said.said.startswith("above ")
    assert math.isinf(said.depth)


def test_a_surface_answers_what_it_covers_and_nothing_else(surface: Surface) -> None:
    block, mine = Counting(SizeAxis.BLOCK), own(surface)
    found = mine.costs(asked(3e8, block), 0.04)
    assert found is not None
    assert found.told
    assert found.best.depth == pytest.approx(16, abs=1)
    assert found.shift == pytest.approx(
        0.04 * math.log(10.0), rel=1e-6
    )  # a billion tokens, and ten are asked for
    assert mine.costs(asked(4.0 * surface.shapes.size.max(), block), 0.04) is None
    assert mine.costs(asked(1e5, Counting(SizeAxis.TOTAL, 50257)), 0.04) is None  # no room for blocks


def test_at_equal_time_a_surface_prefers_fewer_layers(surface: Surface) -> None:
    slow = Clock(1.0, np.array([0.0, 6.0]), np.array([0.0, 1.2]), "none")
    question = replace(asked(3e8, Counting(SizeAxis.TOTAL, 257)), clock=slow)
    same = own(surface).costs(question, 0.0)
    timed = own(surface).costs(replace(question, equal_time=True), 0.0)
    assert same is not None
    assert timed is not None
    assert timed.best.depth < same.best.depth
