"""Arithmetic modulo a prime, against plain integers, and dimensions of spaces of functions against ranks of values."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shapelaw.theory.polynomials import (
    PRIMES,
    Halves,
    add,
    gram_dimension,
    matched,
    matmul,
    multiset,
    multiset_bound,
    output_dimension,
    partition_count,
    partitions,
    random_residues,
    rank,
    reduce,
    schur_dimension,
    staircase,
    symmetric_power,
)

SMALL = PRIMES[1]


@given(st.integers(1, 9), st.integers(0, 10**6), st.sampled_from(PRIMES))
@settings(max_examples=30)
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
    assert all(prime % small for prime in PRIMES for small in range(2, math.isqrt(prime) + 1))


@pytest.mark.parametrize(("rows", "columns", "inner"), [(7, 9, 4), (5, 5, 5), (3, 8, 0)])
def test_the_rank_of_a_product_is_its_inner_size(rows, columns, inner):
    rng = np.random.default_rng(0)
    matrix = np.zeros((rows, columns), dtype=np.uint64)
    for _ in range(inner):
        column, row = (random_residues(rng, shape, SMALL) for shape in ((rows, 1), (1, columns)))
        matrix = add(matrix, reduce(column * row, SMALL), SMALL)
    assert rank(matrix, SMALL) == inner
    assert rank(np.zeros((0, 3), dtype=np.uint64), SMALL) == 0


def test_halves_by_hand():
    assert Halves(4).inputs == ((1, 2), (3, 4))
    assert Halves(4).ordered(3) == ((3, 4), (1, 2))
    assert Halves(4, first=(2, 4)).inputs == ((2, 4), (1, 3))
    pairs = Halves(4, patch=2, first=(1, 2, 3, 5))  # of tokens (1, 2), (3, 4), (5, 6), (7, 8)
    assert pairs.inputs == ((1, 2, 3, 5), (4, 6, 7, 8))
    assert pairs.split == [1, 2]
    assert pairs.tokens_of(pairs.inputs[0]) == {0: 2, 1: 1, 2: 1}
    assert Halves(4, patch=2).split == []


@given(st.integers(1, 4).map(lambda half: 2 * half), st.integers(1, 3), st.data())
def test_every_balanced_partition_is_two_halves_of_all_inputs(tokens, patch, data):
    places = range(1, tokens * patch + 1)
    first = tuple(data.draw(st.permutations(places))[: tokens * patch // 2])
    halves = Halves(tokens, patch, first)
    halves.check()
    one, other = halves.inputs
    assert sorted(one + other) == list(places)
    assert len(one) == len(other)
    of = [{(place - 1) // patch for place in half} for half in (one, other)]
    assert halves.split == sorted(of[0] & of[1])
    for position in range(1, tokens + 1):
        assert position - 1 in halves.tokens_of(halves.ordered(position)[0])
        assert set(map(frozenset, halves.ordered(position))) == {frozenset(one), frozenset(other)}


PRIME = PRIMES[0]


def values_of(degree, width, tokens, points):
    """Every monomial of a degree in the entries of G = X X^T, and X, at random X."""
    x = random_residues(np.random.default_rng(degree), (width, tokens, points), PRIME)
    gram = matmul(x, x.swapaxes(0, 1), PRIME)
    entries = [gram[i, j] for i in range(width) for j in range(i + 1)]
    rows = []
    for factors in itertools.combinations_with_replacement(entries, degree):
        row = np.ones(points, dtype=np.uint64)
        for factor in factors:
            row = reduce(row * factor, PRIME)
        rows.append(row)
    return np.array(rows), x


def test_partitions_are_counted_without_going_through_them():
    for total in range(13):
        for parts in range(1, 15):
            assert partition_count(total, parts) == len(list(partitions(total, parts)))
    assert partition_count(100, 100) == 190_569_292  # MacMahon's


def test_a_bound_that_is_too_long_to_count_is_a_power_of_two_above_it():
    assert multiset_bound(7, 5) == multiset(7, 5)
    assert multiset_bound(1, 10**60) == 1
    found, exact = multiset_bound(10_000, 10**30), multiset(10_000, 10**30)
    assert exact < found == 1 << (found.bit_length() - 1) < exact**2


@pytest.mark.parametrize(
    ("degree", "width", "tokens"),
    [
        (0, 2, 1),
        (1, 3, 1),
        (2, 2, 1),
        (2, 3, 1),
        (3, 2, 1),
        (2, 3, 2),
        (3, 3, 2),
        (3, 3, 3),
        (3, 2, 5),
        (2, 4, 2),
    ],
)
def test_dimensions_are_ranks_of_values(degree, width, tokens):
    expected = output_dimension(degree, width, tokens)
    monomials, x = values_of(degree, width, tokens, expected + 6)
    assert rank(monomials, PRIME) == gram_dimension(degree, width, tokens)
    outputs = np.concatenate([reduce(monomials * x[a, 0], PRIME) for a in range(width)])
    assert rank(outputs, PRIME) == expected


@pytest.mark.parametrize(("degree", "width"), [(1, 1), (4, 2), (3, 3), (5, 3), (2, 5)])
def test_sums_over_partitions_are_all_polynomials_when_tokens_suffice(degree, width):
    even = [schur_dimension([2 * part for part in shape], width) for shape in partitions(degree, width)]
    assert sum(even) == gram_dimension(degree, width, width) == multiset(width * (width + 1) // 2, degree)
    odd = [
        schur_dimension(shape, width)
        for shape in partitions(2 * degree + 1, width)
        if sum(part % 2 for part in shape) == 1
    ]
    assert sum(odd) == output_dimension(degree, width, width)


def test_where_there_are_too_many_partitions_the_dimensions_are_bounds():
    assert gram_dimension(200, 9, 5) == min(multiset(45, 200), multiset(45, 400))
    assert output_dimension(200, 9, 5) >= gram_dimension(200, 9, 5)


def test_blocks():
    assert matched([5, 2], [1, 3], 1) == min(2, 1) + min(5, 3)
    for rows, columns in (([2, 8], [1, 4]), ([3, 3, 9], [2, 2, 9]), ([1, 2, 3], [4, 5, 6])):
        total = len(rows) - 1
        rng = np.random.default_rng(0)
        matrix = random_residues(rng, (rows[-1], columns[-1]), PRIME)
        for a, b in itertools.product(range(total + 1), repeat=2):
            if a + b > total:
                matrix[([0, *rows])[a] : rows[a], ([0, *columns])[b] : columns[b]] = 0
        assert staircase(rows, columns, total) == rank(matrix, PRIME)


def test_symmetric_powers_count_monomials():
    assert symmetric_power([2], 3) == [multiset(2, 3)]
    assert symmetric_power([1, 1], 3) == [1, 1, 1, 1]
    monomials = list(itertools.combinations_with_replacement([0, 0, 1, 1, 1, 2], 3))
    assert symmetric_power([2, 3, 1], 3) == [sum(sum(m) == k for m in monomials) for k in range(7)]
