"""What is wrong with the grids of separation ranks."""

from shipped import problems_of


def test_mistakes_in_its_keys_are_sentences() -> None:
    said = problems_of(
        separation_rank=[{"depth": [0], "width": [2], "tokens": [2], "residual": ["maybe"]}],
        degree_budget=[{"block": "product", "width": [2], "budget": [3]}],
    )
    assert "separation_rank.1st.residual.1st is 'maybe'" in said
    assert "separation_rank.1st.depth.1st is 0" in said
    assert "degree_budget.1st.block is not a key (did you mean blocks?)" in said
    said = problems_of(separation_rank=[{"depth": [1], "width": [3], "tokens": [2], "heads": [2]}])
    assert "separation_rank.1st: width 3 is not divisible by 2 heads" in said
