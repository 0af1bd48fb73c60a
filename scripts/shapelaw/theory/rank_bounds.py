"""The papers' bounds on the separation rank, as numbers: its logarithm to base 3.

Levine et al. 2020 (`Limits to Depth Efficiencies of Self-Attention`, "depth-width" here) and Wies et al. 2021 (`Which
Transformer Architecture Fits My Data? A Vocabulary Bottleneck in Self-Attention`, "vocabulary" here). Lower bounds hold
for almost all weights, upper bounds for all. Every function returns a logarithm, because the ranks themselves are
double exponential in the depth. A bound is listed only if its theorem covers the network.

Beside them stand the closed forms that measured ranks follow. None is proved as an equality; each holds at every
measured size (tests/theory, docs/results/theory.md), and the first three equal a proved upper bound
(polynomials.py).

Corollaries 1 and 2 of Levine et al. say which width, or depth, a shallower network needs. Both compare networks by
their separation ranks, since equal functions have equal ranks.

Corollary 1: a network of depth L and width d > 3^L is realized by one of depth L' < L and width d' = w d only where
w is "proportional to exp(exp(L / L'))". (The paper prints `d' = w d'`.) With all constants, theorem 1 says that the
least rank of the deep one is at most the greatest of the shallow one: `3^(L-2) (log3(d - H) + 2 - L - log3 2) <= C(L')
log3(d' + H)`.

Corollary 2: past the threshold, L > log3 d, some b = O(log H log d log L) lets a network of depth L' = log3 d + b and
width d' = 3^b d have the higher rank. That network is on its own threshold, d' = 3^L'.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass

from shapelaw.theory.linear_attention import LinearAttention, mixings
from shapelaw.theory.polynomials import matched, multiset

# Upper bounds whose proof takes a group of monomials for one function; see `monomials_upper`.
PROOFS_WITH_A_GAP = frozenset(
    {"depth-width, theorem 2", "depth-width, theorem 4", "depth-width, theorem 6"}
    | {f"vocabulary, theorem {number}" for number in (1, 3, 4)}
)


@dataclass(frozen=True)
class RankBound:
    """A lower (`lower`) or upper bound on log3 of the separation rank."""

    log3: float
    lower: bool
    formula: str
    source: str

    @property
    def is_proved(self) -> bool:
        """True if the published proof has no known gap."""
        return self.lower or self.source not in PROOFS_WITH_A_GAP


def log3(number: float) -> float:
    """The logarithm to base 3 of a whole number of any size."""
    return math.log(number) / math.log(3)


def early_lower(depth: int, width: int, heads: int) -> float:
    """Theorem 1 of depth-width, eq. 7: `3^(L-2) (log3(d - H) + 2 - L - log3 2)`, for `L < log3 d` and `H < d`."""
    return 3.0 ** (depth - 2) * (log3(width - heads) + 2 - depth - log3(2))


def early_upper(depth: int, width: int, heads: int) -> float:
    """Theorem 1 of depth-width, eq. 7: `(3^L - 1) / 2 log3(d + H)`, for `H d_a = d`."""
    return mixings(depth) * log3(width + heads)


def swaps_upper(depth: int, heads: int, attention_dim: int) -> float:
    """Theorem 3 of depth-width (appendix A.2): `(H (d_a + 1))^C`, any depth, any partition of the tokens."""
    return mixings(depth) * log3(heads * (attention_dim + 1))


def late_lower(depth: int, width: int, heads: int) -> float:
    """Theorem 2 of depth-width, eq. 8: `d L / 2 + b1 + b2`, for `L > log3 d` and `H < d`."""
    b1 = -depth * (heads / 2 + 1)
    b2 = -width * (1 + log3((width - heads) / 2) / 2)
    return width * depth / 2 + b1 + b2


def late_upper(depth: int, width: int) -> float:
    """Theorem 2 of depth-width, eq. 8: `2 d L + c1 + c2`, for `L > log3 d`."""
    c2 = -2 * width * log3(width / (2 * math.sqrt(2 * math.e))) + log3(width)
    return 2 * width * depth + depth + c2


def monomials_upper(depth: int, width: int, residual: bool = False) -> float:
    """Theorem 4 of depth-width, eq. 19: `d (C + 1) ((d, 2C)) (2C / d + 1)^d`; theorem 6 has one more factor C + 1.

    The proof groups the products of C entries of G by the powers of the coordinates and says that each group is one
    function; but G_11 G_22 and G_12^2 are in one group and differ. The proofs of theorem 6 and of `bottleneck_upper` do
    the same (`PROOFS_WITH_A_GAP`). See `tests/theory/test_rank_bounds.py`.
    """
    C = mixings(depth)
    found = log3(width) + log3(C + 1) + log3(multiset(width, 2 * C)) + width * log3(2 * C / width + 1)
    return found + (log3(C + 1) if residual else 0.0)


def unraveled_upper(depth: int, width: int, heads: int, tokens: int) -> float:
    """Theorem 5 of depth-width, residual: `L log3 L + (4 log3 d + log3 N - log3 H) (3^L - 1) / 2`."""
    return depth * log3(depth) + (4 * log3(width) + log3(tokens) - log3(heads)) * mixings(depth)


def bottleneck_upper(depth: int, rank: int, positional_rank: int) -> float:
    """Theorems 3 and 4 of vocabulary, eqs. 9 and 11: `((r + r_e, 3^L)) ((4, 3^L)) (3^L + 1)^(r + r_e)`."""
    top, both = 3**depth, rank + positional_rank
    return log3(multiset(both, top)) + log3(multiset(4, top)) + both * log3(top + 1)


def bottleneck_scale(depth: int, rank: int) -> float:
    """Theorem 1 of vocabulary, eq. 6, with the constants of its proof: theorem 3 at r_e = 1 and lemma 3.

    `log sep = O~(L min(r, d))`: `(r + 1) log3(2e (r + 1 + 3^L) (3^L + 1) / (r + 1)) + 4 log3(2e (4 + 3^L) / 4)`.
    """
    top, both = 3**depth, rank + 1
    folded = both * log3(2 * math.e * (both + top) * (top + 1) / both)
    return folded + 4 * log3(2 * math.e * (4 + top) / 4)


def bottleneck_lower(depth: int, rank: int, heads: int, *, finite: bool = False) -> float | None:
    """Theorem 2 of vocabulary, eq. 14: `((floor((r - H) / 2), 3^(L-2)))`, for `L > log3 d`, `L >= 2`, `H < r`.

    `log sep = Omega~(L (min(r, d) - H))` is its asymptotic form. It follows although lemma 4, from which the paper
    takes it, is false for all n and k: its proof gives `((n, k)) >= ((n + k - 1) / (n - 1))^(n - 1)` for `n >= 2`.

    Args:
        finite: tokens are of V >= r words, and N is large: corollary 2, eq. 16, `((floor((r - 1 - H) / 2), 3^(L-2)))`.

    Returns:
        None where the formula gives no number.
    """
    half = (rank - heads - finite) // 2
    return log3(multiset(half, 3 ** (depth - 2))) if depth >= 2 and half >= 1 else None


def published_bounds(network: LinearAttention) -> tuple[RankBound, ...]:
    """The bounds whose theorems hold for a network.

    Upper bounds of depth-width hold for any embedding that makes each token from inputs of one half. Lower bounds hold
    where tokens can be any vectors of r numbers, and for heads of d / H or more. Of a finite vocabulary V >= r there is
    one, corollary 2's, for long texts: N >= r L / log3 r by the paper's conjecture.
    """
    L, d, H, a = network.depth, network.width, network.heads, network.head_dim
    found: list[tuple[float | None, bool, str, str]] = []
    whole = not network.halves.split
    power = 3**L
    early, late = power < d, power > d
    if whole and not network.residual:
        found.append((swaps_upper(L, H, a), False, "(H (d_a + 1))^C", "depth-width, theorem 3"))
        if H * a == d and early:
            found.append((early_upper(L, d, H), False, "C log3(d + H)", "depth-width, theorem 1"))
        found.append(
            (monomials_upper(L, d), False, "d (C+1) ((d, 2C)) (2C/d + 1)^d", "depth-width, theorem 4")
        )
        if late:
            found.append((late_upper(L, d), False, "2 d L + c1 + c2", "depth-width, theorem 2"))
    if whole and network.residual:
        if H * a == d:
            formula = "L log3 L + (4 log3 d + log3 N - log3 H) C"
            found.append((unraveled_upper(L, d, H, network.tokens), False, formula, "depth-width, theorem 5"))
        formula = "d (C+1)^2 ((d, 2C)) (2C/d + 1)^d"
        found.append((monomials_upper(L, d, residual=True), False, formula, "depth-width, theorem 6"))
    if not network.residual:
        kind = "theorem 4" if network.embedding == "convolution" else "theorem 3"
        upper = bottleneck_upper(L, network.rank, network.positional_rank)
        formula = "((r+r_e, 3^L)) ((4, 3^L)) (3^L + 1)^(r+r_e)"
        found.append((upper, False, formula, f"vocabulary, {kind}"))
        if network.positional_rank <= 1:
            formula = "O~(L min(r, d)), explicit"
            found.append((bottleneck_scale(L, network.rank), False, formula, "vocabulary, theorem 1"))
    if whole and network.vocabulary is not None and H * a >= d and late and not network.residual:
        r = network.rank
        # the paper's conjecture of how long texts must be
        if network.vocabulary >= r > 1 and network.tokens >= r * L / log3(r):
            lower, formula = bottleneck_lower(L, r, H, finite=True), "(((r - 1 - H) / 2, 3^(L-2)))"
            found.append((lower, True, formula, "vocabulary, corollary 2"))
    if whole and network.vocabulary is None and H * a >= d:
        if d == network.rank and d > H and early:
            formula = "3^(L-2) (log3(d - H) + 2 - L - log3 2)"
            found.append((early_lower(L, d, H), True, formula, "depth-width, theorem 1"))
        if d == network.rank and d > H and late:
            found.append((late_lower(L, d, H), True, "d L / 2 + b1 + b2", "depth-width, theorem 2"))
        if late and not network.residual:
            lower = bottleneck_lower(L, network.rank, H)
            found.append((lower, True, "(((r - H) / 2, 3^(L-2)))", "vocabulary, theorem 2"))
    return tuple(
        RankBound(value, lower, formula, source)
        for value, lower, formula, source in found
        if value is not None
    )


def closed_form(network: LinearAttention) -> tuple[int | None, str]:
    """The rank by a closed form, and its formula, with n = d (d + 1) / 2; None and no formula if no form is known.

    With one head an embedding of rank r counts as width r. Residual connections and, at full embedding rank, positions
    change nothing.
    """
    L, d, H, N, r = network.depth, network.width, network.heads, network.tokens, network.rank
    if network.embedding != "vectors" or network.head_dim * H != d:
        return None, ""
    if r < d and (H > 1 or network.positional_rank):
        return None, ""
    if L == 1:
        return r + 1, "d + 1"
    if H == 1 and N == 2:
        return math.comb(r + mixings(L), r), "binomial(d + C, d)"
    if 2 * r > N:
        return None, ""
    if H == 1:
        name = "1 + n + n (n + 1) / 2 + d n + d" if L == 2 else "sum of min(((n, k)), d ((n, C - k)))"
        return one_head(L, r), name
    if L == 2 and H == 2:
        half = d // 2
        return one_head(L, d) - half * (half + 1) // 2, "one head less d (d + 2) / 8"
    if L == 2 and d == H:
        return heads_of_one(d), "1 + n + min(((n, 2)), d n - (d, 2)) + min(d n, ((d, 3)) + d^2) + d"
    return None, ""


def one_head(depth: int, width: int) -> int:
    """One head of dimension d and 2 d tokens or more: the sum over k of `min(((n, k)), d ((n, C - k)))`."""
    C, n = mixings(depth), width * (width + 1) // 2
    grams = [multiset(n, degree) for degree in range(C + 1)]
    return matched([width * count for count in grams], grams, C)


def heads_of_one(width: int) -> int:
    """d heads of dimension 1, two layers, 2 d tokens or more."""
    d, n = width, width * (width + 1) // 2
    middle = min(multiset(n, 2), d * n - math.comb(d, 2)) + min(d * n, multiset(d, 3) + d**2)
    return 1 + n + middle + d


def published_realizing_width(deep_depth: int, deep_width: int, depth: int, heads: int = 1) -> float:
    """Corollary 1 in numbers: the least log3 of `d' + H` for a shallower network that realizes a deep one.

    It inverts theorem 1's `(d' + H)^C`; the deep network must be before its threshold, d > 3^L, and d > H.
    """
    return early_lower(deep_depth, deep_width, heads) / mixings(depth)


def least_width(rank: int, depth: int, tokens: int) -> int:
    """The width of the narrowest one-head network that can have a rank, by the dimensions of the function spaces.

    The bound is proved for all weights (`polynomials`), and every measured rank reaches it.
    """
    high = 1
    while LinearAttention(depth, high, tokens).rank_bound() < rank:
        high *= 2
    widths = range(1, high + 1)
    return 1 + bisect_left(widths, rank, key=lambda width: LinearAttention(depth, width, tokens).rank_bound())
