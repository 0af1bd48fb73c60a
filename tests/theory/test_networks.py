"""Networks of blocks of any degree: grids against plain integers, known ranks, bounds, and sizes that cannot be."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from measured_ranks import measured
from plain_networks import plain_degree_attention, plain_mixer, plain_product
from small import listed

from shapelaw.errors import UserError
from shapelaw.theory.linear_attention import LinearAttention
from shapelaw.theory.networks import Block, DegreeAttention, MixerBlock, MixerNetwork, ProductNetwork
from shapelaw.theory.polynomials import PRIMES, random_residues

PRIME = PRIMES[1]


@pytest.mark.parametrize(("degree", "depth"), [(1, 2), (2, 1), (3, 2), (2, 3), (5, 1)])
def test_grids_of_product_networks_are_their_definition(degree, depth):
    w, N = 3, 4
    rng = np.random.default_rng([degree, depth])
    network = ProductNetwork(degree, depth, w, N)
    weights = [random_residues(rng, (degree, w, size), PRIME) for size in (w * N, *[w] * (depth - 1))]
    first, second = (random_residues(rng, (N, w, count), PRIME) for count in (2, 3))
    first[2:], second[:2] = 0, 0
    found = network.outputs(first, second, weights, PRIME)
    for row, column in np.ndindex(2, 3):
        numbers = (first[..., row] + second[..., column]).ravel().tolist()
        assert int(found[row, column]) == plain_product(numbers, weights, PRIME)[0]


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("degrees", [(1,), (2,), (3,), (5,), (2, 3), (4, 2), (3, 1, 3), (3, 3)])
def test_grids_of_attention_are_their_definition(degrees, heads):
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
        assert int(found[row, column]) == plain_degree_attention(tokens, blocks, heads, PRIME)[0][0]


@pytest.mark.parametrize(("depth", "hidden", "partition"), [(1, 3, None), (2, 5, (1, 4)), (3, None, (2, 3))])
def test_grids_of_mixers_are_their_definition(depth, hidden, partition):
    d, N = 3, 4
    rng = np.random.default_rng(depth)
    network = MixerNetwork(depth, d, N, hidden, partition)
    shapes = (network.units, N), (N, network.units), (d, d)
    blocks = [MixerBlock(*(random_residues(rng, shape, PRIME) for shape in shapes)) for _ in range(depth)]
    first, second = (random_residues(rng, (d, N, count), PRIME) for count in (2, 3))
    for place in range(N):
        (second if place + 1 in (partition or (1, 2)) else first)[:, place] = 0
    found = network.outputs(first, second, blocks, PRIME)
    for row, column in np.ndindex(2, 3):
        tokens = (first[..., row] + second[..., column]).T.tolist()
        assert int(found[row, column]) == plain_mixer(tokens, blocks, PRIME)[0][0]


@pytest.mark.parametrize(
    ("network", "expected"),
    [
        *(
            (ProductNetwork(*sizes), expected)
            for *sizes, expected in (
                *((1, 2, 2, 2), (2, 1, 4, 4), (3, 1, 4, 8), (3, 1, 2, 6), (2, 2, 2, 9), (3, 2, 2, 30)),
                *((2, 3, 2, 25), (3, 2, 4, 140), ((3, 3), 2, 4, 140)),
            )
        ),
        *((ProductNetwork(order, 3, 4, 2, token_dim=2), 100) for order in itertools.permutations((2, 3, 3))),
        *(
            (DegreeAttention(*sizes), expected)
            for *sizes, expected in (
                *(((1, 1), 3, 4, 2), ((2, 2, 2), 2, 4, 27), ((4, 4), 2, 4, 45), ((5, 5), 1, 4, 7)),
                *(((2, 3), 2, 4, 25), ((3, 2), 2, 4, 18), ((2, 3), 2, 2, 15), ((6,), 3, 4, 4)),
            )
        ),
        (DegreeAttention((1, 1, 1), 3, 4), 2),  # what is left of a Mixer without its activations
    ],
)
def test_known_ranks(network, expected):
    assert measured(network) == expected


@pytest.mark.parametrize(("depth", "width", "tokens", "heads"), [(1, 3, 4, 1), (2, 2, 2, 1), (2, 2, 4, 2)])
def test_degree_3_is_linearized_attention(depth, width, tokens, heads):
    block = DegreeAttention((3,) * depth, width, tokens, heads)
    assert measured(block) == measured(LinearAttention(depth, width, tokens, heads))
    assert block.total_degree == 3**depth


@given(st.integers(2, 6), st.integers(1, 3))
@settings(max_examples=12)
def test_width_1_has_a_closed_form(degree, depth):
    """A polynomial of degree (k^L - 1) / (k - 1) in one number that is a sum over both halves."""
    mixings = (degree**depth - 1) // (degree - 1)
    if mixings < 200:
        assert measured(DegreeAttention((degree,) * depth, 1, 4)) == mixings + 1


def test_a_mixture_of_product_layers_has_the_degree_of_all() -> None:
    mixed = ProductNetwork((2, 3), 2, 2, 4)
    assert mixed.total_degree == math.prod(mixed.degrees) == 6
    assert mixed.degree == 6 + 6 + 3
    assert measured(mixed) <= mixed.rank_bound()
    one, each = ProductNetwork(3, 2, 4), ProductNetwork((3, 3), 2, 4)
    assert (one.degrees, one.degree) == (each.degrees, each.degree)


@pytest.mark.parametrize(
    ("width", "tokens", "hidden"), [(1, 2, 1), (3, 2, 4), (3, 8, 2), (2, 8, 9), (4, 6, None)]
)
def test_one_mixer_block_has_a_bilinear_form_for_each_channel(width, tokens, hidden):
    """d min(S, N / 2) + 2; attention, which knows no positions, has d + 1 whatever N is."""
    found = measured(MixerNetwork(1, width, tokens, hidden))
    assert found == width * min(hidden or tokens, tokens // 2) + 2


small = st.integers(1, 3)


@given(small, small, st.sampled_from([2, 4]), st.integers(1, 4), st.permutations(range(1, 5)))
@settings(max_examples=20)
def test_no_mixer_is_above_its_bound_or_depends_on_the_partition(depth, width, tokens, hidden, places):
    network = MixerNetwork(depth, width, tokens, hidden)
    assume(network.rank_bound() <= 150)
    found = measured(network)
    if tokens == 4:
        assert measured(MixerNetwork(depth, width, tokens, hidden, tuple(places[:2]))) == found


@pytest.mark.parametrize(
    ("network", "sizes", "words"),
    [
        (network, *case)
        for network in (LinearAttention, ProductNetwork, DegreeAttention, MixerNetwork)
        for case in listed("theory/mistakes.yaml", network.__name__)
    ],
)
def test_sizes_that_cannot_be(network, sizes, words):
    given = {name: tuple(one) if isinstance(one, list) else one for name, one in sizes.items()}
    with pytest.raises(UserError, match=words):
        network(**given)
