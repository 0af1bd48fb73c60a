"""The closed forms of separation ranks, against ranks that are measured, and where none is known."""

import math

import pytest
from measured_ranks import measured

from shapelaw.theory.graded_dimensions import multiset
from shapelaw.theory.linear_attention import LinearAttention
from shapelaw.theory.rank_bounds import log3
from shapelaw.theory.rank_formulas import closed_form, heads_of_one, one_head


@pytest.mark.parametrize("width", [2, 3, 4])
def test_late_layers_add_d_times_d_plus_1_over_2_by_the_closed_form(width):
    """In proportion to the parameters of a layer, where theorem 2 has d: to within a thousandth after 12 layers."""
    added = log3(one_head(11, width)) - log3(one_head(10, width))
    assert added == pytest.approx(width * (width + 1) / 2, rel=1e-3)


@pytest.mark.parametrize("width", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("residual", [False, True])
def test_one_layer_has_rank_d_plus_1(width, residual):
    for heads in {1, width}:
        for tokens in (2, 6):
            assert measured(LinearAttention(1, width, tokens, heads, residual=residual)) == width + 1


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5])
def test_two_layers_have_a_closed_form(width):
    """Of degree 0 to 4 in B: with one head all functions there are, with d heads of dimension 1 fewer."""
    d, n = width, width * (width + 1) // 2
    assert measured(LinearAttention(2, d, 2 * d)) == 1 + n + n * (n + 1) // 2 + d * n + d if d > 1 else 5
    narrow = 1 + n + min(multiset(n, 2), d * n - math.comb(d, 2)) + min(d * n, multiset(d, 3) + d**2) + d
    assert measured(LinearAttention(2, d, 2 * d, heads=d)) == narrow


@pytest.mark.parametrize(("depth", "width"), [(1, 6), (2, 2), (2, 3), (2, 4), (2, 6), (3, 1), (3, 2), (3, 3)])
@pytest.mark.parametrize("residual", [False, True])
def test_two_tokens_have_a_closed_form(depth, width, residual):
    mixings = (3**depth - 1) // 2
    found = measured(LinearAttention(depth, width, 2, residual=residual))
    assert found == math.comb(width + mixings, width)


@pytest.mark.parametrize("half", [1, 2, 3])
def test_two_heads_cost_a_triangular_number(half):
    one = measured(LinearAttention(2, 2 * half, 4 * half))
    assert measured(LinearAttention(2, 2 * half, 4 * half, heads=2)) == one - half * (half + 1) // 2


@pytest.mark.parametrize(
    ("options", "formula"),
    [
        ({"depth": 1, "width": 6, "tokens": 4, "heads": 3}, "d + 1"),
        ({"depth": 2, "width": 4, "tokens": 2}, "binomial(d + C, d)"),
        ({"depth": 2, "width": 4, "tokens": 8, "residual": True}, "1 + n + n (n + 1) / 2 + d n + d"),
        ({"depth": 2, "width": 5, "tokens": 8, "embedding_rank": 3}, "1 + n + n (n + 1) / 2 + d n + d"),
        ({"depth": 2, "width": 3, "tokens": 6, "positional_rank": 2}, "1 + n + n (n + 1) / 2 + d n + d"),
        ({"depth": 3, "width": 2, "tokens": 4}, "sum of min(((n, k)), d ((n, C - k)))"),
        ({"depth": 2, "width": 4, "tokens": 8, "heads": 2}, "one head less d (d + 2) / 8"),
        (
            {"depth": 2, "width": 3, "tokens": 6, "heads": 3},
            "1 + n + min(((n, 2)), d n - (d, 2)) + min(d n, ((d, 3)) + d^2) + d",
        ),
    ],
)
def test_the_closed_form_is_the_measured_rank_and_names_its_formula(options, formula):
    network = LinearAttention(**options)
    found = closed_form(network)
    assert (found.rank, found.formula) == (measured(network), formula)


def test_formulas_by_hand():
    assert one_head(2, 2) == 1 + 3 + 6 + 6 + 2
    assert heads_of_one(2) == 1 + 3 + min(6, 6 - 1) + min(6, 4 + 4) + 2


def test_closed_forms_are_silent_where_none_is_known():
    assert closed_form(LinearAttention(2, 6, 12, heads=3)) is None
    assert closed_form(LinearAttention(2, 4, 4)) is None
    assert closed_form(LinearAttention(2, 4, 8, embedding_rank=2, positional_rank=1)) is None
