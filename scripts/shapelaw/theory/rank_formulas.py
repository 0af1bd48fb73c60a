"""Closed forms that the measured separation ranks of linearized attention follow.

None is proved as an equality; each holds at every measured size (tests/theory, docs/results/theory.md), and the first
three equal a proved upper bound (graded_dimensions.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from shapelaw.theory.graded_dimensions import matched, multiset
from shapelaw.theory.linear_attention import LinearAttention


@dataclass(frozen=True)
class ClosedForm:
    """A rank and its formula; n = d (d + 1) / 2."""

    rank: int
    formula: str


def closed_form(network: LinearAttention) -> ClosedForm | None:
    """The rank by a closed form; None if no form is known.

    With one head an embedding of rank r counts as width r. Residual connections and, at full embedding rank, positions
    change nothing.
    """
    L, d, H, N, r = network.depth, network.width, network.heads, network.tokens, network.rank
    if network.embedding != "vectors" or network.head_dim * H != d:
        return None
    if r < d and (H > 1 or network.positional_rank):
        return None
    if L == 1:
        return ClosedForm(r + 1, "d + 1")
    if H == 1 and N == 2:
        return ClosedForm(math.comb(r + network.mixings, r), "binomial(d + C, d)")
    if 2 * r > N:
        return None
    if H == 1:
        name = "1 + n + n (n + 1) / 2 + d n + d" if L == 2 else "sum of min(((n, k)), d ((n, C - k)))"
        return ClosedForm(one_head(L, r), name)
    if L == 2 and H == 2:
        half = d // 2
        return ClosedForm(one_head(L, d) - half * (half + 1) // 2, "one head less d (d + 2) / 8")
    if L == 2 and d == H:
        return ClosedForm(
            heads_of_one(d), "1 + n + min(((n, 2)), d n - (d, 2)) + min(d n, ((d, 3)) + d^2) + d"
        )
    return None


def one_head(depth: int, width: int) -> int:
    """One head of dimension d and 2 d tokens or more: the sum over k of `min(((n, k)), d ((n, C - k)))`."""
    mixings, n = int((3**depth - 1) // 2), width * (width + 1) // 2
    grams = [multiset(n, degree) for degree in range(mixings + 1)]
    return matched([width * count for count in grams], grams, mixings)


def heads_of_one(width: int) -> int:
    """d heads of dimension 1, two layers, 2 d tokens or more."""
    d, n = width, width * (width + 1) // 2
    middle = min(multiset(n, 2), d * n - math.comb(d, 2)) + min(d * n, multiset(d, 3) + d**2)
    return 1 + n + middle + d
