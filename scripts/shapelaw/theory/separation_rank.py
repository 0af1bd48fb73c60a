"""The separation rank of a polynomial network, exactly.

The rank of the matricized grid tensor is a lower bound on the separation rank for any templates (claim 1 of Levine et
al. 2020, appendix B), and equals it once each half has as many generic templates as the rank: a sum of R products
g_r(A) g'_r(B) with linearly independent g_r and independent g'_r has a matrix of rank R wherever R points of each half
are in general position. With weights and templates drawn uniformly from GF(p) every number is exact. The rank is then
that of almost all weights, the largest that any weights reach, unless a minor that is not zero as a polynomial happens
to vanish: by Schwartz and Zippel this has a probability of at most its degree / p. It is never larger than the rank
over the rational numbers.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

from shapelaw.errors import UserError
from shapelaw.theory.memorization import check_sizes
from shapelaw.theory.polynomials import PRIMES, Polynomial, rank

SEEDS = (0, 1)
FIRST_TEMPLATES = 32
MOST_TEMPLATES = 10**50  # beyond this, time and memory count as infinite
SPARE = 8  # templates beyond an upper bound on the rank


@dataclass(frozen=True)
class SeparationRank:
    """A measured separation rank.

    Attributes:
        rank: the separation rank of almost all weights; a lower bound if not exact.
        exact: the rank equals an upper bound, or is below the number of templates of each half that has further ones.
        templates: rows and columns of the last grid.
        upper_bound: the bound for all weights, from the dimensions of the function spaces.
        primes, seeds: each prime with each seed gave this rank or, if it is not exact, at most this rank.
        failure_probability: an upper bound on the chance that all these grids have too small a rank, if more templates
            would not give a larger one; 0 if the rank equals an upper bound.
        seconds: wall time.
    """

    rank: int
    exact: bool
    templates: tuple[int, int]
    upper_bound: int
    primes: tuple[int, ...]
    seeds: tuple[int, ...]
    failure_probability: float
    seconds: float


@dataclass(frozen=True)
class Estimate:
    """The cost of a measurement, or a limit of it: wall seconds on one core, and bytes."""

    seconds: float
    bytes: float

    def is_within(self, limit: Estimate) -> bool:
        """Whether it takes no more than a limit."""
        return self.seconds <= limit.seconds and self.bytes <= limit.bytes


LIMIT = Estimate(600.0, 4 * 2**30)


@dataclass(frozen=True)
class Plan:
    """A measurement before it starts.

    Attributes:
        bound: an upper bound on the rank.
        templates: the most templates of each half that may be needed.
        needed: time and memory with this many templates.
    """

    bound: int
    templates: int
    needed: Estimate


def estimate(network: Polynomial, templates: int) -> Estimate:
    """Time and memory of a measurement by its templates of each half; tests/theory/measured_costs.csv holds them."""
    if templates > MOST_TEMPLATES:
        return Estimate(math.inf, math.inf)
    entries = float(templates) ** 2
    grid = entries * (12e-9 + 1.5e-9 * network.multiplications())
    elimination = entries * 2.4e-7 + float(templates) ** 3 * 1.8e-10
    runs = len(PRIMES) * len(SEEDS)
    return Estimate((runs + 0.2) * (grid + elimination), 68 * entries)


def separation_rank(
    network: Polynomial, templates: int | None = None, limit: Estimate = LIMIT
) -> SeparationRank:
    """Measure the separation rank of a network's output.

    Args:
        network: the network to measure.
        templates: the most templates of each half; a few more than the rank's upper bound if not given.
        limit: refuse a measurement that is estimated to take more.

    Raises:
        UserError: the estimate is above a limit; nothing has started then.
    """
    return measure_planned(network, plan(network, templates, limit))


def measure_planned(network: Polynomial, planned: Plan) -> SeparationRank:
    """Measure the separation rank as `plan` says, whatever it takes.

    The templates double until the rank is smaller than their number; then every prime and seed must give the same.

    Args:
        network: the network that was planned for.
    """
    start, bound = time.perf_counter(), planned.bound
    for count in template_counts(planned.templates):
        found, shape = _measured(network, count, PRIMES[0], SEEDS[0])
        if _has_enough(network, found, shape, bound):
            break
    _, *others = itertools.product(PRIMES, SEEDS)
    ranks = {found, *(_measured(network, count, *other)[0] for other in others)}
    found = max(ranks)  # no rank is too large
    return SeparationRank(
        rank=found,
        exact=len(ranks) == 1 and _has_enough(network, found, shape, bound),
        templates=shape,
        upper_bound=bound,
        primes=PRIMES,
        seeds=SEEDS,
        failure_probability=0.0 if found == bound else _failure_probability(network, found),
        seconds=time.perf_counter() - start,
    )


def plan(network: Polynomial, templates: int | None = None, limit: Estimate = LIMIT) -> Plan:
    """The most that a measurement may need, known before it starts; quick at any size.

    Args:
        network: the network to measure.
        templates: the most templates of each half; a few more than the rank's upper bound if not given.
        limit: within it a finite vocabulary gives all its words.

    Raises:
        UserError: the estimate is above the limit; the message has it, and the templates that would stay within.
    """
    bound = network.rank_bound()
    most = bound + SPARE
    if network.domain is not None and estimate(network, max(network.domain)).is_within(limit):
        most = max(network.domain)  # all words of a finite vocabulary, which are not in general position
    if templates is not None:
        check_sizes(templates=templates)
        most = min(templates, most)
    needed = estimate(network, most)
    if needed.is_within(limit):
        return Plan(bound, most, needed)
    fitting = templates_within(network, limit)
    raise UserError(
        f"The rank can be up to {size_text(bound)}, and {size_text(most)} templates of each "
        f"half would take {size_text(needed.seconds / 60)} minutes and {size_text(needed.bytes / 2**30)} GiB by "
        f"estimate, above {limit.seconds / 60:.3g} minutes and {limit.bytes / 2**30:.3g} GiB: take a smaller network, "
        f"get a lower bound from fewer templates (--templates {fitting} is within the limits), or raise --limit."
    )


def templates_within(network: Polynomial, limit: Estimate) -> int:
    """The most templates of each half that stay within a limit by estimate, up to the number that the rank needs."""
    few, many = 1, min(network.rank_bound() + SPARE, MOST_TEMPLATES) + 1
    while many - few > 1:
        middle = (few + many) // 2
        if estimate(network, middle).is_within(limit):
            few = middle
        else:
            many = middle
    return few


def size_text(number: float) -> str:
    """A count that may be too large to print or to be a float."""
    if number == math.inf:
        return "over 10^100"
    if number < 1e6:
        return f"{number:,.0f}" if number >= 10 else f"{number:.1g}"
    return f"10^{math.log10(number):.0f}"


def template_counts(most: int) -> Iterator[int]:
    """The numbers of templates to try: doubling, then the largest as soon as it is at most four times as many."""
    count = FIRST_TEMPLATES
    while 4 * count < most:
        yield count
        count *= 2
    yield most


def _measured(network: Polynomial, templates: int, prime: int, seed: int) -> tuple[int, tuple[int, int]]:
    """The rank of one grid, and its rows and columns."""
    matrix = network.grid(templates, prime, seed)
    rows, columns = matrix.shape
    return rank(matrix, prime), (rows, columns)


def _has_enough(network: Polynomial, found: int, shape: tuple[int, int], bound: int) -> bool:
    """True if more templates can't give a larger rank.

    Words of a finite vocabulary are not in general position: unless the rank equals the upper bound, all are needed.
    """
    if found == bound:
        return True
    if network.domain is not None:
        return shape == network.domain
    return found < min(shape)


def _failure_probability(network: Polynomial, found: int) -> float:
    """The chance that every grid misses a larger rank: in each, a minor of order found + 1 vanishes by chance."""
    degree = (found + 1) * network.degree  # degree of the minor
    return math.prod(1.0 if degree >= prime else degree / prime for prime in PRIMES for _ in SEEDS)
