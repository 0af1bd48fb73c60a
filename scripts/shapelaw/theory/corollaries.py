"""Corollaries 1 and 2 of Levine et al. 2020 as numbers: the width, or the depth, that a shallower network needs.

Both compare networks by their separation ranks, since equal functions have equal ranks.

Corollary 1: a network of depth L and width d > 3^L is realized by one of depth L' < L and width d' = w d only where
w is "proportional to exp(exp(L / L'))". (The paper prints `d' = w d'`.) With all constants, theorem 1 says that the
least rank of the deep one is at most the greatest of the shallow one: `3^(L-2) (log3(d - H) + 2 - L - log3 2) <= C(L')
log3(d' + H)`.

Corollary 2: past the threshold, L > log3 d, some b = O(log H log d log L) lets a network of depth L' = log3 d + b and
width d' = 3^b d have the higher rank. That network is on its own threshold, d' = 3^L'.
"""

from __future__ import annotations

import math

from shapelaw.theory.linear_attention import LinearAttention
from shapelaw.theory.rank_bounds import early_lower, mixings

_STEPS = 60  # steps of a bisection


def realizing_width(log3_rank: float, depth: int) -> float:
    """The least log3 of `d' + H` for a network of a depth and a rank: theorem 1's `(d' + H)^C`, inverted."""
    return log3_rank / mixings(depth)


def published_realizing_width(deep_depth: int, deep_width: int, depth: int, heads: int = 1) -> float:
    """Corollary 1 in numbers: the least log3 of `d' + H` for a shallower network that realizes a deep one.

    Raises:
        ValueError: the deep network is past its threshold (not d > 3^L), or no wider than its number of heads.
    """
    if 3**deep_depth >= deep_width or deep_width <= heads:
        raise ValueError(
            f"Corollary 1 holds for d > 3^L and d > H, not for d = {deep_width}, L = {deep_depth}."
        )
    return realizing_width(early_lower(deep_depth, deep_width, heads), depth)


def least_width(rank: int, depth: int, tokens: int) -> int:
    """The width of the narrowest one-head network that can have a rank, by the dimensions of the function spaces.

    The bound is proved for all weights (`graded_dimensions`), and every measured rank reaches it.
    """
    low, high = 0, 1
    while LinearAttention(depth, high, tokens).rank_bound() < rank:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if LinearAttention(depth, middle, tokens).rank_bound() < rank:
            low = middle
        else:
            high = middle
    return high


def surpassing_depth(log3_rank: float, heads: int = 1) -> float:
    """L' of corollary 2, as a real number: the least at which theorem 1 guarantees width 3^L' a rank.

    `b` is this minus log3 d. Theorem 1's lower bound grows with L' on the line d' = 3^L' from L' = 1 on.
    """
    low = max(1.0, math.log(heads + 1, 3))
    high = low + 1.0
    while _on_threshold(high, heads) < log3_rank:
        high *= 2
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if _on_threshold(middle, heads) < log3_rank else (low, middle)
    return high


def _on_threshold(depth: float, heads: int) -> float:
    """Theorem 1's lower bound at width 3^L: eq. 7, with `log3(d - H) - L` in a form without cancellation."""
    inside = math.log1p(-heads / 3.0**depth) / math.log(3) + 2 - math.log(2, 3)
    return float(3.0 ** (depth - 2) * inside)
