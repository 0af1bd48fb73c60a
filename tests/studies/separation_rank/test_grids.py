"""The grids of separation ranks: from their keys to measurements."""

import pytest
from measured_grids import asked_one

from shapelaw.studies.separation_rank.study import (
    DegreeSizes,
    RankGrids,
    asked_of,
    count_sequences,
    digest,
    matrices,
    mixed_degrees,
    rank_problems,
)
from shapelaw.studies.separation_rank.tables import network_of
from shapelaw.theory.separation_rank import separation_rank


def test_digests_name_networks():
    one = asked_one(2, 4, 8).sizes
    assert digest(one) == digest(asked_one(2, 4, 8).sizes)
    degrees = [DegreeSizes("product", degrees, 4, 2, 1) for degrees in ((2, 3), (3, 2))]
    assert len(set(map(digest, [one, asked_one(2, 4, 8, residual=True).sizes, *degrees]))) == 4


def test_a_default_that_is_written_out_is_the_same_network():
    grid = {
        "depth": [2],
        "width": [4],
        "tokens": [8],
        "embedding_rank": [None, 4],
        "attention_dim": [None, 4],
    }
    (one,) = asked_of(RankGrids(separation_rank=[grid]))
    assert one.sizes == asked_one(2, 4, 8).sizes


OF_MIXERS = {"blocks": "mixer", "width": [4], "budget": [9], "tokens": [4], "degrees": [2]}


def test_a_grid_that_cannot_be_listed_is_told_at_once() -> None:
    """Counted, not listed: the second has more networks than atoms fit on the earth."""
    many = list(range(1, 101))
    grid = {"depth": many, "width": many, "tokens": [2 * n for n in many]}
    assert rank_problems(RankGrids(separation_rank=[grid])) == [
        "separation_rank.1st has 1,000,000 networks; at most 10,000 can be measured: take shorter "
        "lists or smaller budgets"
    ]
    block = {"blocks": "product", "width": [2], "budget": [5, 10**6]}
    (said,) = rank_problems(RankGrids(fractional_degree=[block]))
    assert said.startswith("fractional_degree.1st has over 10^")


def test_a_mixer_has_the_matrices_of_attention_s_blocks_of_degree_2() -> None:
    (mixer,) = asked_of(RankGrids(degree_budget=[OF_MIXERS]))
    (attention,) = asked_of(RankGrids(degree_budget=[OF_MIXERS | {"blocks": "attention"}]))
    one, other = network_of(mixer.sizes), network_of(attention.sizes)
    assert one.params == other.params == 3 * 3 * 4**2
    assert separation_rank(one).rank == 660  # docs/results/theory.md


@pytest.mark.parametrize("blocks", ["product", "attention", "mixer"])
def test_sequences_are_counted_as_they_are_listed(blocks: str) -> None:
    for budget in range(14):
        grid = RankGrids(
            fractional_degree=[{"blocks": blocks, "width": [2], "budget": [budget + 1], "degrees": [2, 3, 5]}]
        )
        listed = list(mixed_degrees(grid.fractional_degree[0]))
        costs = [matrices(blocks, degree) for degree in (2, 3, 5)]
        empty = budget + 1 < min(costs)  # the empty sequence is counted and not listed
        assert count_sequences(budget + 1, costs) == len(listed) + empty
