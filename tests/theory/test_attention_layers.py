"""Layers of linearized attention over a finite field, against the papers' equation token by token."""

import numpy as np
import pytest
from plain_networks import plain_attention

from shapelaw.theory.attention_layers import Layer, Output, outputs, random_maps
from shapelaw.theory.finite_field import PRIMES, random_residues

LARGE = PRIMES[0]


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize(("depth", "heads", "inner"), [(1, 2, 3), (2, 1, 3), (2, 2, 1), (3, 1, 2), (4, 1, 3)])
@pytest.mark.parametrize("split", [(), (1, 2)])
def test_grids_of_attention_are_the_papers_equation(residual, depth, heads, inner, split):
    d, N = 3, 4
    rng = np.random.default_rng([depth, heads])
    layers = [Layer(*(random_maps(rng, heads, d, inner, LARGE) for _ in range(2))) for _ in range(depth)]
    first, second = (random_residues(rng, (N, d, count), LARGE) for count in (2, 3))
    for token in range(N):
        if token not in split:
            (second if token < 2 else first)[token] = 0
    for position in (0, 1):
        output = Output(position, 2, residual)
        found = outputs(first, second, split, layers, output, LARGE)
        for row, column in np.ndindex(2, 3):
            tokens = (first[..., row] + second[..., column]).astype(object) % LARGE
            plain = plain_attention([[int(x) for x in token] for token in tokens], layers, residual, LARGE)
            assert int(found[row, column]) == plain[position][2]
