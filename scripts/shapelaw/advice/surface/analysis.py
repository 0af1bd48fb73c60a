"""One smooth surface through the shapes of a token budget, and everything that is asked of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from shapelaw.advice.answer.costs import WITHIN
from shapelaw.advice.answer.sizes import option_number
from shapelaw.advice.own_runs.budgets import Budget
from shapelaw.advice.own_runs.columns import NATS
from shapelaw.advice.own_runs.size_rule import SizeRule, size_rule
from shapelaw.advice.surface.answers import (
    BestDepth,
    Overtaking,
    Penalty,
    SizeCosts,
    best_depth,
    costs_of_size,
    middle_sizes,
    overtakings,
    penalties,
)
from shapelaw.advice.surface.average import Surface, fit_surface
from shapelaw.advice.surface.forms import shapes_of
from shapelaw.errors import UserError
from shapelaw.fits.inputs import check_bootstrap
from shapelaw.fits.noise import Noise, pooled_noise
from shapelaw.specs.sizes import SIZE_COLUMNS, SizeAxis


@dataclass(frozen=True)
class Options:
    """`size`: the size that compared shapes share. `sizes`: sizes to answer for; none: five of the shapes' own.

    `noise`: a run's loss std over seeds, in place of the pooled one. `draws`, `seed`: of the bootstrap.
    `within`: what counts as nothing, in the `unit` of the losses, nats or bits.
    """

    size: SizeAxis = SizeAxis.BLOCK
    sizes: tuple[float, ...] = ()
    noise: float | None = None
    draws: int = 2000
    seed: int = 0
    within: float = WITHIN
    unit: str = NATS


@dataclass(frozen=True)
class SurfaceAnalysis:
    """A surface, its answers, and what equal size means in it; the answers are empty where there is no surface."""

    surface: Surface
    axis: SizeAxis
    budget: Budget
    rule: SizeRule
    sizes: tuple[float, ...]
    best: tuple[BestDepth, ...]
    penalties: tuple[Penalty, ...]
    overtakings: tuple[Overtaking, ...]
    within: float = WITHIN
    unit: str = NATS

    @cached_property
    def costs(self) -> tuple[SizeCosts, ...]:
        """What depths cost at each of `sizes`, where the surface can tell a best one."""
        found = (costs_of_size(self.surface, one, self.within) for one in self.best)
        return tuple(one for one in found if one is not None)

    @property
    def size_column(self) -> str:
        return SIZE_COLUMNS[self.axis]


def check_options(options: Options) -> None:
    """Refuse a cost that is none, a noise or a number of draws that nothing can be done with.

    Raises:
        UserError: one of them is not above zero, or there are too few draws.
    """
    if not 0 < options.within < 1:
        raise UserError(
            f"--within is {options.within:g}; give {options.unit} between 0 and 1, such as {WITHIN:g}."
        )
    check_bootstrap(options.noise, options.draws)


def sizes_of(text: str) -> tuple[float, ...]:
    """The sizes of a list such as `6e7,3e8,1.3B`.

    Raises:
        UserError: the list is empty, or a part of it is no number.
    """
    return tuple(option_number("--sizes", part.strip(), 1) for part in text.split(","))


def analyse_surface(budget: Budget, options: Options) -> SurfaceAnalysis:
    """Fit the surface of one token budget and ask it everything."""
    shapes = shapes_of(budget.runs, options.size, budget.ratio > 0)
    # one number: the surface takes its noise from its residuals as well, which follow the size as they like
    given = None if options.noise is None else Noise(options.noise, math.inf)
    noise = given or pooled_noise(budget.runs, by_width=False)
    surface = fit_surface(shapes, noise, draws=options.draws, seed=options.seed)
    rule = size_rule(shapes.depth, shapes.width, shapes.size)
    sizes = options.sizes or tuple(float(size) for size in middle_sizes(shapes))
    said = options.within, options.unit
    if not surface.usable:
        return SurfaceAnalysis(surface, options.size, budget, rule, sizes, (), (), (), *said)
    best = tuple(best_depth(surface, size) for size in sizes)
    costs, over = tuple(penalties(surface)), tuple(overtakings(surface))
    return SurfaceAnalysis(surface, options.size, budget, rule, sizes, best, costs, over, *said)
