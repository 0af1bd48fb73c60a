"""Linearized self-attention as a polynomial over GF(p): eq. 3 of Levine et al. 2020, eq. 5 of Wies et al. 2021.

A layer maps the tokens' vectors, the columns of X, to `sum over h of W_O W_V X X^T W_K^T W_Q X`. So after l layers X
has become T X, with a d x d matrix T that depends on the tokens only through `G = X X^T`:

    T_0 = 1,  T_{l+1} = (sum over h of (W_O W_V)_h (T_l G T_l^T) (W_K^T W_Q)_h) T_l  (+ T_l with residual connections)

and one output is an entry of `T_L x_i`. G is a sum over the two halves of the tokens, so the cost of an entry of the
grid tensor does not depend on N.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Literal

import numpy as np

from shapelaw.errors import UserError
from shapelaw.theory.memorization import check_sizes
from shapelaw.theory.polynomials import (
    Halves,
    Polynomial,
    Residues,
    add,
    batched,
    check_total_degree,
    filled,
    gram_dimension,
    matched,
    matmul,
    multiset,
    multiset_bound,
    output_dimension,
    random_residues,
    reduce,
    staircase,
    times,
    transpose,
)

Embedding = Literal["vectors", "vocabulary", "convolution"]
MOST_MIXINGS = 400  # above this, the bound is not summed degree by degree


def mixings(depth: int) -> int:
    """`C(L) = (3^L - 1) / 2`: the degree of the output in G (lemma 1 of Levine et al.)."""
    return int((3**depth - 1) // 2)


@dataclass(frozen=True)
class LinearAttention(Polynomial):
    """A network without softmax, norm and ReLU, its inputs, and the entry of its output that is read.

    Attributes:
        depth: L.
        width: d, dimension of the tokens' vectors.
        tokens: N, even.
        heads: H.
        attention_dim: d_a, dimension of one head; d / H if not given.
        embedding_rank: r, rank of the embedding; the largest possible if not given.
        positional_rank: r_e, rank of the added positional embedding; 0 without one.
        residual: whether each layer adds its input (figure 5 of Levine et al.).
        embedding: `vectors`: any vector times a matrix of rank r, an infinite vocabulary; `vocabulary`: one of V
            columns (eq. 1 of Wies et al.); `convolution` (their eq. 2).
        vocabulary: V.
        patch: M / N, number of inputs that the convolution turns into one token.
        input_dim: d_input, dimension of an input of the convolution.
        partition: places of the half A, from 1, among N tokens, or among M inputs of a convolution; the first half
            if not given.
        position: i, the position of the output, from 1.
        entry: p, the entry of that output, from 1.
    """

    depth: int
    width: int
    tokens: int
    heads: int = 1
    attention_dim: int | None = None
    embedding_rank: int | None = None
    positional_rank: int = 0
    residual: bool = False
    embedding: Embedding = "vectors"
    vocabulary: int | None = None
    patch: int = 1
    input_dim: int | None = None
    partition: tuple[int, ...] | None = None
    position: int = 1
    entry: int = 1

    def __post_init__(self) -> None:
        sizes = ["depth", "width", "tokens", "heads", "attention_dim", "embedding_rank"]
        sizes += ["vocabulary", "patch", "input_dim"]
        check_sizes(**{name: getattr(self, name) for name in sizes})
        check_total_degree(self.depth * math.log10(3))
        if self.positional_rank < 0 or self.positional_rank > min(self.width, self.tokens):
            raise UserError(
                f"The positional rank {self.positional_rank} must be from 0 to the smaller of width and tokens, "
                f"{min(self.width, self.tokens)}."
            )
        if self.attention_dim is None and self.width % self.heads:
            raise UserError(
                f"The width {self.width} is not divisible by {self.heads} heads: "
                "give another number of heads, or the attention dimension of a head."
            )
        self._check_embedding()
        self.halves.check()
        if not 1 <= self.position <= self.tokens:
            raise UserError(f"The position {self.position} must be from 1 to N = {self.tokens}.")
        if not 1 <= self.entry <= self.width:
            raise UserError(f"The entry {self.entry} must be from 1 to the width {self.width}.")

    def _check_embedding(self) -> None:
        if (self.vocabulary is not None) != (self.embedding == "vocabulary"):
            raise UserError(
                "The vocabulary embedding needs a vocabulary size, and no other embedding takes one."
            )
        if (self.input_dim is not None) != (self.embedding == "convolution"):
            raise UserError(
                "The convolutional embedding needs an input dimension, and no other embedding takes one."
            )
        if self.patch != 1 and self.embedding != "convolution":
            raise UserError("Only the convolutional embedding takes a patch of several inputs.")
        if self.embedding_rank is not None and self.embedding_rank > self.most_rank:
            raise UserError(
                f"The embedding rank {self.embedding_rank} is above {self.most_rank}, "
                "the smaller of the width and of the dimension that the embedding reads."
            )

    @property
    def most_rank(self) -> int:
        """The largest rank of the embedding: `min(d, V)`, with `M/N d_input` as the V of a convolution."""
        if self.embedding == "vocabulary":
            return min(self.width, self.vocabulary or 0)
        if self.embedding == "convolution":
            return min(self.width, self.patch * (self.input_dim or 0))
        return self.width

    @property
    def rank(self) -> int:
        """r, the rank of the embedding."""
        return self.most_rank if self.embedding_rank is None else self.embedding_rank

    @property
    def head_dim(self) -> int:
        """d_a, the dimension of a head."""
        return self.width // self.heads if self.attention_dim is None else self.attention_dim

    @property
    def halves(self) -> Halves:
        """The partition of the inputs, and the inputs that make each token."""
        return Halves(self.tokens, self.patch, self.partition)

    @property
    def degree(self) -> int:
        return int(3 * 3**self.depth) + 4 * mixings(self.depth)

    def rank_bound(self) -> int:
        """An upper bound on the separation rank for any weights: see `polynomials`.

        With an embedding of less than full rank and positions, the tokens' numbers w enter G with constants q, as
        `w w^T` and `w q^T`: polynomials of a degree in those r (r + 1) / 2 + r r_e entries. They are also polynomials
        in the Gram matrix of vectors of r + r_e numbers, and polynomials of twice that degree in all numbers of a half.
        """
        C, m = mixings(self.depth), self.tokens // 2
        if self.halves.split:
            return self._split_bound()
        r, constant = self.rank, min(self.positional_rank, self.width - self.rank)
        if C > MOST_MIXINGS:
            return multiset_bound((r + constant) * (r + constant + 1) // 2 + 1, C)
        outputs = [output_dimension(c, r + constant, m) for c in range(C + 1)]
        grams = [gram_dimension(c, r + constant, m) for c in range(C + 1)]
        if self.residual:
            bound = staircase(list(accumulate(outputs)), list(accumulate(grams)), C)
        else:
            bound = min(matched(outputs, grams, C), (self.heads * (self.head_dim + 1)) ** C)
        if constant:
            entries = r * (r + 1) // 2 + r * constant
            grams = [multiset(entries + 1, c) for c in range(C + 1)]
            outputs = [min((r + 1) * count, multiset(m * r + 1, 2 * c + 1)) for c, count in enumerate(grams)]
            grams = [min(count, multiset(m * r + 1, 2 * c)) for c, count in enumerate(grams)]
            bound = min(staircase(outputs, grams, C), bound)
        return min(bound, *(self.domain or (bound,)))

    def _split_bound(self) -> int:
        """The bound if the partition splits patches: all polynomials in a half's numbers."""
        top = 2 * mixings(self.depth) + 1
        if top > MOST_MIXINGS:
            return multiset_bound(max(map(self._numbers, self.halves.inputs)) + 1, top)
        first, second = (
            [multiset(self._numbers(half), degree) for degree in range(top + 1)]
            for half in self.halves.inputs
        )
        if not self.residual and (self.positional_rank == 0 or self.rank == self.width):
            return matched(first, second, top)
        return staircase(list(accumulate(first)), list(accumulate(second)), top)

    def _numbers(self, half: tuple[int, ...]) -> int:
        inputs = self.halves.tokens_of(half).values()
        return sum(min(self.rank, count * (self.input_dim or 0)) for count in inputs)

    @property
    def domain(self) -> tuple[int, int] | None:
        """The number of different inputs of each half if a vocabulary makes it finite.

        Without positions a half's functions don't change when its tokens are permuted, except for the output position.
        """
        if self.vocabulary is None:
            return None
        V, m = self.vocabulary, self.tokens // 2
        if self.positional_rank:
            return V**m, V**m
        return V * multiset(V, m - 1), multiset(V, m)

    def multiplications(self) -> int:
        d, H, split = self.width, self.heads, len(self.halves.split)
        whole = max(0, self.depth - 2) * (2 * H + 3)
        if split and self.depth > 1:
            whole += 2 * H
        return whole * d**3 + split * d**2 + (4 * H + 2) * d**2

    def grid(self, templates: int, prime: int, seed: int) -> Residues:
        rng = np.random.default_rng([seed, prime])
        d, H, a = self.width, self.heads, self.head_dim
        layers = [
            Layer(random_maps(rng, H, d, a, prime), random_maps(rng, H, d, a, prime))
            for _ in range(self.depth)
        ]
        first, second = self._embedded(templates, rng, prime)
        return outputs(self, first, second, layers, prime)

    def _embedded(self, templates: int, rng: np.random.Generator, prime: int) -> tuple[Residues, Residues]:
        """Each half's contribution to every token, (N, d, templates); only one half adds the positions."""
        d, N = self.width, self.tokens
        readers = self.patch * (self.input_dim or 0) if self.embedding == "convolution" else self.vocabulary
        matrix = random_residues(rng, (d, self.rank), prime)
        if readers is not None:
            matrix = matmul(matrix, random_residues(rng, (self.rank, readers), prime), prime)
        places = np.zeros((d, N), dtype=np.uint64)
        if self.positional_rank:
            left = random_residues(rng, (d, self.positional_rank), prime)
            places = matmul(left, random_residues(rng, (self.positional_rank, N), prime), prime)
        halves = self.halves.ordered(self.position)
        domains = self.domain or (None, None)
        found, placed = list[Residues](), set[int]()
        for half, domain in zip(halves, domains, strict=True):
            count = templates if domain is None else min(templates, domain)
            vectors = np.zeros((N, d, count), dtype=np.uint64)
            if self.embedding == "vocabulary":
                words = self._words(half, count, domain or 0, rng)
                vectors[[token - 1 for token in half]] = transpose(matrix[:, words])
            else:
                self._read(vectors, half, matrix, rng, prime)
            own = [*self.halves.tokens_of(half).keys() - placed]
            vectors[own] = add(vectors[own], places.T[own, :, None], prime)
            placed.update(own)
            found.append(vectors)
        return found[0], found[1]

    def _read(
        self, vectors: Residues, half: tuple[int, ...], matrix: Residues, rng: np.random.Generator, prime: int
    ) -> None:
        """Add random inputs of one half, through the embedding's matrix, to their tokens."""
        numbers = self.input_dim or self.rank
        for place in half:
            token, offset = divmod(place - 1, self.patch)
            read = matrix[:, offset * numbers : (offset + 1) * numbers]
            inputs = random_residues(rng, (numbers, vectors.shape[2]), prime)
            vectors[token] = add(vectors[token], matmul(read, inputs, prime), prime)

    def _words(self, half: tuple[int, ...], count: int, domain: int, rng: np.random.Generator) -> Residues:
        """Words of the vocabulary for each token of a half, (m, count): all inputs if `count` is the domain."""
        V, m = self.vocabulary or 0, len(half)
        if count < domain:
            return rng.integers(0, V, (m, count), dtype=np.uint64)
        rows: Iterator[tuple[int, ...]]
        if self.positional_rank:
            rows = itertools.product(range(V), repeat=m)
        else:
            alone = half.index(self.position) if self.position in half else None
            rows = _multisets(V, m, alone)
        return np.array(list(rows), dtype=np.uint64).T


