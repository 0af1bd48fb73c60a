"""Product networks: grids by their definition, known ranks, and sizes that cannot be."""

import numpy as np
import pytest
from measured_ranks import measured
from plain_networks import plain_product

from shapelaw.errors import UserError
from shapelaw.theory.networks import ProductNetwork
from shapelaw.theory.polynomials import PRIMES, random_residues

SMALL = PRIMES[1]


@pytest.mark.parametrize("mixing", [False, True])
@pytest.mark.parametrize(("degree", "depth"), [(1, 2), (2, 1), (3, 2), (2, 3), (5, 1)])
def test_grids_of_product_networks_are_their_definition(mixing, degree, depth):
    w, N = 3, 4
    rng = np.random.default_rng([degree, depth])
    network = ProductNetwork(degree, depth, w, N, mixing, position=2, entry=3)
    inputs = [w if mixing else w * N, *[w] * (depth - 1)]
    weights = [
        tuple(random_residues(rng, (degree, w, size), SMALL) for _ in range(1 + mixing)) for size in inputs
    ]
    first, second = (random_residues(rng, (N, w, count), SMALL) for count in (2, 3))
    first[2:], second[:2] = 0, 0
    found = network.outputs(first, second, weights, SMALL)
    for row, column in np.ndindex(2, 3):
        tokens = [[int(x) for x in token] for token in first[..., row] + second[..., column]]
        whole = tokens if mixing else [[x for token in tokens for x in token]]
        assert int(found[row, column]) == plain_product(whole, weights, SMALL)[1 if mixing else 0][2]


@pytest.mark.parametrize(
    ("degree", "depth", "width", "expected"),
    [(1, 2, 2, 2), (2, 1, 4, 4), (3, 1, 4, 8), (3, 1, 2, 6), (2, 2, 2, 9), (3, 2, 2, 30), (2, 3, 2, 25)],
)
def test_product_networks(degree, depth, width, expected):
    assert measured(ProductNetwork(degree, depth, width)) == expected


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 5])
def test_one_layer_of_products_doubles_with_each_factor(degree):
    assert measured(ProductNetwork(degree, 1, degree)) == 2**degree
    assert measured(ProductNetwork(degree, 1, 2, 4, True)) <= 2**degree


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"degree_of_layer": 0}, "degree k = 0"),
        ({"depth": -1}, "depth = -1"),
        ({"tokens": 3}, "N = 3 tokens is odd"),
        ({"mixing": True, "token_dim": 2}, "the token dimension is the width"),
        ({"entry": 5}, "entry 5"),
        ({"position": 9}, "position 9"),
    ],
)
def test_sizes_of_product_networks_that_cannot_be(options, words):
    with pytest.raises(UserError, match=words):
        ProductNetwork(**{"degree_of_layer": 2, "depth": 2, "width": 4, **options})
