"""The dimensions, degree by degree, of the functions of one half of the tokens that a polynomial network can form.

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

import math
from collections.abc import Iterator, Sequence
from functools import cache

MOST_FACTORS = 10_000  # most dimensions that are summed
MOST_BITS = 2**16  # most digits of a number that is computed exactly


def multiset(kinds: int, picks: int) -> int:
    """`((n, k))`: monomials of degree k in n variables, `binomial(n + k - 1, k)`."""
    if picks < 0:
        return 0
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
    """The dimension of the representation S_λ of GL(d), by Weyl's formula; 0 if λ has more than d parts."""
    if len(shape) > width:
        return 0
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
        if dimension == 0:
            continue
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
