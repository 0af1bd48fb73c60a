"""What all polynomial networks share: numbers modulo a prime, two halves of the tokens, and grids of outputs.

Numbers are uint64 below a prime of 31 bits: four products of two of them fit in 64 bits, so sums of products are
reduced once every four terms. A matrix's two axes come first, any number of batch axes, which broadcast, after them.
FLINT gives the rank of a matrix.

Of the functions of one half of the tokens that a network can form, the dimensions are known degree by degree.

A function of two halves A and B is a sum over degrees in B's tokens. Functions of different degrees are linearly
independent, so if the total degree is fixed the separation rank is the sum of the ranks of all degrees. Each of these
is at most the smaller of two dimensions: of the functions of B of that degree, and of the functions of A of the
remaining degree. Linearized attention sees the half B only through its Gram matrix `G_B = sum over j in B of x_j
x_j^T`, and the half A, which has the output position i, through `G_A` and `x_i`. By the theory of invariants of the
orthogonal group, with m tokens in a half and vectors of d numbers,

- polynomials of degree k in the entries of G_B are the sum of the representations S_{2λ} of GL(d), λ a partition of k
  into at most min(m, d) parts: ((d (d + 1) / 2, k)) of them for m >= d;
- the entries of `f(G_A) x_i`, f of degree c, are the sum of the S_λ, λ a partition of 2c + 1 with exactly one odd part
  and at most min(m, d) parts: d ((d (d + 1) / 2, c)) for m >= d.

((n, k)) is the multiset coefficient. Measured ranks of almost all weights equal the sum of the smaller dimensions
wherever one head has d_a = d (tests/theory), with and without residual connections. With C = (3^L - 1) / 2 this says

- L = 1: d + 1;
- N = 2: binomial(d + C, d);
- L = 2 and N >= 2 d, n = d (d + 1) / 2: 1 + n + n (n + 1) / 2 + d n + d, which is about d^4 / 8 (5 at d = 1); with two
  heads of d / 2 it is (d / 2) (d / 2 + 1) / 2 less, and with d heads of 1 it is only
  1 + n + min(((n, 2)), d n - binomial(d, 2)) + min(d n, ((d, 3)) + d^2) + d, about 2 d^3 / 3.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from shapelaw.errors import UserError
from shapelaw.theory.memorization import check_sizes

Residues = npt.NDArray[np.uint64]

PRIMES = (2**31 - 1, 2**31 - 19)  # the two largest primes below 2^31
MOST_DIGITS = 100  # most digits of the degree of a network's output
BLOCK = 2**16  # numbers per array in one pass: 512 KiB, which fits in a core's cache
TERMS = 4  # how many products of two residues, plus one residue, fit in 64 bits


def random_residues(rng: np.random.Generator, shape: tuple[int, ...], prime: int) -> Residues:
    """Uniform residues."""
    return rng.integers(0, prime, shape, dtype=np.uint64)


def reduce(numbers: Residues, prime: int) -> Residues:
    """Reduce modulo the prime, in place; several times faster than numpy's remainder, since the divisor is constant."""
    multiples = numbers // np.uint64(prime)
    multiples *= np.uint64(prime)
    numbers -= multiples
    return numbers


def add(first: Residues, second: Residues, prime: int) -> Residues:
    """The sum of two arrays of residues."""
    total = first + second
    np.minimum(total, total - np.uint64(prime), out=total)  # negative numbers wrap around to large ones
    return total


def matmul(left: Residues, right: Residues, prime: int) -> Residues:
    """The product of each pair of matrices of a batch: (n, k, ...) and (k, m, ...) to (n, m, ...)."""
    total = left[:, 0, None] * right[None, 0]
    for place in range(1, left.shape[1]):
        if place % TERMS == 0:
            reduce(total, prime)
        total += left[:, place, None] * right[None, place]
    return reduce(total, prime)


def batched(weights: Residues, like: Residues) -> Residues:
    """A matrix in a shape that broadcasts over the batch of others."""
    return weights.reshape(*weights.shape, *(1,) * (like.ndim - 2))


def times(weights: Residues, vectors: Residues, prime: int) -> Residues:
    """One matrix times each of a batch: (n, k) and (k, m, ...) to (n, m, ...)."""
    return matmul(batched(weights, vectors), vectors, prime)


def of_rows(rows: Residues, weights: Residues, prime: int) -> Residues:
    """One matrix applied to the rows of each of a batch, `X W^T`: (m, k, ...) and (n, k) to (m, n, ...)."""
    return transpose(times(weights, transpose(rows), prime))


def transpose(matrices: Residues) -> Residues:
    """The transposes, as a view."""
    return matrices.swapaxes(0, 1)


def rank(matrix: Residues, prime: int) -> int:
    """The rank of a matrix of residues over GF(p), by FLINT's LU decomposition."""
    import flint  # of the exact ranks alone: what asks a bound runs without it

    rows, columns = matrix.shape
    if min(rows, columns) == 0:
        return 0
    return int(flint.nmod_mat(rows, columns, matrix.ravel().tolist(), prime).rank())


