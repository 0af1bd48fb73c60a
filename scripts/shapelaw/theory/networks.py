"""Networks of blocks of any degree as polynomials over GF(p): products of linear maps, attention, and MLP-Mixers.

Product networks. The note's layers (`P_k(x) = product over i of (W_i x)`, its comment 3.1) are fully connected: the
first one reads the concatenated tokens and merges them.

Attention of any degree. The note counts k matrices for a block of degree k. Here queries q, keys k, values v, and
further values w where k > 3, are linear maps of a token, followed by W_O:

    k = 1   sum over j of v_j
    k = 2   q_i * (sum over j of v_j), element by element
    k = 3   sum over j of <q_i, k_j> v_j, in each head: linearized attention
    k > 3   sum over j of <q_i, k_j> (v_j * w_j * ...), in each head

From degree 2 on the output at i is linear in x_i, and depends on the other tokens only through sums of products of k -
1 of their numbers.

MLP-Mixers (task 4 of the note). A Mixer block (Tolstikhin et al. 2021) sends every channel's row of tokens through one
MLP, `V_2 act(V_1 x)`, and then every token through another. Without activations it is linear and has rank 2, so all its
mixing is in `act`, whose first nonlinear term is the square (GELU is u / 2 + u^2 / sqrt(2 pi) + ...). As in linearized
attention a matrix stands for the MLP over channels. So a block maps the tokens' vectors, the columns of X (d, N), to

    W (X V_1^T)^2 V_2^T        the square element by element, V_1 (S, N), V_2 (N, S), W (d, d),

which has degree 2 and, unlike attention, weights for each position. For one block with m = N / 2 tokens in a half the
terms in both halves are, for each channel, a bilinear form of rank min(S, m) for almost all weights, so the separation
rank is d min(S, m) + 2.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shapelaw.errors import UserError
from shapelaw.theory.memorization import check_sizes
from shapelaw.theory.polynomials import (
    Halves,
    Polynomial,
    Residues,
    add,
    check_degrees,
    check_total_degree,
    filled,
    matched,
    matmul,
    multiset,
    multiset_bound,
    of_rows,
    product,
    random_residues,
    reduce,
    symmetric_power,
    times,
    transpose,
)


class BlockNetwork(Polynomial):
    """A network of blocks or layers of some degrees on N tokens, of which `partition` names the half A."""

    degrees: Any  # k of each, the first one's first
    tokens: int
    partition: tuple[int, ...] | None = None

    @property
    def total_degree(self) -> int:
        """The degree of the output in its input: the product of all k, `k^L` if they are equal."""
        return math.prod(self.degrees)

    @property
    def halves(self) -> Halves:
        """The partition of the tokens."""
        return Halves(self.tokens, 1, self.partition)


@dataclass(frozen=True)
class ProductNetwork(BlockNetwork):
    """A network of element-wise products, and its inputs; the first entry of its output is read.

    Attributes:
        degree_of_layer: k, or one k for each layer, the first layer's first.
        depth: L.
        width: width of every layer.
        tokens: N, even; the input's dimension if `token_dim` is 1.
        token_dim: dimension of a token; the width if not given.
        partition: places of the half A, from 1; the first half if not given.
    """

    degree_of_layer: int | tuple[int, ...]
    depth: int
    width: int
    tokens: int = 2
    token_dim: int | None = None
    partition: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        check_sizes(depth=self.depth)
        if isinstance(self.degree_of_layer, int):
            check_total_degree(self.depth * math.log10(max(1, self.degree_of_layer)))
        if len(self.degrees) != self.depth:
            raise UserError(
                f"{len(self.degrees)} degrees for {self.depth} layers: give one, or one per layer."
            )
        check_degrees(self.degrees)
        check_sizes(width=self.width, tokens=self.tokens, token_dim=self.token_dim)
        self.halves.check()

    @property
    def degrees(self) -> tuple[int, ...]:
        """k of each layer."""
        k = self.degree_of_layer
        return k if isinstance(k, tuple) else (k,) * self.depth

    @property
    def degree(self) -> int:
        return self.total_degree + sum(math.prod(self.degrees[layer:]) for layer in range(self.depth))

    def rank_bound(self) -> int:
        """An upper bound on the separation rank for any weights, a sum over the degree in B's numbers.

        In each degree a half has at most all monomials in its numbers. The k maps of a layer are sums of a part from A
        and a part from B; so a half has at most, for each unit, the products of subsets of the first layer's parts, and
        in every further layer the products of k functions of the layer before.
        """
        K = self.total_degree
        numbers = (self.token_dim or self.width) * self.tokens // 2
        if K > MOST_SUMMED:
            return multiset_bound(numbers + 1, K)
        half = [multiset(numbers, degree) for degree in range(K + 1)]
        units = 1 if self.depth == 1 else self.width
        first = self.degrees[0]
        products = [units * math.comb(first, degree) for degree in range(first + 1)]
        for k in self.degrees[1:]:
            products = symmetric_power(products, k)
        half = [min(pair) for pair in zip(half, products, strict=True)]
        return matched(half, half, K)

    def multiplications(self) -> int:
        w, first, inner, last = self.width, self.degrees[0], sum(self.degrees[1:-1]), self.degrees[-1]
        return inner * (w**2 + w) + (w * first if self.depth > 1 else 0) + last * (w + 1)

    def grid(self, templates: int, prime: int, seed: int) -> Residues:
        rng = np.random.default_rng([seed, prime])
        w, t = self.width, self.token_dim or self.width
        inputs = [t * self.tokens] + [w] * (self.depth - 1)
        weights = [
            random_residues(rng, (k, w, size), prime) for k, size in zip(self.degrees, inputs, strict=True)
        ]
        first, second = self.halves.drawn(rng, 1, t, templates, prime)
        return self.outputs(first, second, weights, prime)

    def outputs(self, first: Residues, second: Residues, weights: list[Residues], prime: int) -> Residues:
        """The output for every template of one half with every template of the other.

        Args:
            first, second: the halves' tokens, (N, t, rows) and (N, t, columns), zeros at the other half's places.
            weights: W of each layer, (k, width, inputs).
            prime: p.
        """
        *others, last = weights
        layers = [*others, last[:, :1]]
        parts = [_maps(half.reshape(-1, half.shape[2]), layers[0], prime) for half in (first, second)]

        def output(row: Any, column: Any) -> Residues:
            maps = add(parts[0][row], parts[1][column], prime)
            for layer in layers[1:]:
                maps = _maps(_multiplied(maps, prime), layer, prime)
            found: Residues = _multiplied(maps, prime)[0]
            return found

        return filled(first.shape[2], second.shape[2], self.width, output)


def _maps(state: Residues, weights: Residues, prime: int) -> Residues:
    """The k linear maps of a layer, (k, units, ...), of what is before it, (inputs, ...)."""
    return np.stack([times(one, state[:, None], prime)[:, 0] for one in weights])


def _multiplied(maps: Residues, prime: int) -> Residues:
    """The product of the k maps, element by element."""
    state: Residues = maps[0]
    for factor in maps[1:]:
        state = reduce(state * factor, prime)
    return state


MOST_SUMMED = 2000  # degree above which the bound is not summed degree by degree
MOST_DEGREES = 130  # above this, the bound ignores the symmetry between tokens


@dataclass(frozen=True)
class Block:
    """The k maps of the tokens, (k, d, d), and W_O, (d, d)."""

    maps: Residues
    output: Residues


@dataclass(frozen=True)
class DegreeAttention(BlockNetwork):
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
        check_sizes(depth=len(self.degrees), width=self.width, tokens=self.tokens, heads=self.heads)
        check_degrees(self.degrees)
        self.halves.check()
        if self.width % self.heads:
            raise UserError(f"The width {self.width} is not divisible by {self.heads} heads.")

    @property
    def degree(self) -> int:
        layers = range(len(self.degrees))
        weights = sum((self.degrees[layer] + 1) * math.prod(self.degrees[layer + 1 :]) for layer in layers)
        return self.total_degree + weights

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
            first = product(token, others, K)
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
            values = times(block.maps[0], half, prime)
            if k < 3:
                total = np.asarray(values.sum(axis=1, keepdims=True), dtype=np.uint64)
                sums = [reduce(total, prime)]
            else:
                for weights in block.maps[3:]:
                    values = reduce(values * times(weights, half, prime), prime)
                keys = times(block.maps[1], half, prime)
                sums = [matmul(keys[head], transpose(values[head]), prime) for head in self._slices()]
            found = [add(*pair, prime) for pair in zip(found, sums, strict=True)] if found else sums
        return found

    def _answers(self, half: Residues, sums: list[Residues], block: Block, prime: int) -> Residues:
        """The block's output at tokens of one half, (d, tokens, ...)."""
        k = len(block.maps)
        if k == 1:
            same = np.broadcast_to(sums[0], (*half.shape[:2], *sums[0].shape[2:]))
            return times(block.output, same, prime)
        queries = times(block.maps[min(2, k - 1)], half, prime)
        if k == 2:
            return times(block.output, reduce(queries * sums[0], prime), prime)
        pairs = zip(sums, self._slices(), strict=True)
        heads = [matmul(transpose(total), queries[head], prime) for total, head in pairs]
        return times(block.output, np.concatenate(heads), prime)

    def _slices(self) -> list[slice]:
        size = self.width // self.heads
        return [slice(head * size, (head + 1) * size) for head in range(self.heads)]


