"""Corollaries 1 and 2 of depth-width: their numbers turned back, exact ranks beside them, and how b grows."""

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shapelaw.theory.corollaries import (
    least_width,
    published_realizing_width,
    realizing_width,
)
from shapelaw.theory.linear_attention import LinearAttention
from shapelaw.theory.rank_bounds import early_lower, early_upper, late_upper, log3
from shapelaw.theory.rank_formulas import one_head
from shapelaw.theory.separation_rank import separation_rank


@given(st.integers(2, 6), st.integers(1, 5), st.integers(1, 4), st.integers(1, 50))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_corollary_1_is_where_the_bounds_of_theorem_1_meet(deep, shallow, heads, more):
    width = 3**deep + more + heads
    found = 3 ** published_realizing_width(deep, width, shallow, heads) - heads
    lower = early_lower(deep, width, heads)
    if 1 <= found < 1e9:
        assert early_upper(shallow, math.floor(found), heads) <= lower + 1e-6
        assert early_upper(shallow, math.ceil(found), heads) >= lower - 1e-6


def test_corollary_1_speaks_of_networks_before_their_threshold():
    with pytest.raises(ValueError, match=r"d > 3\^L"):
        published_realizing_width(2, 9, 1)


def test_corollary_1_is_double_exponential_in_depth_and_exact_ranks_ask_for_more():
    """Against one layer, at d = 3^(L + 1): its log width grows threefold a layer, as published and by exact ranks.

    The exact width is the rank less 1; by the closed form, measured at L = 2, d = 10 (2,156).
    """
    depths = range(3, 7)
    published = [published_realizing_width(L, 3 ** (L + 1), 1) for L in depths]
    exact = [log3(one_head(L, 3 ** (L + 1)) - 1) for L in depths]
    for widths in (published, exact):
        steps = [after / before for before, after in itertools.pairwise(widths)]
        assert all(2.4 < step < 4.2 for step in steps)
    assert all(asked < needed for asked, needed in zip(published, exact, strict=True))
    assert least_width(one_head(2, 10), 1, 20) == 2155
    assert 3 ** published_realizing_width(2, 10, 1) - 1 == pytest.approx(3.5)


@pytest.mark.parametrize(
    ("rank", "depth", "tokens"), [(18, 2, 4), (19, 2, 6), (110, 2, 8), (15, 2, 2), (40, 3, 2)]
)
def test_the_least_width_has_the_rank_and_one_less_has_not(rank, depth, tokens):
    width = least_width(rank, depth, tokens)
    assert separation_rank(LinearAttention(depth, width, tokens)).rank >= rank
    assert width == 1 or separation_rank(LinearAttention(depth, width - 1, tokens)).rank < rank


def surpassing_depth(log3_rank: float, heads: int = 1) -> float:
    """L' of corollary 2, as a real number: the least at which theorem 1 guarantees width 3^L' a rank.

    `b` is this minus log3 d. Theorem 1's lower bound grows with L' on the line d' = 3^L' from L' = 1 on.
    """
    low = max(1.0, math.log(heads + 1, 3))
    high = low + 1.0
    while on_threshold(high, heads) < log3_rank:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if on_threshold(middle, heads) < log3_rank else (low, middle)
    return high


def on_threshold(depth: float, heads: int) -> float:
    """Theorem 1's lower bound at width 3^L: eq. 7, with `log3(d - H) - L` in a form without cancellation."""
    inside = math.log1p(-heads / 3.0**depth) / math.log(3) + 2 - math.log(2, 3)
    return float(3.0 ** (depth - 2) * inside)


@given(st.floats(2, 1e6), st.integers(1, 64))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_corollary_2_is_where_theorem_1_reaches_the_rank_on_the_threshold(log3_rank, heads):
    depth = surpassing_depth(log3_rank, heads)
    if depth < 20:
        width = 3**depth
        reached = 3 ** (depth - 2) * (math.log(width - heads, 3) + 2 - depth - math.log(2, 3))
        assert reached == pytest.approx(log3_rank, rel=1e-6)
    assert surpassing_depth(2 * log3_rank, heads) > depth


@given(st.integers(2, 400), st.integers(0, 100), st.integers(1, 64))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_b_of_corollary_2_grows_as_it_says_by_theorem_2_and_by_the_closed_form(width, more, heads):
    """At most 4 (1 + log3 H) log3(d + 1) (1 + log3 L), by theorem 2's upper bound and by L d (d + 1) / 2 as well."""
    depth = math.ceil(math.log(width, 3)) + 1 + more
    allowed = 4 * (1 + math.log(heads, 3)) * math.log(width + 1, 3) * (1 + math.log(depth, 3))
    for log3_rank in (late_upper(depth, width), depth * width * (width + 1) / 2):
        assert surpassing_depth(log3_rank, heads) - math.log(width, 3) <= allowed


def test_corollary_2_at_sizes_that_were_measured():
    """Four layers of width 2 have rank 4,538; three of width 4, far below 3^3, have 31,460 by the closed form."""
    assert one_head(4, 2) == 4538 < one_head(3, 4) == 31460
    assert realizing_width(log3(4538), 3) < log3(5)
    found = separation_rank(LinearAttention(3, 2, 4)).rank, separation_rank(LinearAttention(2, 5, 10)).rank
    assert found == (232, 216)
    assert separation_rank(LinearAttention(2, 6, 12)).rank == 385 > 232  # two layers, 6 <= 3^2 wide
