"""MLP-Mixer as polynomial blocks of degree 2 over GF(p): task 4 of the note on building blocks.

A Mixer block (Tolstikhin et al. 2021) sends every channel's row of tokens through one MLP, `V_2 act(V_1 x)`, and then
every token through another. Without activations it is linear and has rank 2, so all its mixing is in `act`, whose first
nonlinear term is the square (GELU is u / 2 + u^2 / sqrt(2 pi) + ...). As in linearized attention a matrix stands for
the MLP over channels. So a block maps the tokens' vectors, the columns of X (d, N), to

    W (X V_1^T)^2 V_2^T        the square element by element, V_1 (S, N), V_2 (N, S), W (d, d),

which has degree 2 and, unlike attention, weights for each position. For one block with m = N / 2 tokens in a half the
terms in both halves are, for each channel, a bilinear form of rank min(S, m) for almost all weights, so the separation
rank is d min(S, m) + 2.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from shapelaw.theory.graded_dimensions import matched, multiset, multiset_bound, symmetric_power
from shapelaw.theory.polynomials import (
    Halves,
    Polynomial,
    Residues,
    add,
    check_output,
    check_total_degree,
    check_whole_numbers,
    filled,
    matmul,
    random_residues,
    reduce,
    transpose,
)

MOST_DEGREES = 2000  # above this, the bound is not summed degree by degree


@dataclass(frozen=True)
class MixerBlock:
    """V_1 (S, N), V_2 (N, S) and W (d, d)."""

    up: Residues
    down: Residues
    channels: Residues


@dataclass(frozen=True)
class MixerNetwork(Polynomial):
    """A network of such blocks, and the entry of its output that is read.

    Attributes:
        depth: L.
        width: d, number of channels.
        tokens: N, even.
        hidden: S, units of the MLP over tokens; N if not given.
        partition: places of the half A, from 1; the first half if not given.
        position: position of the output, from 1.
        entry: entry of that output, from 1.
    """

    depth: int
    width: int
    tokens: int
    hidden: int | None = None
    partition: tuple[int, ...] | None = None
    position: int = 1
    entry: int = 1

    def __post_init__(self) -> None:
        check_whole_numbers(depth=self.depth, width=self.width, tokens=self.tokens, hidden=self.hidden)
        check_total_degree(self.depth * math.log10(2))
        self.halves.check()
        check_output(self.position, self.tokens, self.entry, self.width)

    @property
    def units(self) -> int:
        """S, the units of the MLP over tokens."""
        return self.tokens if self.hidden is None else self.hidden

    @property
    def halves(self) -> Halves:
        """The partition of the tokens."""
        return Halves(self.tokens, 1, self.partition)

    @property
    def total_degree(self) -> int:
        """2^L, the degree of the output in its input."""
        return int(2**self.depth)

    @property
    def degree(self) -> int:
        return 5 * self.total_degree - 4  # a block squares its input and V_1, and has V_2 and W once

    @property
    def params(self) -> int:
        """Number of parameters; 3 d^2 per block where S = N = d, as many as a block of attention of degree 2 has."""
        return self.depth * (2 * self.units * self.tokens + self.width**2)

    def rank_bound(self) -> int:
        """An upper bound on the separation rank for any weights, a sum over the degree in B's numbers.

        In each degree a half has at most all monomials in its numbers. The first block's hidden numbers are sums of a
        part from each half, so after squaring a half has 1, those parts and their squares, and every further block adds
        the products of two earlier functions.
        """
        K, numbers = self.total_degree, self.width * self.tokens // 2
        if K > MOST_DEGREES:
            return multiset_bound(numbers + 1, K)
        half = [multiset(numbers, degree) for degree in range(K + 1)]
        parts = self.width * min(self.units, self.tokens // 2)
        products = [1, parts, min(self.width * self.units, half[2])]
        for _ in range(self.depth - 1):
            products = symmetric_power(products, 2)
        half = [min(pair) for pair in zip(half, products, strict=True)]
        if self.depth == 1:
            half[2] = 1  # one output
        return matched(half, half, K)

    def multiplications(self) -> int:
        d, N, S = self.width, self.tokens, self.units
        return (self.depth - 1) * (d * S + 2 * d * S * N + d**2 * N) + 2 * d * S + d

    def grid(self, templates: int, prime: int, seed: int) -> Residues:
        rng = np.random.default_rng([seed, prime])
        d, N, S = self.width, self.tokens, self.units
        blocks = [
            MixerBlock(*(random_residues(rng, shape, prime) for shape in ((S, N), (N, S), (d, d))))
            for _ in range(self.depth)
        ]
        halves = []
        for half in self.halves.ordered(self.position):
            vectors = np.zeros((d, N, templates), dtype=np.uint64)
            vectors[:, [place - 1 for place in half]] = random_residues(rng, (d, len(half), templates), prime)
            halves.append(vectors)
        return self.outputs(halves[0], halves[1], blocks, prime)

    def outputs(self, first: Residues, second: Residues, blocks: list[MixerBlock], prime: int) -> Residues:
        """The output for every template of one half with every template of the other.

        Args:
            first, second: the halves' tokens, (d, N, rows) and (d, N, columns), zeros at the other half's places.
            blocks: the blocks of the network.
            prime: p.
        """
        parts = [_times(vectors, blocks[0].up, prime) for vectors in (first, second)]
        last = blocks[-1]
        read = MixerBlock(
            last.up, last.down[self.position - 1 : self.position], last.channels[self.entry - 1 : self.entry]
        )

        def output(row: Any, column: Any) -> Residues:
            hidden = add(parts[0][row], parts[1][column], prime)
            for block, following in itertools.pairwise(blocks):
                hidden = _times(_mixed(hidden, block, prime), following.up, prime)
            found: Residues = _mixed(hidden, read, prime)[0, 0]
            return found

        return filled(first.shape[2], second.shape[2], self.width * max(self.tokens, self.units), output)


def _times(state: Residues, weights: Residues, prime: int) -> Residues:
    """`X V^T` for a batch: (d, N, ...) and (S, N) to (d, S, ...)."""
    return matmul(state, transpose(weights).reshape(*weights.shape[::-1], *(1,) * (state.ndim - 2)), prime)


def _mixed(hidden: Residues, block: MixerBlock, prime: int) -> Residues:
    """`W hidden^2 V_2^T`, (d, N, ...)."""
    tokens = _times(reduce(hidden * hidden, prime), block.down, prime)
    channels = block.channels.reshape(*block.channels.shape, *(1,) * (tokens.ndim - 2))
    return matmul(channels, tokens, prime)
