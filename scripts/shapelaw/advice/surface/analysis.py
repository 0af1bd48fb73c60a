"""One smooth surface through the shapes of a token budget, and everything that is asked of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

from shapelaw.advice.answer.costs import WITHIN, Costs
from shapelaw.advice.own_runs.budgets import Budget, SizeRule, size_rule
from shapelaw.advice.own_runs.columns import NATS
from shapelaw.advice.surface.answers import (
    BestDepth,
    Overtaking,
    Penalty,
    best_depth,
    costs_of_size,
    middle_sizes,
    overtakings,
    penalties,
)
from shapelaw.advice.surface.average import Surface, fit_surface
from shapelaw.advice.surface.forms import shapes_of
from shapelaw.errors import Parts, UserError
from shapelaw.fits.inputs import check_bootstrap
from shapelaw.fits.noise import Noise, pooled_noise
from shapelaw.specs.sizes import SIZE_COLUMNS, SizeAxis, number_of

AVERAGE = "average"
ENOUGH_DRAWS = 100  # of a form, to show its own answer


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
    """A surface, its answers, and what equal size means in it; the answers are empty where there is no surface.

    `parts` has what of it failed.
    """

    surface: Surface
    axis: SizeAxis
    budget: Budget
    rule: SizeRule
    sizes: tuple[float, ...]
    within: float
    unit: str
    best: tuple[tuple[str, BestDepth], ...] = ()
    penalties: tuple[Penalty, ...] = ()
    overtakings: tuple[Overtaking, ...] = ()
    parts: Parts = field(default_factory=Parts)

    @cached_property
    def costs(self) -> tuple[Costs, ...]:
        """What depths cost at each of `sizes`, where the surface can tell a best one."""
        best = (one for model, one in self.best if model == AVERAGE)
        found = (costs_of_size(self.surface, one, self.within) for one in best)
        return tuple(one for one in found if one is not None)

    @property
    def size_column(self) -> str:
        return SIZE_COLUMNS[self.axis]


def check_options(options: Options) -> None:
    """Refuse sizes, a cost that is none, a noise or a number of draws that nothing can be done with.

    Raises:
        UserError: one of them is not above zero, or there are too few draws.
    """
    for size in options.sizes:
        if not 0 < size < math.inf:
            raise UserError(f"--sizes has {size:g}; a size is a number above zero, such as 3e8.")
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
    sizes = []
    for part in text.split(","):
        try:
            sizes.append(number_of(part))
        except ValueError:
            raise UserError(f"--sizes has {part.strip()!r}; write numbers, such as 6e7,300M,1.3B.") from None
    return tuple(sizes)


def analyse_surface(budget: Budget, options: Options) -> SurfaceAnalysis:
    """Fit the surface of one token budget and ask it everything."""
    shapes = shapes_of(budget.runs, options.size, budget.ratio > 0)
    # one number: the surface takes its noise from its residuals as well, which follow the size as they like
    given = None if options.noise is None else Noise(options.noise, math.inf)
    noise = given or pooled_noise(budget.runs, by_width=False)
    surface = fit_surface(shapes, noise, draws=options.draws, seed=options.seed)
    rule = size_rule(shapes.depth, shapes.width, shapes.size)
    sizes = options.sizes or tuple(float(size) for size in middle_sizes(shapes))
    found = SurfaceAnalysis(surface, options.size, budget, rule, sizes, options.within, options.unit)
    if not surface.usable:
        return found
    best = [(AVERAGE, best_depth(surface, size)) for size in sizes]
    for one in surface.forms:
        if len(one.drawn_theta) >= ENOUGH_DRAWS:
            alone = replace(surface, forms=(one,))
            asked = partial(_best_depths, alone, sizes)
            best += found.parts.attempt(f"best depth by the form {one.form.name}", asked) or []
    costs, over = tuple(penalties(surface)), tuple(overtakings(surface))
    return replace(found, best=tuple(best), penalties=costs, overtakings=over)


def _best_depths(alone: Surface, sizes: Sequence[float]) -> list[tuple[str, BestDepth]]:
    """The best depths by the one form of a surface, with its name."""
    return [(alone.forms[0].form.name, best_depth(alone, size)) for size in sizes]
