"""Blocks of any degree k that generalize linearized attention, as polynomials over GF(p).

The note on building blocks counts k matrices for a block of degree k. Here queries q, keys k, values v, and further
values w where k > 3, are linear maps of a token, followed by W_O:

    k = 1   sum over j of v_j
    k = 2   q_i * (sum over j of v_j), element by element
    k = 3   sum over j of <q_i, k_j> v_j, in each head: linearized attention
    k > 3   sum over j of <q_i, k_j> (v_j * w_j * ...), in each head

From degree 2 on the output at i is linear in x_i, and depends on the other tokens only through sums of products of k -
1 of their numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shapelaw.errors import UserError
from shapelaw.theory.graded_dimensions import matched, multiset, multiset_bound, symmetric_power
from shapelaw.theory.polynomials import (
    Polynomial,
    Residues,
    add,
    check_degrees,
    check_whole_numbers,
    filled,
    matmul,
    random_residues,
    reduce,
    transpose,
)

MOST_SUMMED = 2000  # degree above which the bound is not summed degree by degree
MOST_DEGREES = 130  # above this, the bound ignores the symmetry between tokens


@dataclass(frozen=True)
class Block:
    """The k maps of the tokens, (k, d, d), and W_O, (d, d)."""

    maps: Residues
    output: Residues


@dataclass(frozen=True)
class DegreeAttention(Polynomial):
    """A network of such blocks; its output is the first entry at the first token, which is in the half A.

    Attributes:
        degrees: k of each block, the first block's first.
        width: d.
        tokens: N, even; the first half is A.
        heads: H, of dimension d / H, in blocks of degree 3 and more.
    """

    degrees: tuple[int, ...]
    width: int
    tokens: int
    heads: int = 1

    def __post_init__(self) -> None:
        check_whole_numbers(depth=len(self.degrees), width=self.width, tokens=self.tokens, heads=self.heads)
        check_degrees(self.degrees)
        if self.tokens % 2:
            raise UserError(f"N = {self.tokens} tokens is odd: a balanced partition needs an even number.")
        if self.width % self.heads:
            raise UserError(f"The width {self.width} is not divisible by {self.heads} heads.")

    @property
    def total_degree(self) -> int:
        """The product of all k: the degree of the output in the tokens."""
        return math.prod(self.degrees)

    @property
    def degree(self) -> int:
        layers = range(len(self.degrees))
        weights = sum((self.degrees[layer] + 1) * math.prod(self.degrees[layer + 1 :]) for layer in layers)
        return self.total_degree + weights

    @property
    def params(self) -> int:
        """Number of parameters: k + 1 matrices of d x d per block."""
        return sum(k + 1 for k in self.degrees) * self.width**2

    def rank_bound(self) -> int:
        """An upper bound on the separation rank for any weights, a sum over the degree in B's numbers.

        A half's functions don't change when its tokens are permuted, except for the output position; and where no block
        has degree 1 they are polynomials in the half's sums of products of k - 1 numbers, linear in x_i.
        """
        d, m, K = self.width, self.tokens // 2, self.total_degree
        if K > MOST_SUMMED:
            return multiset_bound(d * m + 1, K)
        first = [multiset(d * m, degree) for degree in range(K + 1)]
        second = first
        if K <= MOST_DEGREES:
            token = [multiset(d, degree) for degree in range(K + 1)]
            others = symmetric_power(token, m - 1)[: K + 1] if m > 1 else [1] + [0] * K
            second = symmetric_power(token, m)[: K + 1]
            first = [
                sum(token[part] * others[degree - part] for part in range(degree + 1))
                for degree in range(K + 1)
            ]
        if 1 not in self.degrees:
            sums = _polynomials({k - 1: multiset(d, k - 1) for k in self.degrees}, K)
            second = list(map(min, second, sums))
            first = list(map(min, first, [0, *(d * count for count in sums)]))
        return matched(first, second, K)

    def multiplications(self) -> int:
        d, N, a = self.width, self.tokens, self.width // self.heads
        total = 0
        for layer, k in enumerate(self.degrees):
            last = layer == len(self.degrees) - 1
            asked = 1 if last else N
            if layer:
                total += max(1, k - 1) * N * d**2 + asked * d**2 + max(0, k - 3) * N * d
                total += N * d * a if k > 2 else 0
            total += asked * d * a + (d if last else N * d**2)
        return total

    def grid(self, templates: int, prime: int, seed: int) -> Residues:
        rng = np.random.default_rng([seed, prime])
        d, m = self.width, self.tokens // 2
        blocks = [
            Block(random_residues(rng, (k, d, d), prime), random_residues(rng, (d, d), prime))
            for k in self.degrees
        ]
        first, second = (random_residues(rng, (d, m, templates), prime) for _ in range(2))
        return self.outputs(first, second, blocks, prime)

    def outputs(self, first: Residues, second: Residues, blocks: Sequence[Block], prime: int) -> Residues:
        """The output for every template of one half with every template of the other.

        Args:
            first, second: the halves' tokens, (d, N/2, rows) and (d, N/2, columns).
            blocks: the blocks of the network.
            prime: p.
        """

        def output(row: Any, column: Any) -> Residues:
            halves: list[Residues] = [first[row], second[column]]
            for block in blocks[:-1]:
                sums = self._sums(halves, block, prime)
                halves = [self._answers(half, sums, block, prime) for half in halves]
            sums = self._sums(halves, blocks[-1], prime)
            only = Block(blocks[-1].maps, blocks[-1].output[:1])
            found: Residues = self._answers(halves[0][:, :1], sums, only, prime)[0, 0]
            return found

        return filled(first.shape[2], second.shape[2], self.width * max(self.tokens, self.width), output)

    def _sums(self, halves: Sequence[Residues], block: Block, prime: int) -> list[Residues]:
        """A block's sums over all tokens: for each head, (d/H, d/H), the sum of `k_j (v_j * ...)^T`, or (d, 1)."""
        k = len(block.maps)
        found: list[Residues] = []
        for half in halves:
            values = _map(block.maps[0], half, prime)
            if k < 3:
                total = np.asarray(values.sum(axis=1, keepdims=True), dtype=np.uint64)
                sums = [reduce(total, prime)]
            else:
                for weights in block.maps[3:]:
                    values = reduce(values * _map(weights, half, prime), prime)
                keys = _map(block.maps[1], half, prime)
                sums = [matmul(keys[head], transpose(values[head]), prime) for head in self._slices()]
            found = [add(*pair, prime) for pair in zip(found, sums, strict=True)] if found else sums
        return found

    def _answers(self, half: Residues, sums: list[Residues], block: Block, prime: int) -> Residues:
        """The block's output at tokens of one half, (d, tokens, ...)."""
        k = len(block.maps)
        if k == 1:
            mixed = np.broadcast_to(sums[0], (*half.shape[:2], *sums[0].shape[2:]))
        else:
            queries = _map(block.maps[min(2, k - 1)], half, prime)
            if k == 2:
                mixed = reduce(queries * sums[0], prime)
            else:
                parts = [
                    matmul(transpose(total), queries[head], prime)
                    for total, head in zip(sums, self._slices(), strict=True)
                ]
                mixed = np.concatenate(parts)
        return _map(block.output, mixed, prime)

    def _slices(self) -> list[slice]:
        size = self.width // self.heads
        return [slice(head * size, (head + 1) * size) for head in range(self.heads)]


def _map(weights: Residues, tokens: Residues, prime: int) -> Residues:
    """A matrix times every token, (d, tokens, ...)."""
    return matmul(weights.reshape(*weights.shape, *(1,) * (tokens.ndim - 2)), tokens, prime)


def _polynomials(variables: dict[int, int], most: int) -> list[int]:
    """Numbers of monomials of degree 0 to `most`, from the numbers of variables of each degree."""
    found = [1] + [0] * most
    for degree, count in variables.items():
        picks = [multiset(count, total // degree) if total % degree == 0 else 0 for total in range(most + 1)]
        found = [
            sum(found[part] * picks[total - part] for part in range(total + 1)) for total in range(most + 1)
        ]
    return found
