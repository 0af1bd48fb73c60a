"""The answer in words and as JSON."""

import json

import pytest

from shapelaw.advice.answer.answer import Network, ShapeAnswer
from shapelaw.advice.answer.costs import Best, Question
from shapelaw.advice.answer.numbers import as_json
from shapelaw.advice.answer.sizes import Counting
from shapelaw.advice.answer.text import ends, paragraph, text_of
from shapelaw.advice.evidence.public import public_answer, public_evidence

LLAMA, BLOCKS = Counting(vocab_size=32000), 12 * 16 * 2048**2
GIVEN = Network("Your shape", 16, 2048, BLOCKS, BLOCKS + 2 * 32000 * 2048, LLAMA)


def answered(
    size: float, equal_time: bool = False, given: Network | None = None, tokens: float = 3e10
) -> ShapeAnswer:
    question = Question(size, LLAMA, tokens, public_evidence().clock, equal_time=equal_time)
    return public_answer(question, given=given)


def test_the_text_has_the_costs_first_and_what_to_do_last() -> None:
    text = text_of(answered(1.3e9, given=GIVEN), ["A note."])
    order = [
        "layers  width",
        "Less than 0.005 nats:",
        "Best depth: ",
        "best depth by",
        "Your shape, 16 layers",
        "shipped at this size",
        "A note.",
        "Vocabulary: a published law",
        "Take ",
    ]
    places = [text.index(part) for part in order]
    assert places == sorted(places)
    assert "has 936 million where 1.3 billion was asked (-28%)" in text
    assert "Levine et al. 2020" in text
    assert "GPT-2, two heads" in text
    assert all(len(line) <= 130 for line in text.splitlines())


def _one_line(found: ShapeAnswer) -> str:
    return " ".join(text_of(found).split())


def test_what_can_t_be_told_is_said_with_its_range() -> None:
    found = answered(7e9)
    text = text_of(found)
    assert "Best depth: can't tell. What the evidence leaves open lies between" in text
    assert "more than 3 times outside" in text.replace("\n", " ")
    assert "Take " not in text
    assert "`shapelaw fit`" in " ".join(paragraph(found))
    numbers = as_json(found)
    assert numbers["best"]["depth"] is None
    assert numbers["best"]["low"] < numbers["best"]["high"]
    assert numbers["costs"] == []
    near = numbers["nearest_told"]
    assert answered(near["size"]).by
    assert not answered(1.05 * near["size"]).by
    few = as_json(answered(1.3e9, tokens=1e6))["nearest_told"]
    assert (few["size"], few["tokens"]) == (1.3e9, 1e9)
    many = answered(1.3e9, tokens=1e13)
    assert (many.nearest.question.size, many.nearest.question.tokens) == (
        1.3e9,
        pytest.approx(3.5e12, rel=0.01),
    )
    assert "Its losses end at 350 billion tokens: these are more than 10 times as many." in _one_line(many)
    assert as_json(answered(1.3e9))["nearest_told"] is None


def test_the_json_has_the_named_numbers() -> None:
    numbers = json.loads(json.dumps(as_json(answered(1.3e9, given=GIVEN)), allow_nan=False))
    assert numbers["best"]["low"] < numbers["best"]["depth"] < numbers["best"]["high"]
    for row in numbers["costs"]:
        assert set(row) >= {"depth", "width", "cost", "low", "high", "params_worth", "time"}
    at_best = next(row for row in numbers["costs"] if row["depth"] == numbers["best"]["depth"])
    assert (at_best["cost"], at_best["time"]) == (0.0, 1.0)
    assert numbers["given"]["cost_low"] <= numbers["given"]["cost"] <= numbers["given"]["cost_high"]
    assert numbers["shape"]["width"] == numbers["shape"]["heads"] * numbers["shape"]["head_dim"]


def test_at_equal_time_sizes_stand_in_place_of_times() -> None:
    found = answered(1.3e9, equal_time=True)
    assert "others as slow" in text_of(found).splitlines()[0]
    assert as_json(found)["size_means"] == "time"


@pytest.mark.parametrize(
    ("best", "said"),
    [
        (Best(41, 40.6, 41.4, 41, 41), (40, 42)),
        (Best(37, 25.4, 58.6, 30, 50), (25, 59)),
        (Best(1, 1.0, 1.2, 1, 1), (1, 2)),
        (Best(2, 1.6, 2.2, 2, 2), (1, 3)),
    ],
)
def test_an_interval_is_never_one_depth(best: Best, said: tuple[int, int]) -> None:
    assert ends(best) == said
