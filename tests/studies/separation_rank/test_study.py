"""What is wrong with the grids of separation ranks."""

from typing import Any

import pytest
from shipped import problems_of


@pytest.mark.parametrize(
    ("changes", "sentences"),
    [
        (
            {"separation_rank": [{"depth": [1], "width": [2], "tokens": [2], "residual": ["maybe"]}]},
            ["separation_rank.1st.residual.1st is 'maybe'"],
        ),
        (
            {
                "separation_rank": [{"depth": [0], "width": [2], "tokens": [2]}],
                "degree_budget": [{"block": "product", "width": [2], "budget": [3]}],
            },
            [
                "separation_rank.1st.depth.1st is 0",
                "degree_budget.1st.block is not a key (did you mean blocks?)",
            ],
        ),
        (
            {
                "separation_rank": [
                    {"depth": [1], "width": [3], "tokens": [2], "embedding_rank": [4], "heads": [2]}
                ]
            },
            [
                "separation_rank.1st: width 3 is not divisible by 2 heads",
                "embedding_rank is 4, above the width 3",
            ],
        ),
    ],
)
def test_each_mistake_in_its_keys_is_a_sentence(changes: dict[str, Any], sentences: list[str]) -> None:
    said = problems_of(**changes)
    assert all(sentence in said for sentence in sentences), said
