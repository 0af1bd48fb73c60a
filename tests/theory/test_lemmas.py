"""The lemmas of benchmarks/lemmas.py at small sizes, and that their checks can fail."""

from collections.abc import Callable, Iterable

import lemmas
import pandas as pd
import pytest
from lemmas import PRIME, Case
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


def test_minus_one_has_the_root_that_lemma_6_takes() -> None:
    assert lemmas.ROOT**2 % PRIME == PRIME - 1


def test_theorem_5_of_depth_width_holds_by_the_dimensions_though_not_by_its_proof() -> None:
    """The proof forgets that each layer cubes the number of branches below it."""
    for depth, width, tokens in [(1, 1, 2), (1, 4, 2), (2, 1, 2), (2, 4, 4), (3, 3, 2), (4, 2, 8)]:
        bound = LinearAttention(depth, width, tokens, residual=True).rank_bound()
        assert log3(bound) <= unraveled_upper(depth, width, 1, tokens) + 1e-9


def test_the_committed_table_has_no_failure() -> None:
    table = pd.read_csv(REPOSITORY / "docs" / "results" / "lemmas.csv")
    assert list(table["lemma"]) == [name for name, *_ in lemmas.LEMMAS]
    assert (table["failed"] == 0).all()
