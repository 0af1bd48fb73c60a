"""What all polynomial networks share: numbers modulo a prime, two halves of the tokens, and grids of outputs.

Numbers are uint64 below a prime of 31 bits: four products of two of them fit in 64 bits, so sums of products are
reduced once every four terms. A matrix's two axes come first, any number of batch axes, which broadcast, after them.
FLINT gives the rank of a matrix.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
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


def check_output(position: int, tokens: int, entry: int, width: int) -> None:
    """Refuse an output that a network does not have.

    Raises:
        UserError: the position is not from 1 to N, or the entry not from 1 to d.
    """
    if not 1 <= position <= tokens:
        raise UserError(f"The position {position} must be from 1 to N = {tokens}.")
    if not 1 <= entry <= width:
        raise UserError(f"The entry {entry} must be from 1 to the width {width}.")


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
        return (first, second) if self.token_in(position, first) else (second, first)

    def token_in(self, token: int, half: tuple[int, ...]) -> bool:
        """True if a half holds an input of a token."""
        return any((place - 1) // self.patch == token - 1 for place in half)

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
        """Tokens, from 1, that have inputs in both halves."""
        if self.patch == 1:
            return []
        tokens = [{(place - 1) // self.patch + 1 for place in half} for half in self.inputs]
        return sorted(tokens[0] & tokens[1])


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
