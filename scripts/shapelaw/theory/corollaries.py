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

from shapelaw.theory.linear_attention import LinearAttention
from shapelaw.theory.rank_bounds import early_lower, mixings


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
