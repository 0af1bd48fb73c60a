"""Lemmas 2 to 8 of Levine et al. 2020 (appendix), each by itself, and lemma 8 of Wies et al. 2021.

  PYTHONPATH=scripts python benchmarks/lemmas.py --out docs/results/lemmas.csv

A row for each lemma: how many cases were checked, in how many it fails, and the least and largest slack in powers of 3
(empty where it is an equality). Ranks are exact; all else is whole numbers, over GF(p) or as they are.

Lemma 6's weights are those of its proof with four indices corrected, which the printed ones need for two heads and
more: `phi` steps by (d_a - 1) / 2, the second template is V_(i - M/2), the lower half of W_V of the first layer repeats
the upper one, and the last layer adds up the heads.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd

from shapelaw.errors import command_line
from shapelaw.theory.linear_attention import Layer, LinearAttention, next_map, outputs, random_maps
from shapelaw.theory.polynomials import PRIMES, Residues, matmul, multiset, random_residues, rank
from shapelaw.theory.rank_bounds import log3
from shapelaw.theory.separation_rank import separation_rank

PRIME = PRIMES[1]  # 5 modulo 8, so 2 has no root and the following is one of -1
ROOT = pow(2, (PRIME - 1) // 4, PRIME)
RANDOM = 7  # seed of weights and points
MOST = 2_000  # of a network whose rank is measured


@dataclass(frozen=True)
class Case:
    """A lemma at one size: whether it holds, and by how much, in powers of 3; None where it is an equality."""

    holds: bool
    slack: float | None = None


def layer_bound(depths: int, widths: int) -> Iterator[Case]:
    """Lemma 2: one more layer on entries of rank K has a rank of at most N d^4 K^3 / H.

    K is the rank at one layer less, of all entries alike (proposition 1), and 1 of the inputs.
    """
    for width in range(1, widths + 1):
        for heads, tokens in itertools.product(range(1, width + 1), (2, 4, 6)):
            if width % heads == 0:
                known = 1
                for depth in range(1, min(depths, 5 - width) + 1 if width > 2 else depths + 1):
                    found = separation_rank(LinearAttention(depth, width, tokens, heads)).rank
                    slack = log3(tokens * width**4 * known**3) - log3(heads) - log3(found)
                    yield Case(found * heads <= tokens * width**4 * known**3, slack)
                    known = found


def multiset_means(most_kinds: int, most_factors: int, most_picks: int) -> Iterator[Case]:
    """Lemma 3: prod ((n, r_j)) <= (prod over t < n of (M / k + t))^k / ((n - 1)!)^k, with M the sum of the k r_j."""
    for n, k in itertools.product(range(1, most_kinds + 1), range(1, most_factors + 1)):
        for picks in itertools.combinations_with_replacement(range(most_picks + 1), k):
            product = math.prod(multiset(n, r) for r in picks)
            mean = Fraction(sum(picks), k)
            most = (
                math.prod((mean + t for t in range(1, n)), start=Fraction(1)) / math.factorial(n - 1)
            ) ** k
            yield Case(product <= most, log3(most.numerator) - log3(most.denominator) - log3(product))


def multiset_upper(most_kinds: int, most_picks: int) -> Iterator[Case]:
    """Lemma 4: ((n, k)) <= (2e (n + k) / n)^n."""
    for n, k in itertools.product(range(1, most_kinds + 1), range(1, most_picks + 1)):
        slack = n * (log3(2 * (n + k)) + 1 / math.log(3) - log3(n)) - log3(multiset(n, k))
        yield Case(slack >= 0, slack)


Term = tuple[Residues, ...]


def residual_terms(layers: list[Layer]) -> list[Term]:
    """The factors P_0, ..., P_j of each term P_0 G P_1 G ... G P_j X of a residual network's output, G = X X^T."""
    width = layers[0].values.shape[1]
    terms: list[Term] = [(np.eye(width, dtype=np.uint64),)]
    for layer in layers:
        found = []
        for values, scores in zip(layer.values, layer.scores, strict=True):
            for E, F, Y in itertools.product(terms, repeat=3):
                first = matmul(values, E[0], PRIME)
                middle = matmul(matmul(F[0].T, scores, PRIME), Y[0], PRIME)
                turned = [factor.T for factor in F[:0:-1]]
                found.append((first, *E[1:], *turned, middle, *Y[1:]))
        terms += found
    return terms


