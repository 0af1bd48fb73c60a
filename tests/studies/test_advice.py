"""Advice in words and numbers, by the published law and by one's own transitions."""

import json
import math
from pathlib import Path

import pandas as pd
import pytest

from shapelaw.errors import UserError
from shapelaw.fits.advice import Budget
from shapelaw.specs.architectures import Architecture, make_architecture
from shapelaw.studies.advice import (
    PUBLISHED,
    Law,
    answer,
    as_json,
    big,
    range_of,
    read_law,
    text_of,
    verdict,
)

LAW = read_law(PUBLISHED)
BUDGET = Budget(1.3e9, 50257, tied=True)


def given(depth: int, width: int) -> Architecture:
    return make_architecture("Your shape", vocab_size=50257, depth=depth, width=width)


def test_the_published_law_says_where_it_was_measured() -> None:
    assert LAW.depths == (6, 30)
    assert LAW.sizes == pytest.approx((12 * 6 * 214**2, 12 * 30 * 824**2))
    assert LAW.forms[0].name == "line"


def test_a_size_outside_of_the_law_s_is_an_extrapolation() -> None:
    assert range_of(answer(Budget(1e8, 2000), LAW)).startswith("measured")
    assert range_of(answer(BUDGET, LAW)).startswith("extrapolated: 5")
    assert "below the smallest" in range_of(answer(Budget(1e6, 257), LAW))


def test_a_given_shape_is_judged_by_the_interval() -> None:
    assert "24 layers of width 2,048 is shallower than advised" in verdict(
        answer(BUDGET, LAW, given(24, 2048))
    )
    assert "96 layers of width 1,024 is deeper than advised" in verdict(answer(BUDGET, LAW, given(96, 1024)))
    found = answer(BUDGET, LAW)
    inside = given(round(found.advice.depth), 1536)
    assert verdict(answer(BUDGET, LAW, inside)).endswith("within the interval.")


def test_the_text_has_an_answer_a_shape_the_range_and_each_form() -> None:
    text = text_of(answer(BUDGET, LAW, given(24, 2048)))
    for part in (
        "Best depth: 42 layers (68%: 41 to 42)",
        "A shape to train: 4",
        "table 4a",
        "line, weight 9",
        "Your shape",
    ):
        assert part in text
    assert "One layer is the least there is" in text_of(answer(Budget(1e5, 257), LAW))


def test_the_json_is_plain_and_has_the_same_numbers() -> None:
    found = answer(BUDGET, LAW, given(24, 2048))
    values = json.loads(json.dumps(as_json(found), allow_nan=False))
    assert values["depth"] == found.advice.depth
    assert values["shape"]["width"] == values["shape"]["heads"] * values["shape"]["head_dim"]
    assert values["given"]["verdict"] == verdict(found)
    assert sum(values["law"]["forms"].values()) == pytest.approx(1.0)


def test_the_bottlenecks_of_both_shapes_are_told() -> None:
    wide = make_architecture("Your shape", vocab_size=257, depth=12, width=768, heads=12)
    first, second = answer(Budget(1e8, 257), LAW, wide).bottlenecks
    assert first.startswith("The shape to train: the vocabulary binds")
    assert second.startswith("Your shape: the vocabulary binds. The embedding has a rank of at most 257")
    (only,) = answer(BUDGET, LAW).bottlenecks
    assert only.startswith("The shape to train: nothing binds")


def test_own_transitions_are_a_law_too(tmp_path: Path) -> None:
    depth = [1, 2, 4, 8]
    width = [math.exp(4.8 + 0.1 * one) for one in depth]
    table = pd.DataFrame({"depth": depth, "width": width, "width_err": [0.02 * one for one in width]})
    table.to_csv(tmp_path / "transitions.csv", index=False)
    law: Law = read_law(str(tmp_path))
    assert law.depths == (1, 8)
    assert law.source == str(tmp_path / "transitions.csv")
    assert answer(BUDGET, law).advice.depth < answer(BUDGET, LAW).advice.depth  # it rises more steeply


def test_what_gives_no_law_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"has no transitions\.csv; give `published`"):
        read_law(str(tmp_path))
    (tmp_path / "best_depth.csv").touch()
    with pytest.raises(UserError, match=r"has a surface of fit_surface\.py"):
        read_law(str(tmp_path))
    falling = pd.DataFrame({"depth": [1, 2, 4], "width": [300, 200, 100], "width_err": [1, 1, 1]})
    falling.to_csv(tmp_path / "transitions.csv", index=False)
    with pytest.raises(UserError, match="gives no law to advise by"):
        read_law(str(tmp_path))


def test_numbers_are_written_as_people_say_them() -> None:
    said = [big(number) for number in (1.3e9, 244_445_760, 318_828, 1.17e12)]
    assert said == ["1.3 billion", "244 million", "319,000", "1.17 trillion"]
