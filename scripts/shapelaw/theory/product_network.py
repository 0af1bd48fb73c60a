"""Product networks as polynomials over GF(p): each layer an element-wise product of k linear maps.

The note's layers (`P_k(x) = product over i of (W_i x)`, its comment 3.1) are fully connected: the first one reads the
concatenated tokens and merges them. With mixing, tokens stay separate: each linear map of the output at position j is
`W_i x_j + U_i (sum over all tokens)`, which treats tokens alike as attention does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from shapelaw.errors import UserError
from shapelaw.theory.graded_dimensions import matched, multiset, multiset_bound, symmetric_power
from shapelaw.theory.polynomials import (
    Halves,
    Polynomial,
    Residues,
    add,
    check_degrees,
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
class ProductNetwork(Polynomial):
    """A network of element-wise products, its inputs, and the entry of its output that is read.

    Attributes:
        degree_of_layer: k, or one k for each layer, the first layer's first.
        depth: L.
        width: width of every layer, and with mixing of every token.
        tokens: N, even; the input's dimension if `token_dim` is 1.
        mixing: tokens stay separate and are mixed by sums; otherwise the first layer reads all of them at once.
        token_dim: dimension of a token; the width if not given, and always with mixing.
        partition: places of the half A, from 1; the first half if not given.
        position: position of the output, from 1; only with mixing.
        entry: entry of that output, from 1.
    """

    degree_of_layer: int | tuple[int, ...]
    depth: int
    width: int
    tokens: int = 2
    mixing: bool = False
    token_dim: int | None = None
    partition: tuple[int, ...] | None = None
    position: int = 1
    entry: int = 1

    def __post_init__(self) -> None:
        check_whole_numbers(depth=self.depth)
        if isinstance(self.degree_of_layer, int):
            check_total_degree(self.depth * math.log10(max(1, self.degree_of_layer)))
        if len(self.degrees) != self.depth:
            raise UserError(
                f"{len(self.degrees)} degrees for {self.depth} layers: give one, or one per layer."
            )
        check_degrees(self.degrees)
        check_whole_numbers(width=self.width, tokens=self.tokens, token_dim=self.token_dim)
        if self.mixing and self.token_dim not in (None, self.width):
            raise UserError("With mixing the token dimension is the width; give no other.")
        self.halves.check()
        check_output(self.position, self.tokens, self.entry, self.width)

    @property
    def degrees(self) -> tuple[int, ...]:
        """k of each layer."""
        k = self.degree_of_layer
        return k if isinstance(k, tuple) else (k,) * self.depth

    @property
    def halves(self) -> Halves:
        """The partition of the tokens."""
        return Halves(self.tokens, 1, self.partition)

    @property
    def total_degree(self) -> int:
        """The degree of the output in its input: the product of all k, `k^L` if they are equal."""
        return math.prod(self.degrees)

    @property
    def degree(self) -> int:
        return self.total_degree + sum(math.prod(self.degrees[layer:]) for layer in range(self.depth))

    @property
    def params(self) -> int:
        """Number of parameters of the linear maps, all layers of equal size (the note's `L k N_d`)."""
        return sum(self.degrees) * self.width**2 * (2 if self.mixing else 1)

    def rank_bound(self) -> int:
        """An upper bound on the separation rank for any weights, a sum over the degree in B's numbers.

        In each degree a half has at most all monomials in its numbers. Without mixing, the k maps of a layer are sums
        of a part from A and a part from B; so a half has at most, for each unit, the products of subsets of the first
        layer's parts, and in every further layer the products of k functions of the layer before.
        """
        K = self.total_degree
        numbers = (self.token_dim or self.width) * self.tokens // 2
        if K > MOST_DEGREES:
            return multiset_bound(numbers + 1, K)
        half = [multiset(numbers, degree) for degree in range(K + 1)]
        if not self.mixing:
            units = 1 if self.depth == 1 else self.width
            first = self.degrees[0]
            products = [units * math.comb(first, degree) for degree in range(first + 1)]
            for k in self.degrees[1:]:
                products = symmetric_power(products, k)
            half = [min(pair) for pair in zip(half, products, strict=True)]
        return matched(half, half, K)

    def multiplications(self) -> int:
        w, first, inner, last = self.width, self.degrees[0], sum(self.degrees[1:-1]), self.degrees[-1]
        if not self.mixing:
            return inner * (w**2 + w) + (w * first if self.depth > 1 else 0) + last * (w + 1)
        return (inner + first * (self.depth > 1)) * w * (self.tokens * (w + 1) + w) + last * w * 2

    def grid(self, templates: int, prime: int, seed: int) -> Residues:
        rng = np.random.default_rng([seed, prime])
        w, t = self.width, self.token_dim or self.width
        inputs = t if self.mixing else t * self.tokens
        weights = [
            tuple(
                random_residues(rng, (k, w, inputs if layer == 0 else w), prime)
                for _ in range(2 if self.mixing else 1)
            )
            for layer, k in enumerate(self.degrees)
        ]
        halves = []
        for half in self.halves.ordered(self.position):
            vectors = np.zeros((self.tokens, t, templates), dtype=np.uint64)
            vectors[[place - 1 for place in half]] = random_residues(rng, (len(half), t, templates), prime)
            halves.append(vectors)
        return self.outputs(halves[0], halves[1], weights, prime)

    def outputs(
        self, first: Residues, second: Residues, weights: list[tuple[Residues, ...]], prime: int
    ) -> Residues:
        """The output for every template of one half with every template of the other.

        Args:
            first, second: the halves' tokens, (N, t, rows) and (N, t, columns), zeros at the other half's places.
            weights: for each layer W, and with mixing U: (k, width, inputs).
            prime: p.
        """
        parts = [self._first_maps(vectors, weights[0], prime) for vectors in (first, second)]
        return filled(
            first.shape[2],
            second.shape[2],
            self.width * (self.tokens if self.mixing else 1),
            lambda row, column: self._output(add(parts[0][row], parts[1][column], prime), weights[1:], prime),
        )

    def _first_maps(self, vectors: Residues, weights: tuple[Residues, ...], prime: int) -> Residues:
        """A half's part of the first layer's linear maps, (k, positions, units, templates)."""
        flat = vectors if self.mixing else vectors.reshape(1, -1, vectors.shape[2])
        only = [self.entry - 1] if self.depth == 1 else slice(None)
        return np.stack(
            [_maps(flat, [w[factor][only] for w in weights], prime) for factor in range(len(weights[0]))]
        )

    def _output(self, maps: Residues, weights: list[tuple[Residues, ...]], prime: int) -> Residues:
        """The entry of the last layer's output, from the first layer's linear maps."""
        for layer in range(self.depth):
            if layer == self.depth - 1 and self.mixing:
                maps = maps[:, self.position - 1 : self.position]
            state: Residues = maps[0]
            for factor in maps[1:]:
                state = reduce(state * factor, prime)
            if layer + 1 < self.depth:
                only = [self.entry - 1] if layer + 2 == self.depth else slice(None)
                here = weights[layer]
                maps = np.stack(
                    [_maps(state, [w[factor][only] for w in here], prime) for factor in range(len(here[0]))]
                )
        found: Residues = state[0, 0]
        return found


def _maps(state: Residues, weights: list[Residues], prime: int) -> Residues:
    """`W x_j`, with a second matrix `+ U (sum over j of x_j)`, for every position: (positions, units, ...)."""
    tail = (1,) * (state.ndim - 2)
    first = weights[0].reshape(*weights[0].shape, *tail)
    each = transpose(matmul(first, transpose(state), prime))
    if len(weights) == 1:
        return each
    pooled = reduce(np.asarray(state.sum(axis=0), dtype=np.uint64), prime)[:, None]
    second = weights[1].reshape(*weights[1].shape, *tail)
    return add(each, transpose(matmul(second, pooled, prime)), prime)
