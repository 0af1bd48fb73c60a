"""Arithmetic modulo a prime, against plain integers."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shapelaw.errors import UserError
from shapelaw.theory.polynomials import (
    PRIMES,
    Halves,
    add,
    check_degrees,
    check_output,
    matmul,
    random_residues,
    rank,
    reduce,
)

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
    assert pairs.split == [2, 3]
    assert [pairs.token_in(token, pairs.inputs[0]) for token in (1, 2, 3, 4)] == [True, True, True, False]
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
    of = [{(place - 1) // patch + 1 for place in half} for half in (one, other)]
    assert halves.split == sorted(of[0] & of[1])
    for position in range(1, tokens + 1):
        assert halves.token_in(position, halves.ordered(position)[0])
        assert set(map(frozenset, halves.ordered(position))) == {frozenset(one), frozenset(other)}


@pytest.mark.parametrize(
    ("halves", "words"),
    [
        (Halves(5), "N = 5 tokens is odd"),
        (Halves(4, first=(1, 1)), "places from 1 to 4, each once"),
        (Halves(4, first=(1, 5)), "places from 1 to 4, each once"),
        (Halves(4, patch=2, first=(1, 2, 3)), "names 3 of 8 places; a balanced one names 4"),
    ],
)
def test_partitions_that_are_not_balanced(halves, words):
    with pytest.raises(UserError, match=words):
        halves.check()


def test_outputs_and_degrees_that_a_network_does_not_have():
    check_output(position=4, tokens=4, entry=3, width=3)
    with pytest.raises(UserError, match="position 5 must be from 1 to N = 4"):
        check_output(position=5, tokens=4, entry=3, width=3)
    with pytest.raises(UserError, match="entry 0 must be from 1 to the width 3"):
        check_output(position=4, tokens=4, entry=0, width=3)
    check_degrees([10] * 100)
    with pytest.raises(UserError, match="degree of the output has 101 digits"):
        check_degrees([10] * 101)
    with pytest.raises(UserError, match="The degree k = 0 of a layer"):
        check_degrees([2, 0])