def _multisets(kinds: int, picks: int, alone: int | None) -> Iterator[tuple[int, ...]]:
    """Words of a half up to permutations of all its tokens except the one at place `alone`."""
    if alone is None:
        yield from itertools.combinations_with_replacement(range(kinds), picks)
        return
    for word in range(kinds):
        for others in itertools.combinations_with_replacement(range(kinds), picks - 1):
            yield (*others[:alone], word, *others[alone:])


@dataclass(frozen=True)
class Layer:
    """`W_O W_V` and `W_K^T W_Q` of each head, both (H, d, d)."""

    values: Residues
    scores: Residues


def random_maps(rng: np.random.Generator, heads: int, width: int, inner: int, prime: int) -> Residues:
    """Products of random (d, d_a) and (d_a, d) matrices, one for each head: (H, d, d)."""
    pairs = [
        (random_residues(rng, (width, inner), prime), random_residues(rng, (inner, width), prime))
        for _ in range(heads)
    ]
    return np.stack([matmul(left, right, prime) for left, right in pairs])


def outputs(
    network: LinearAttention, first: Residues, second: Residues, layers: Sequence[Layer], prime: int
) -> Residues:
    """The output for every template of one half with every template of the other.

    Args:
        network: says which output is read, and which tokens both halves contribute to.
        first, second: each half's contribution to each token's vector, (N, d, rows) and (N, d, columns); zeros where a
            half doesn't contribute to a token. The first half contributes to the output position.
        layers: the layers of the network.
        prime: p.
    """
    i, split = network.position - 1, network.halves.split
    grams = [gram(vectors, prime) for vectors in (first, second)]
    maps: list[Residues] = []  # T_1 is linear in G: each half's part suffices
    if len(layers) > 1 and not split:
        maps = [mixed(half, layers[0], prime) for half in grams]
        if network.residual:
            maps[0] = add(maps[0], identity(maps[0]), prime)

    def some(row: Any, column: Any) -> Residues:
        a, b = first[row], second[column]
        G = add(grams[0][row], grams[1][column], prime)
        if split:
            cross = matmul(transpose(a[split]), b[split], prime)
            G = add(G, add(cross, transpose(cross), prime), prime)
        x = add(a[i], b[i], prime)[:, None] if i in split else a[i][:, None]
        T = add(maps[0][row], maps[1][column], prime) if maps else None
        for layer in layers[1 if maps else 0 : -1]:
            T = next_map(T, G, layer, network.residual, prime)
        return last_entry(network, T, G, x, layers[-1], prime)

    return filled(first.shape[2], second.shape[2], first.shape[1] ** 2, some)


