"""The lemmas of benchmarks/lemmas.py at small sizes, that their checks can fail, and sums of monomials."""

from collections.abc import Callable, Iterable
from itertools import product

import lemmas
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lemmas import Case
from monomials import coefficient_rank, epsilon_ranks, full_rank_share, singular_values
from small import REPOSITORY

from shapelaw.theory.linear_attention import LinearAttention
from shapelaw.theory.rank_bounds import log3, unraveled_upper


@pytest.mark.parametrize(
    "cases",
    [
        lambda: lemmas.layer_bound(2, 2),
        lambda: lemmas.multiset_means(4, 3, 5),
        lambda: lemmas.multiset_upper(12, 12),
        lambda: lemmas.residual_form([(1, 2, 2), (2, 2, 1), (2, 2, 2)]),
        lambda: lemmas.power_of_a_network([(2, 6, 2, 2), (3, 5, 1, 2)]),
        lambda: lemmas.leading_product([(2, 3), (3, 3)]),
        lambda: lemmas.rearranged([(2, 3), (3, 1)], 3),
        lambda: lemmas.whole_rows([(2, 3), (3, 3)]),
    ],
    ids=[name for name, *_ in lemmas.LEMMAS],
)
def test_a_lemma_holds(cases: Callable[[], Iterable[Case]]) -> None:
    found = list(cases())
    assert found
    assert all(one.holds for one in found)
    assert all(one.slack >= 0 for one in found if one.slack is not None)


def test_the_slack_of_equal_numbers_is_none_and_of_others_is_known() -> None:
    slacks = [
        one.slack for one in lemmas.multiset_means(3, 2, 2)
    ]  # ((3, 0)) ((3, 2)) is 6, the mean's square is 9
    assert min(slacks) == 0
    assert max(slacks) == pytest.approx(log3(9) - log3(6))


def test_other_weights_do_not_give_lemma_6(monkeypatch: pytest.MonkeyPatch) -> None:
    """It needs a root of -1: without one the squares of the two halves do not cancel."""
    monkeypatch.setattr(lemmas, "ROOT", 2)
    assert not any(one.holds for one in lemmas.power_of_a_network([(2, 6, 2, 2)]))


def test_theorem_5_of_depth_width_holds_by_the_dimensions_though_not_by_its_proof() -> None:
    """The proof forgets that each layer cubes the number of branches below it."""
    for depth, width, tokens in [(1, 1, 2), (1, 4, 2), (2, 1, 2), (2, 4, 4), (3, 3, 2), (4, 2, 8)]:
        bound = LinearAttention(depth, width, tokens, residual=True).rank_bound()
        assert log3(bound) <= unraveled_upper(depth, width, 1, tokens) + 1e-9


def test_the_committed_table_has_no_failure() -> None:
    table = pd.read_csv(REPOSITORY / "docs" / "results" / "lemmas.csv")
    assert list(table["lemma"]) == [name for name, *_ in lemmas.LEMMAS]
    assert (table["failed"] == 0).all()


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