def residual_form(sizes: list[tuple[int, int, int]]) -> Iterator[Case]:
    """Lemma 5, eq. 22: a residual network is X and such terms of at most C mixings, n_j H^j of them with j.

    Args:
        sizes: L, d and H; factors pass through heads of d / H numbers.
    """
    rng = np.random.default_rng(RANDOM)
    for depth, width, heads in sizes:
        inner = width // heads
        layers = [
            Layer(*(random_maps(rng, heads, width, inner, PRIME) for _ in range(2))) for _ in range(depth)
        ]
        terms = residual_terms(layers)
        X = random_residues(rng, (width, 3), PRIME)
        G = matmul(X, X.T, PRIME)
        whole: Residues | None = None
        for layer in layers:
            whole = next_map(whole, G, layer, True, PRIME)
        total = np.zeros((width, width), dtype=np.uint64)
        for first, *others in terms:
            for factor in others:
                first = matmul(matmul(first, G, PRIME), factor, PRIME)
            total = (total + first) % np.uint64(PRIME)
        alone = Counter(
            len(term) - 1
            for term in residual_terms([Layer(one.values[:1], one.scores[:1]) for one in layers])
        )
        counted = Counter(len(term) - 1 for term in terms)
        yield Case(
            np.array_equal(total, whole)
            and max(counted) == (3**depth - 1) // 2
            and all(count == alone[j] * heads**j for j, count in counted.items())
            and all(rank(factor, PRIME) <= inner for term in terms[1:] for factor in term)
        )


def on_the_sphere(rng: np.random.Generator, points: int, width: int) -> Residues:
    """Random points over GF(p) whose squares add up to 1, by stereographic projection: (points, width)."""
    t = random_residues(rng, (points, width - 1), PRIME)
    square = (t * t % np.uint64(PRIME)).sum(1) % np.uint64(PRIME)
    inverse = np.array([pow(int(one) + 1, -1, PRIME) for one in square], dtype=np.uint64)[:, None]
    ends = (square[:, None] + np.uint64(PRIME - 1)) % np.uint64(PRIME)
    return np.concatenate([2 * t % np.uint64(PRIME), ends], axis=1) * inverse % np.uint64(PRIME)


def hadamard(V: Residues, power: int) -> Residues:
    """The Hadamard power of V V^T over GF(p)."""
    product = matmul(V, V.T, PRIME)
    return np.vectorize(lambda one: pow(int(one), power, PRIME), otypes=[np.uint64])(product)