def gram(vectors: Residues, prime: int) -> Residues:
    """The sum of x x^T over the tokens: (N, d, templates) to (d, d, templates)."""
    total = np.zeros((vectors.shape[1], *vectors.shape[1:]), dtype=np.uint64)
    for x in vectors:
        total = add(total, reduce(x[:, None] * x[None], prime), prime)
    return total


def identity(like: Residues) -> Residues:
    """The unit matrix, in a shape that broadcasts over the batch of `like`."""
    return batched(np.eye(len(like), dtype=np.uint64), like)


def mixed(middle: Residues, layer: Layer, prime: int) -> Residues:
    """The sum over heads of `W_O W_V middle W_K^T W_Q`."""
    total = np.zeros((1,) * middle.ndim, dtype=np.uint64)
    for values, scores in zip(layer.values, layer.scores, strict=True):
        total = add(total, matmul(times(values, middle, prime), batched(scores, middle), prime), prime)
    return total


def next_map(T: Residues | None, G: Residues, layer: Layer, residual: bool, prime: int) -> Residues:
    """T of the next layer, from G and T (None is the unit matrix)."""
    middle = G if T is None else matmul(matmul(T, G, prime), transpose(T), prime)
    found = mixed(middle, layer, prime)
    if T is not None:
        found = matmul(found, T, prime)
    if residual:
        found = add(found, identity(G) if T is None else T, prime)
    return found


def last_entry(
    network: LinearAttention, T: Residues | None, G: Residues, x: Residues, layer: Layer, prime: int
) -> Residues:
    """The entry of the last layer's output, (rows, columns), using only products of matrices with vectors."""
    p = network.entry - 1
    v = x if T is None else matmul(T, x, prime)
    total = v[p, 0] if network.residual else np.zeros((1, 1), dtype=np.uint64)
    for values, scores in zip(layer.values, layer.scores, strict=True):
        u = times(scores, v, prime)
        left = values[p : p + 1, :, None, None]
        if T is not None:
            u, left = matmul(transpose(T), u, prime), matmul(left, T, prime)
        total = add(total, matmul(left, matmul(G, u, prime), prime)[0, 0], prime)
    return total