def check_degrees(degrees: Sequence[int]) -> None:
    """Refuse layers of a degree below 1.

    Raises:
        UserError: names the first such degree.
    """
    for degree in degrees:
        if degree < 1:
            raise UserError(f"The degree k = {degree} of a layer must be at least 1.")
        check_sizes(degree=degree)
    check_total_degree(sum(map(math.log10, degrees)))


def check_total_degree(digits: float) -> None:
    """Refuse a network whose output has a degree with more than `MOST_DIGITS` digits.

    Raises:
        UserError: names the number of digits.
    """
    if digits > MOST_DIGITS:
        raise UserError(
            f"The degree of the output has {digits:,.0f} digits; its bounds can be computed up to {MOST_DIGITS}, "
            "which linearized attention has up to depth 209: take fewer layers."
        )


@dataclass(frozen=True)
class Halves:
    """N tokens, each of `patch` inputs, and the places, from 1, of the inputs in the half A."""

    tokens: int
    patch: int = 1
    first: tuple[int, ...] | None = None

    def check(self) -> None:
        """Refuse a partition whose halves differ in size or that names wrong places.

        Raises:
            UserError: N is odd, or the places are not half of all places.
        """
        if self.tokens % 2:
            raise UserError(f"N = {self.tokens} tokens is odd: a balanced partition needs an even number.")
        places = self.first
        if places is None:
            return
        count = self.tokens * self.patch
        if len(set(places)) != len(places) or not set(places) <= set(range(1, count + 1)):
            raise UserError(f"The partition must name places from 1 to {count}, each once.")
        if 2 * len(places) != count:
            raise UserError(
                f"The partition names {len(places)} of {count} places; a balanced one names {count // 2}."
            )

    @property
    def inputs(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The places of both halves."""
        count = self.tokens * self.patch
        first = tuple(range(1, count // 2 + 1)) if self.first is None else self.first
        return first, tuple(place for place in range(1, count + 1) if place not in set(first))

    def ordered(self, position: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The places of both halves; the half with the token `position` comes first."""
        first, second = self.inputs
        return (first, second) if position - 1 in self.tokens_of(first) else (second, first)

    def tokens_of(self, half: tuple[int, ...]) -> Counter[int]:
        """The number of inputs that a half holds of each of its tokens, from 0."""
        return Counter((place - 1) // self.patch for place in half)

    def drawn(
        self, rng: np.random.Generator, position: int, numbers: int, templates: int, prime: int
    ) -> Iterator[Residues]:
        """Random inputs of either half, that of `position` first: (N, numbers, templates), 0 at the other's places."""
        for half in self.ordered(position):
            vectors = np.zeros((self.tokens, numbers, templates), dtype=np.uint64)
            vectors[[place - 1 for place in half]] = random_residues(
                rng, (len(half), numbers, templates), prime
            )
            yield vectors

    @property
    def split(self) -> list[int]:
        """Tokens, from 0, that have inputs in both halves."""
        first, second = map(self.tokens_of, self.inputs)
        return sorted(first & second)


class Polynomial(ABC):
    """A network whose separation rank can be measured."""

    @property
    @abstractmethod
    def degree(self) -> int:
        """The degree, at most, of an entry of the grid tensor as a polynomial in the templates and all weights."""

    @property
    def domain(self) -> tuple[int, int] | None:
        """The numbers of different inputs of the halves; None where they are infinite."""
        return None

    @abstractmethod
    def rank_bound(self) -> int:
        """An upper bound on the separation rank for any weights."""

    @abstractmethod
    def multiplications(self) -> int:
        """Number of products modulo p for one entry of the grid tensor."""

    @abstractmethod
    def grid(self, templates: int, prime: int, seed: int) -> Residues:
        """The matricized grid tensor at random templates, for random weights; rows hold the output position.

        Args:
            templates: number of templates of each half.
            prime: p.
            seed: seed of weights and templates.
        """


def filled(rows: int, columns: int, numbers: int, output: Callable[[Any, Any], Residues]) -> Residues:
    """The output for every template of one half with every template of the other, (rows, columns).

    Args:
        rows, columns: templates of the halves.
        numbers: numbers that an entry takes at once; as many entries are computed together as fit in a core's cache.
        output: the outputs of some entries, from the index of the rows into the first half's numbers (..., rows), and
            that of the columns into the second's.
    """
    matrix = np.empty((rows, columns), dtype=np.uint64)
    wide = min(columns, max(1, BLOCK // numbers))
    high = max(1, BLOCK // numbers // wide)
    for top, left in itertools.product(range(0, rows, high), range(0, columns, wide)):
        row, column = np.s_[..., top : top + high, None], np.s_[..., None, left : left + wide]
        matrix[top : top + high, left : left + wide] = output(row, column)
    return matrix


MOST_FACTORS = 10_000  # most dimensions that are summed
MOST_BITS = 2**16  # most digits of a number that is computed exactly


def multiset(kinds: int, picks: int) -> int:
    """`((n, k))`: monomials of degree k in n variables, `binomial(n + k - 1, k)`."""
    return math.comb(kinds + picks - 1, picks) if kinds > 0 else int(picks == 0)


def multiset_bound(kinds: int, picks: int) -> int:
    """`((n, k))`, or, if that has more than about 20,000 digits, a power of two above it, which is quick.

    `binomial(a, b) <= (e a / b)^b`.
    """
    few = min(picks, kinds - 1)
    if few <= 0:
        return multiset(kinds, picks)
    bits = few * (math.log2(math.e) + math.log2(kinds + picks - 1) - math.log2(few))
    return multiset(kinds, picks) if bits < MOST_BITS else 1 << math.ceil(bits)


def partitions(total: int, parts: int, largest: int | None = None) -> Iterator[tuple[int, ...]]:
    """Partitions of `total` into at most `parts` parts, largest first."""
    if total == 0:
        yield ()
    elif parts > 0:
        for first in range(min(total, total if largest is None else largest), 0, -1):
            if first * parts < total:
                return
            for rest in partitions(total - first, parts - 1, first):
                yield (first, *rest)


@cache
def partition_count(total: int, parts: int) -> int:
    """The number of partitions of `total` into at most `parts` parts."""
    counts = [1] + [0] * total
    for part in range(1, min(parts, total) + 1):  # as many as into parts of at most this size
        for reached in range(part, total + 1):
            counts[reached] += counts[reached - part]
    return counts[total]


def too_many_partitions(total: int, parts: int, width: int) -> bool:
    """True if there are too many partitions to enumerate; the dimensions are then upper bounds."""
    return partition_count(total, parts) * parts * width > MOST_FACTORS


def schur_dimension(shape: Sequence[int], width: int) -> int:
    """The dimension of the representation S_λ of GL(d), by Weyl's formula, of a λ of at most d parts."""
    rows = [*shape, *[0] * (width - len(shape))]
    above = below = 1
    for i in range(len(shape)):
        for j in range(i + 1, width):
            above *= rows[i] - rows[j] + j - i
            below *= j - i
    return above // below


@cache
def gram_dimension(degree: int, width: int, tokens: int) -> int:
    """Linearly independent polynomials of a degree in the entries of the Gram matrix of `tokens` vectors.

    With too many partitions it is an upper bound, from the entries and from all polynomials in the vectors.
    """
    entries = multiset(width * (width + 1) // 2, degree)
    if tokens >= width:
        return entries
    if too_many_partitions(degree, tokens, width):
        return min(entries, multiset(width * tokens, 2 * degree))
    return sum(schur_dimension([2 * part for part in shape], width) for shape in partitions(degree, tokens))


@cache
def output_dimension(degree: int, width: int, tokens: int) -> int:
    """Linearly independent entries of `f(G) x_i`, f of a degree in G, i one of the `tokens` vectors; or a bound."""
    entries = width * multiset(width * (width + 1) // 2, degree)
    if tokens >= width:
        return entries
    if too_many_partitions(2 * degree + 1, tokens, width):
        return min(entries, multiset(width * tokens, 2 * degree + 1))
    return sum(
        schur_dimension(shape, width)
        for shape in partitions(2 * degree + 1, min(tokens, width))
        if sum(part % 2 for part in shape) == 1
    )


def matched(first: Sequence[int], second: Sequence[int], total: int) -> int:
    """The largest possible rank of a matrix of blocks (a, b) of which only those with a + b = `total` are not zero."""
    return sum(min(first[total - b], second[b]) for b in range(total + 1))


def staircase(first: Sequence[int], second: Sequence[int], total: int) -> int:
    """The largest possible rank of a matrix of blocks (a, b) of which those with a + b > `total` are zero.

    The rows of degree up to `total - t - 1` and the columns of degree up to t cover all other blocks, for each t.

    Args:
        first, second: rows and columns of degree at most 0, 1, ..., `total`.
        total: the largest sum of both degrees.
    """
    columns, rows = [0, *second[: total + 1]], [*first[: total + 1][::-1], 0]
    return min(map(sum, zip(columns, rows, strict=True)))


def product(first: Sequence[int], second: Sequence[int], most: int) -> list[int]:
    """Graded dimensions, of degrees 0 to `most`, of the products of functions of two independent kinds."""
    return [sum(first[part] * second[total - part] for part in range(total + 1)) for total in range(most + 1)]


def symmetric_power(dimensions: Sequence[int], power: int) -> list[int]:
    """Graded dimensions of the products of `power` functions from a space with the given graded dimensions."""
    found: list[list[int]] = [[1], *[[0] for _ in range(power)]]
    for degree, dimension in enumerate(dimensions):
        longer: list[list[int]] = []
        for picks in range(power + 1):
            total = [0] * ((len(dimensions) - 1) * picks + 1)
            for new in range(picks + 1):
                ways, old = multiset(dimension, new), found[picks - new]
                for place, count in enumerate(old):
                    if count:
                        total[place + degree * new] += ways * count
            longer.append(total)
        found = longer
    return found[power]
