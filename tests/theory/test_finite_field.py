"""Arithmetic modulo a prime, against plain integers."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shapelaw.theory.finite_field import PRIMES, add, matmul, random_residues, rank, reduce

SMALL = PRIMES[1]


@given(st.integers(1, 9), st.integers(0, 10**6), st.sampled_from(PRIMES))
@settings(max_examples=30, deadline=None, derandomize=True)
def test_arithmetic_is_exact_at_the_largest_numbers(inner, seed, prime):
    rng = np.random.default_rng(seed)
    left, right = (random_residues(rng, shape, prime) for shape in ((2, inner, 3), (inner, 2, 3)))
    left[0], right[:, 0] = prime - 1, prime - 1
    found = matmul(left, right, prime)
    for i, j, t in np.ndindex(2, 2, 3):
        plain = sum(int(left[i, s, t]) * int(right[s, j, t]) for s in range(inner))
        assert int(found[i, j, t]) == plain % prime
    assert (add(left, left, prime) == reduce(left * np.uint64(2), prime)).all()
    assert left.max() == prime - 1  # add leaves its arguments alone


def test_primes_are_prime():
    for prime in PRIMES:
        assert pow(2, prime - 1, prime) == 1
        assert all(prime % small for small in range(2, math.isqrt(prime) + 1))


@pytest.mark.parametrize(("rows", "columns", "inner"), [(7, 9, 4), (5, 5, 5), (3, 8, 0)])
def test_the_rank_of_a_product_is_its_inner_size(rows, columns, inner):
    rng = np.random.default_rng(0)
    matrix = np.zeros((rows, columns), dtype=np.uint64)
    for _ in range(inner):
        column, row = (random_residues(rng, shape, SMALL) for shape in ((rows, 1), (1, columns)))
        matrix = add(matrix, reduce(column * row, SMALL), SMALL)
    assert rank(matrix, SMALL) == inner
    assert rank(np.zeros((0, 3), dtype=np.uint64), SMALL) == 0