def _polynomials(variables: dict[int, int], most: int) -> list[int]:
    """Numbers of monomials of degree 0 to `most`, from the numbers of variables of each degree."""
    found = [1] + [0] * most
    for degree, count in variables.items():
        picks = [multiset(count, total // degree) if total % degree == 0 else 0 for total in range(most + 1)]
        found = product(found, picks, most)
    return found


@dataclass(frozen=True)
class MixerBlock:
    """V_1 (S, N), V_2 (N, S) and W (d, d)."""

    up: Residues
    down: Residues
    channels: Residues


@dataclass(frozen=True)
class MixerNetwork(BlockNetwork):
    """A network of such blocks; its output is the first entry at the first token.

    Attributes:
        depth: L.
        width: d, number of channels.
        tokens: N, even.
        hidden: S, units of the MLP over tokens; N if not given.
        partition: places of the half A, from 1; the first half if not given.
    """

    depth: int
    width: int
    tokens: int
    hidden: int | None = None
    partition: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        check_sizes(depth=self.depth, width=self.width, tokens=self.tokens, hidden=self.hidden)
        check_total_degree(self.depth * math.log10(2))
        self.halves.check()

    @property
    def units(self) -> int:
        """S, the units of the MLP over tokens."""
        return self.tokens if self.hidden is None else self.hidden

    @property
    def degrees(self) -> tuple[int, ...]:
        """A block squares its input."""
        return (2,) * self.depth

    @property
    def degree(self) -> int:
        return 5 * self.total_degree - 4  # a block squares its input and V_1, and has V_2 and W once

    def rank_bound(self) -> int:
        """An upper bound on the separation rank for any weights, a sum over the degree in B's numbers.

        In each degree a half has at most all monomials in its numbers. The first block's hidden numbers are sums of a
        part from each half, so after squaring a half has 1, those parts and their squares, and every further block adds
        the products of two earlier functions.
        """
        K, numbers = self.total_degree, self.width * self.tokens // 2
        if K > MOST_SUMMED:
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
        first, second = self.halves.drawn(rng, 1, d, templates, prime)
        return self.outputs(transpose(first), transpose(second), blocks, prime)

    def outputs(self, first: Residues, second: Residues, blocks: list[MixerBlock], prime: int) -> Residues:
        """The output for every template of one half with every template of the other.

        Args:
            first, second: the halves' tokens, (d, N, rows) and (d, N, columns), zeros at the other half's places.
            blocks: the blocks of the network.
            prime: p.
        """
        parts = [of_rows(vectors, blocks[0].up, prime) for vectors in (first, second)]
        last = blocks[-1]
        read = MixerBlock(last.up, last.down[:1], last.channels[:1])

        def output(row: Any, column: Any) -> Residues:
            hidden = add(parts[0][row], parts[1][column], prime)
            for block, following in itertools.pairwise(blocks):
                hidden = of_rows(_mixed(hidden, block, prime), following.up, prime)
            found: Residues = _mixed(hidden, read, prime)[0, 0]
            return found

        return filled(first.shape[2], second.shape[2], self.width * max(self.tokens, self.units), output)


def _mixed(hidden: Residues, block: MixerBlock, prime: int) -> Residues:
    """`W hidden^2 V_2^T`, (d, N, ...)."""
    return times(block.channels, of_rows(reduce(hidden * hidden, prime), block.down, prime), prime)
