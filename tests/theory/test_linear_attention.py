"""Linearized attention: ranks by embedding, positions, partition and vocabulary, and sizes that cannot be."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from measured_ranks import measured
from plain_networks import plain_attention

from shapelaw.theory.linear_attention import Layer, LinearAttention, outputs, random_maps
from shapelaw.theory.polynomials import PRIMES, random_residues


@pytest.mark.parametrize("rank_of_embedding", [1, 2])
def test_an_embedding_of_rank_r_gives_what_width_r_gives(rank_of_embedding):
    narrow = measured(LinearAttention(2, rank_of_embedding, 4))
    for width in (3, 6):
        assert measured(LinearAttention(2, width, 4, embedding_rank=rank_of_embedding)) == narrow


def test_positions_add_their_rank_to_a_narrow_embedding_and_nothing_to_a_full_one():
    assert measured(LinearAttention(2, 2, 4, positional_rank=2)) == 18
    ranks = [
        measured(LinearAttention(2, 4, 4, embedding_rank=2, positional_rank=places)) for places in (0, 1, 2)
    ]
    assert ranks == [18, 39, 54]


@given(st.permutations(range(1, 7)), st.integers(1, 6), st.booleans(), st.integers(1, 2))
@settings(max_examples=12)
def test_proposition_1_any_balanced_partition(places, position, residual, depth):
    network = LinearAttention(depth, 2, 6, partition=tuple(places[:3]), position=position, residual=residual)
    assert measured(network) == (18 if depth == 2 else 3)


def test_a_convolution_is_a_vocabulary_of_its_inputs():
    whole = {"depth": 2, "tokens": 4, "embedding": "convolution"}
    assert measured(LinearAttention(width=4, patch=2, input_dim=1, **whole)) == 18
    assert measured(LinearAttention(width=2, patch=3, input_dim=2, **whole)) == 18
    swapped = LinearAttention(width=4, patch=2, input_dim=1, partition=(3, 4, 7, 8), **whole)
    assert measured(swapped) == 18


@pytest.mark.parametrize("tokens", [2, 6, 10])
def test_a_partition_that_splits_patches_has_a_rank_that_grows_with_n(tokens):
    odd = tuple(range(1, 2 * tokens, 2))
    network = LinearAttention(1, 1, tokens, embedding="convolution", patch=2, input_dim=1, partition=odd)
    assert measured(network) == 2 * tokens + 2


@pytest.mark.parametrize(
    ("words", "tokens", "places", "expected"),
    [(2, 8, 0, 5), (3, 6, 0, 10), (3, 8, 0, 12), (4, 6, 0, 18), (4, 4, 1, 16), (8, 8, 0, 18)],
)
def test_a_finite_vocabulary(words, tokens, places, expected):
    network = LinearAttention(2, 2, tokens, embedding="vocabulary", vocabulary=words, positional_rank=places)
    assert measured(network) == expected


LARGE = PRIMES[0]


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize(("depth", "heads", "inner"), [(1, 2, 3), (2, 1, 3), (2, 2, 1), (3, 1, 2), (4, 1, 3)])
@pytest.mark.parametrize(
    ("split", "tokens"),
    [((), {}), ((1, 2), {"embedding": "convolution", "patch": 2, "input_dim": 2, "partition": (1, 2, 3, 5)})],
)
def test_grids_of_attention_are_the_papers_equation(residual, depth, heads, inner, split, tokens):
    d, N = 3, 4
    rng = np.random.default_rng([depth, heads])
    layers = [Layer(*(random_maps(rng, heads, d, inner, LARGE) for _ in range(2))) for _ in range(depth)]
    first, second = (random_residues(rng, (N, d, count), LARGE) for count in (2, 3))
    for token in range(N):
        if token not in split:
            (second if token < 2 else first)[token] = 0
    for position in (0, 1):
        output = {"position": position + 1, "entry": 3, "residual": residual}
        network = LinearAttention(depth, d, N, heads, inner, **tokens, **output)
        found = outputs(network, first, second, layers, LARGE)
        for row, column in np.ndindex(2, 3):
            both = (first[..., row] + second[..., column]).astype(object) % LARGE
            plain = plain_attention([[int(x) for x in token] for token in both], layers, residual, LARGE)
            assert int(found[row, column]) == plain[position][2]
