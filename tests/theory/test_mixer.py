"""MLP-Mixer as a block of degree 2: its definition, its rank of one block, its bound, and attention beside it."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from plain_networks import plain_mixer

from shapelaw.errors import UserError
from shapelaw.theory.networks import DegreeAttention, MixerBlock, MixerNetwork
from shapelaw.theory.polynomials import PRIMES, random_residues
from shapelaw.theory.separation_rank import separation_rank

PRIME = PRIMES[1]


@pytest.mark.parametrize(("depth", "hidden", "partition"), [(1, 3, None), (2, 5, (1, 4)), (3, None, (2, 3))])
def test_grids_are_the_definition(depth, hidden, partition):
    d, N = 3, 4
    rng = np.random.default_rng(depth)
    network = MixerNetwork(depth, d, N, hidden, partition, position=2, entry=3)
    S = network.units
    blocks = [
        MixerBlock(*(random_residues(rng, shape, PRIME) for shape in ((S, N), (N, S), (d, d))))
        for _ in range(depth)
    ]
    first, second = (random_residues(rng, (d, N, count), PRIME) for count in (2, 3))
    for place in range(N):
        (second if place + 1 in (partition or (1, 2)) else first)[:, place] = 0
    found = network.outputs(first, second, blocks, PRIME)
    for row, column in np.ndindex(2, 3):
        tokens = (first[..., row] + second[..., column]).T
        plain = plain_mixer([[int(x) for x in token] for token in tokens], blocks, PRIME)
        assert int(found[row, column]) == plain[1][2]


@pytest.mark.parametrize(
    ("width", "tokens", "hidden"), [(1, 2, 1), (3, 2, 4), (3, 8, 2), (2, 8, 9), (4, 6, None)]
)
def test_one_block_has_a_bilinear_form_for_each_channel(width, tokens, hidden):
    """d min(S, N / 2) + 2; attention, which knows no positions, has d + 1 whatever N is."""
    found = separation_rank(MixerNetwork(1, width, tokens, hidden))
    assert found.exact
    assert found.rank == width * min(hidden or tokens, tokens // 2) + 2


@given(
    st.integers(1, 3),
    st.integers(1, 3),
    st.sampled_from([2, 4]),
    st.integers(1, 4),
    st.permutations(range(1, 5)),
)
@settings(max_examples=40, deadline=None, derandomize=True)
def test_no_rank_is_above_its_bound_or_depends_on_the_partition(depth, width, tokens, hidden, places):
    network = MixerNetwork(depth, width, tokens, hidden)
    assume(network.rank_bound() <= 150)
    found = separation_rank(network)
    assert found.exact
    assert 1 <= found.rank <= found.upper_bound
    if tokens == 4:
        assert (
            separation_rank(MixerNetwork(depth, width, tokens, hidden, tuple(places[:2]))).rank == found.rank
        )


def test_linear_mixing_would_have_rank_2():
    """What is left of a Mixer without its activations: every token a linear map of all."""
    assert separation_rank(DegreeAttention((1, 1, 1), 3, 4)).rank == 2


def test_sizes_that_cannot_be():
    with pytest.raises(UserError, match="hidden = 0"):
        MixerNetwork(1, 2, 4, 0)
    with pytest.raises(UserError, match="N = 3 tokens is odd"):
        MixerNetwork(1, 2, 3)
    assert MixerNetwork(2, 4, 4).params == DegreeAttention((2, 2), 4, 4).params
