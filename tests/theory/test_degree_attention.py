"""Blocks of any degree: the arithmetic against plain integers, known ranks, degree 3 against linearized attention."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from measured_ranks import measured
from plain_networks import plain_degree_attention

from shapelaw.errors import UserError
from shapelaw.theory.linear_attention import LinearAttention
from shapelaw.theory.networks import Block, DegreeAttention, ProductNetwork
from shapelaw.theory.polynomials import PRIMES, random_residues
from shapelaw.theory.separation_rank import separation_rank

PRIME = PRIMES[0]


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("degrees", [(1,), (2,), (3,), (5,), (2, 3), (4, 2), (3, 1, 3), (3, 3)])
def test_grids_are_the_definition(degrees, heads):
    d, N = 4, 4
    rng = np.random.default_rng(list(degrees))
    network = DegreeAttention(degrees, d, N, heads)
    blocks = [
        Block(random_residues(rng, (k, d, d), PRIME), random_residues(rng, (d, d), PRIME)) for k in degrees
    ]
    first, second = (random_residues(rng, (d, N // 2, count), PRIME) for count in (2, 3))
    found = network.outputs(first, second, blocks, PRIME)
    for row, column in np.ndindex(2, 3):
        tokens = np.concatenate([first[..., row], second[..., column]], axis=1).T.tolist()
        plain = plain_degree_attention(tokens, blocks, heads, PRIME)
        assert int(found[row, column]) == plain[0][0]


@pytest.mark.parametrize(("depth", "width", "tokens", "heads"), [(1, 3, 4, 1), (2, 2, 2, 1), (2, 2, 4, 2)])
def test_degree_3_is_linearized_attention(depth, width, tokens, heads):
    block = DegreeAttention((3,) * depth, width, tokens, heads)
    assert measured(block) == measured(LinearAttention(depth, width, tokens, heads))
    assert block.total_degree == 3**depth


@pytest.mark.parametrize(
    ("degrees", "width", "tokens", "expected"),
    [
        ((1, 1), 3, 4, 2),
        ((2, 2, 2), 2, 4, 27),
        ((4, 4), 2, 4, 45),
        ((5, 5), 1, 4, 7),
        ((2, 3), 2, 4, 25),
        ((3, 2), 2, 4, 18),
        ((2, 3), 2, 2, 15),
        ((6,), 3, 4, 4),
    ],
)
def test_known_ranks(degrees, width, tokens, expected):
    assert measured(DegreeAttention(degrees, width, tokens)) == expected


@given(st.integers(2, 6), st.integers(1, 3))
@settings(max_examples=12, deadline=None, derandomize=True)
def test_width_1_has_a_closed_form(degree, depth):
    """A polynomial of degree (k^L - 1) / (k - 1) in one number that is a sum over both halves."""
    mixings = (degree**depth - 1) // (degree - 1)
    if mixings < 200:
        assert measured(DegreeAttention((degree,) * depth, 1, 4)) == mixings + 1


def test_the_order_of_product_layers_does_not_matter_at_small_width():
    ranks = {
        measured(ProductNetwork(degrees, 3, 4, 2, token_dim=2))
        for degrees in itertools.permutations((2, 3, 3))
    }
    assert ranks == {100}


def test_product_layers_of_equal_degree_are_the_same_either_way():
    one, each = ProductNetwork(3, 2, 4), ProductNetwork((3, 3), 2, 4)
    assert (
        (one.degrees, one.params, one.degree) == (each.degrees, each.params, each.degree) == ((3, 3), 96, 21)
    )
    assert measured(one) == measured(each) == 140
    mixed = ProductNetwork((2, 3), 2, 2, 4, mixing=True)
    assert mixed.total_degree == math.prod(mixed.degrees) == 6
    assert mixed.degree == 6 + 6 + 3
    assert measured(mixed) <= mixed.rank_bound()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"degrees": (2, 0)}, "degree k = 0"),
        ({"degrees": ()}, "depth = 0"),
        ({"tokens": 3}, "N = 3 tokens is odd"),
        ({"heads": 3}, "width 4 is not divisible by 3 heads"),
    ],
)
def test_sizes_that_cannot_be(options, words):
    with pytest.raises(UserError, match=words):
        DegreeAttention(**{"degrees": (2, 3), "width": 4, "tokens": 4, **options})


def test_a_degree_for_each_product_layer():
    with pytest.raises(UserError, match="3 degrees for 2 layers"):
        ProductNetwork((2, 3, 2), 2, 4)


@pytest.mark.parametrize(
    ("width", "tokens", "mixed", "other_order", "of_degree_3"),
    [(1, 4, 8, 6, 5), (2, 2, 15, 15, 15), (2, 8, 25, 18, 18), (3, 2, 29, 29, 35), (3, 4, 56, 40, 49),
     (4, 4, 105, 75, 110), (5, 4, 176, 126, 216)],
)  # fmt: skip
def test_a_mixture_is_ahead_of_degree_3_in_narrow_networks_only(
    width, tokens, mixed, other_order, of_degree_3
):
    """(2, 3), (3, 2), (3, 3): with four tokens and more the first has the largest rank up to d = 3, not from 4 on."""
    found = [separation_rank(DegreeAttention(degrees, width, tokens)) for degrees in ((2, 3), (3, 2), (3, 3))]
    assert all(one.exact for one in found)
    assert [one.rank for one in found] == [mixed, other_order, of_degree_3]