def built_grid(depth: int, width: int, heads: int, tokens: int, V: Residues) -> Residues:
    """Lemma 6's part of the grid tensor: its weights and templates, for V of (width - heads) / 2 columns."""
    a, half = width // heads, (width // heads - 1) // 2
    inverse = pow(tokens, -1, PRIME)
    project, total, sums, halves, one = np.zeros((5, heads, width, width), dtype=np.uint64)
    mask = (np.arange(1, width + 1) % a != 0).astype(np.uint64)
    for head in range(heads):
        base, last = head * a, (head + 1) * a - 1
        project[head, base : last + 1, base : last + 1] = np.eye(a)
        halves[head, base : base + half, base : base + half] = np.eye(half)
        total[head, :, last] = 1
        for row in range(half):
            for place, factor in ((base + row, 1), (base + half + row, ROOT)):
                sums[head, base + row, place] = factor * inverse % PRIME
                sums[head, base + half + row, place] = -factor * inverse % PRIME
        sums[head, base + half : last + 1, last] = inverse
    one[:, a - 1, a - 1] = 1
    every = np.broadcast_to(np.outer(mask, mask), one.shape)
    scores = [one, halves, *[every] * (depth - 2)]
    layers = [
        Layer(values, score)
        for values, score in zip([sums, *[project] * (depth - 2), total], scores, strict=True)
    ]
    sides = np.zeros((2, tokens, width, len(V)), dtype=np.uint64)
    columns = V.reshape(len(V), heads, half)
    for side in range(2):
        for head in range(heads):
            sides[side, side * tokens // 2, head * a + side * half :][:half] = columns[:, head].T
        sides[side, side * tokens // 2 : (side + 1) * tokens // 2, a - 1 :: a] = 1
    return outputs(LinearAttention(depth, width, tokens), sides[0], sides[1], layers, PRIME)


def power_of_a_network(sizes: list[tuple[int, int, int, int]]) -> Iterator[Case]:
    """Lemma 6, eqs. 24 and 28: that part is a constant times (V V^T) to the Hadamard power of 3^(L-2), whose rank is
    ((m, 3^(L-2))) with m = (d - H) / 2. The slack is that of this rank below the network's, where that can be measured.
    """
    rng = np.random.default_rng(RANDOM)
    for depth, width, heads, tokens in sizes:
        m, power = (width - heads) // 2, 3 ** (depth - 2)
        V = on_the_sphere(rng, multiset(m, power), m)
        grid, expected = built_grid(depth, width, heads, tokens, V), hadamard(V, power)
        constant = int(grid[0, 0]) * pow(int(expected[0, 0]), -1, PRIME) % PRIME
        scaled = expected * np.uint64(constant) % np.uint64(PRIME)
        network = LinearAttention(depth, width, tokens, heads)
        measured = network.rank_bound() <= MOST
        yield Case(
            constant > 0 and np.array_equal(grid, scaled) and rank(grid, PRIME) == len(V),
            log3(separation_rank(network).rank) - log3(len(V)) if measured else None,
        )


def compositions(parts: int, total: int) -> list[tuple[int, ...]]:
    """All ways to write a number as a sum of so many numbers of 0 and more, in their order."""
    ends = total + parts - 1
    return [
        tuple(after - before - 1 for before, after in itertools.pairwise((-1, *cut, ends)))
        for cut in itertools.combinations(range(ends), parts - 1)
    ]


def leading_product(sizes: list[tuple[int, int]]) -> Iterator[Case]:
    """Lemma 7 where the paper needs it: the matrix of x^<q, k>, with q and k all compositions of a power into m parts,
    has full rank, here at a random x of GF(p)."""
    x = int(random_residues(np.random.default_rng(RANDOM), (1,), PRIME)[0])
    for m, power in sizes:
        rows = np.array(compositions(m, power))
        exponents = rows @ rows.T
        found = np.vectorize(lambda one: pow(x, int(one), PRIME), otypes=[np.uint64])(exponents)
        yield Case(rank(found, PRIME) == len(rows))


def rearranged(sizes: list[tuple[int, int]], random: int) -> Iterator[Case]:
    """Lemma 8: no permutation but the identity brings the sum of <v_i, v_s(i)> to that of |v_i|^2.

    Args:
        sizes: m and total of sets of compositions, of which all permutations are tried.
        random: number of sets of five random vectors.
    """
    rng = np.random.default_rng(RANDOM)
    sets = [np.array(compositions(m, total)) for m, total in sizes]
    sets += [np.unique(rng.integers(0, 4, (5, 3)), axis=0) for _ in range(random)]
    for vectors in sets:
        products = vectors @ vectors.T
        own, places = int(np.trace(products)), range(len(vectors))
        others = [
            int(products[places, order].sum())
            for order in itertools.permutations(places)
            if order != (*places,)
        ]
        yield Case(max(others) < own, log3(own) - log3(max(others)))


def whole_rows(sizes: list[tuple[int, int]]) -> Iterator[Case]:
    """Lemma 8 of Wies et al. 2021: natural numbers with rows of one norm whose Hadamard power has full rank."""
    rng = np.random.default_rng(RANDOM)
    for m, power in sizes:
        points = rng.integers(2, 10_000, (multiset(m, power), m - 1)).tolist()
        norms = [sum(t * t for t in point) + 1 for point in points]
        norm = math.lcm(*norms)
        rows = [
            [one * norm // own for one in (*(2 * t for t in point), own - 2)]
            for point, own in zip(points, norms, strict=True)
        ]
        A = np.array([[one % PRIME for one in row] for row in rows], dtype=np.uint64)
        equal = all(sum(one * one for one in row) == norm**2 and min(row) >= 0 for row in rows)
        yield Case(equal and rank(hadamard(A, power), PRIME) == len(rows))


POWERS = [(1, 3), (2, 1), (2, 3), (2, 9), (3, 1), (3, 3), (3, 9), (4, 3), (4, 9), (6, 3)]  # m, 3^(L-2)
LEMMAS = (  # its name, what it says, the sizes checked, the cases
    ("2", "one more layer: rank at most N d^4 K^3 / H", "L <= 3, d <= 4, N <= 6", lambda: layer_bound(3, 4)),
    (
        "3",
        "a product of multiset coefficients is largest at equal r_j",
        "n <= 8, k <= 3, r_j <= 13",
        lambda: multiset_means(8, 3, 13),
    ),
    ("4", "((n, k)) <= (2e (n + k) / n)^n", "n <= 60, k <= 100", lambda: multiset_upper(60, 100)),
    (
        "5",
        "a residual network is a sum of terms with at most C mixings",
        "L <= 3, d <= 4, H <= 3",
        lambda: residual_form([(1, 2, 2), (2, 2, 1), (2, 4, 2), (2, 3, 3), (3, 2, 1)]),
    ),
    (
        "6",
        "weights that give (V V^T) to a Hadamard power",
        "L of 2 and 3, d <= 10, H <= 2",
        lambda: power_of_a_network(
            [(2, 5, 1, 4), (2, 6, 2, 4), (2, 7, 1, 2), (2, 10, 2, 4), (3, 5, 1, 2), (3, 6, 2, 2)]
        ),
    ),
    ("7", "one leading product gives full rank", "matrices up to 220 x 220", lambda: leading_product(POWERS)),
    (
        "8",
        "no other order reaches the sum of squares",
        "up to 7 vectors",
        lambda: rearranged([(2, 3), (3, 2), (2, 5), (6, 1)], 50),
    ),
    (
        "vocabulary 8",
        "natural rows of one norm of full rank",
        "matrices up to 220 x 220",
        lambda: whole_rows([one for one in POWERS if one[0] > 1]),
    ),
)


def main() -> None:
    """Check the lemmas and write the table."""
    parser = command_line(__doc__)
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.csv")
    out = parser.parse_args().out
    rows = []
    for name, says, sizes, cases in LEMMAS:
        found = list(cases())
        slacks = [one.slack for one in found if one.slack is not None]
        ends = [f"{end(slacks):.3g}" for end in (min, max)] if slacks else ["", ""]
        rows.append((name, says, sizes, len(found), sum(not one.holds for one in found), *ends))
    columns = ["lemma", "says", "sizes", "cases", "failed", "least_slack", "largest_slack"]
    pd.DataFrame(rows, columns=columns).to_csv(out, index=False)


if __name__ == "__main__":
    main()
