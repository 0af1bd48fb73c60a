"""Sums of monomials: exact ranks by hand, the closed form by counting, and singular values by integrals."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from monomials import coefficient_rank, epsilon_ranks, full_rank_share, singular_values


@pytest.mark.parametrize(
    ("exponents", "rank"),
    [
        ([[1, 1], [2, 1]], 1),  # x y + x^2 y, the note's example
        ([[1, 1], [2, 2]], 2),
        ([[1, 1], [1, 1]], 1),
        ([[1, 1, 1, 1], [1, 2, 1, 1], [1, 2, 2, 1]], 2),
    ],
)
def test_ranks_by_hand(exponents: list[list[int]], rank: int) -> None:
    assert coefficient_rank(np.array(exponents), np.arange(1, len(exponents) + 1)) == rank


@pytest.mark.parametrize(("terms", "power"), [(1, 1), (2, 1), (2, 2), (3, 2), (2, 3)])
def test_the_share_of_full_rank_is_that_of_all_draws(terms: int, power: int) -> None:
    draws = list(product(product(range(1, power + 1), repeat=2), repeat=terms))
    full = [coefficient_rank(np.array(draw), np.arange(2, terms + 2)) == terms for draw in draws]
    assert np.mean(full) == pytest.approx(full_rank_share(terms, power, inputs=2))


def test_singular_values_are_norms_where_monomials_are_orthogonal() -> None:
    """Of 3 x y z w + 10 x^2 y z^2 w: the mean of x^2 over [-1, 1] is 1/3, that of x^4 is 1/5."""
    values = singular_values(np.array([[[1, 1, 1, 1], [2, 1, 2, 1]]]), np.array([[3.0, 10.0]]))
    assert values[0] == pytest.approx([10 / 5 / 3, 3 / 3 / 3])


@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 4))
def test_a_larger_distance_allows_no_higher_rank_and_none_is_above_the_exact_one(seed, terms, power) -> None:
    rng = np.random.default_rng(seed)
    exponents = rng.integers(1, power + 1, (1, terms, 4))
    values = singular_values(exponents, rng.standard_normal((1, terms)))
    ranks = [int(epsilon_ranks(values, epsilon)[0]) for epsilon in (1e-9, 1e-4, 1e-1, 0.999)]
    exact = coefficient_rank(exponents[0], rng.integers(1, 2**31 - 1, terms))
    assert ranks == sorted(ranks, reverse=True)
    assert ranks[0] <= exact
    assert ranks[-1] >= 1
