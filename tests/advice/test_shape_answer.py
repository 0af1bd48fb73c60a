"""The answer for one size as data."""

import math
from dataclasses import replace

import pytest

from shapelaw.advice.answer.answer import (
    Network,
    ShapeAnswer,
    answer,
    price,
    times,
    transitions_of,
    vocabulary_of_law,
)
from shapelaw.advice.answer.costs import Question, ask, evidence_of
from shapelaw.advice.evidence.public import shipped_models
from shapelaw.specs.sizes import Counting, SizeAxis
from shapelaw.studies.study import published_json

CONTENT = published_json("evidence")
EVIDENCE = evidence_of(CONTENT)
LAW = transitions_of(CONTENT["law"])
LLAMA = Counting(vocab_size=32000)


def answered(size: float, tokens: float = 3e10, counting: Counting = LLAMA, **more) -> ShapeAnswer:  # type: ignore[no-untyped-def]
    question = Question(size, counting, tokens, EVIDENCE.clock, equal_time=more.pop("equal_time", False))
    laws = more.pop("laws", [LAW])
    return answer(question, EVIDENCE, CONTENT["block"], laws, shipped_models(counting.axis), **more)


def test_a_size_has_a_table_a_shape_witnesses_and_what_people_ship() -> None:
    found = answered(1.3e9)
    assert 5 <= len(found.rows) <= 7
    assert found.advised is not None
    assert found.best.low < found.advised.shape.depth < found.best.high
    assert found.advised.fits
    assert 25 <= found.best.depth <= 50
    assert [one.name for one in found.witnesses] == [EVIDENCE.name, LAW.source]
    assert len(found.shipped) == 3
    assert all((one.cost is None) == bool(one.network.origin) for one in found.shipped)
    assert found.equal_times["MI250X"].depth < found.best.depth
    assert found.by == EVIDENCE.name


def test_gpt_2_s_block_hears_the_law_first() -> None:
    found = answered(1.3e9, counting=Counting(block="gpt2"))
    assert [one.name for one in found.witnesses] == [LAW.source, EVIDENCE.name]
    assert found.witnesses[0].beyond > 3


def test_beyond_the_evidence_a_law_of_one_s_own_answers_with_a_wider_interval() -> None:
    small = 1e6
    own = replace(LAW, own=True, sizes=(1e5, 1e7), source="mine")
    found = answered(small, counting=Counting(vocab_size=257), laws=[own, LAW])
    assert found.by == "mine"
    assert found.rows == ()
    witness = next(one for one in found.witnesses if one.name == "mine")
    assert found.best.low < witness.low
    assert found.best.high > witness.high
    far = answered(small, counting=Counting(vocab_size=257), laws=[replace(own, sizes=(1e8, 1e9)), LAW])
    assert far.by == ""


def test_a_weak_law_says_why() -> None:
    weak = replace(LAW, p_value=1.6e-8, count=3, own=True, source="mine")
    (first, *_) = [one for one in answered(1.3e9, laws=[weak]).witnesses if one.name == "mine"]
    assert "don't lie on it (p < 0.001)" in first.remarks[0]
    assert "rests on 3 transitions" in first.remarks[1]


def test_a_given_shape_is_priced_at_its_own_size() -> None:
    """24 layers of width 1,957 give away 0.004 to 0.010 nats, 16 layers 0.02, 12 layers 0.034 to 0.042 (first look)."""
    counting = Counting(vocab_size=50304)
    costs = ask(EVIDENCE, Question(1.3e9, counting, 3e10, EVIDENCE.clock))
    for depth, low, high in ((24, 0.002, 0.011), (16, 0.012, 0.026), (12, 0.028, 0.046)):
        width = counting.width_at(1.3e9, depth)
        found = price(Network("it", depth, round(width), 12 * depth * width**2, 1.3e9, counting), costs)
        assert found.cost is not None
        assert low <= found.cost.value <= high


def test_a_shipped_model_is_priced_at_its_own_tokens_and_not_if_it_was_made_from_another() -> None:
    models = {one.name: one for one in shipped_models(SizeAxis.TOTAL)}
    few, unknown, distilled = models["Cerebras-GPT-111M"], models["GPT-2-small"], models["gemma-3-270m"]
    assert (few.tokens, unknown.tokens, distilled.origin) == (2.22e9, None, "distilled")
    at = {tokens: ask(EVIDENCE, Question(1.3e9, LLAMA, tokens, EVIDENCE.clock)) for tokens in (2.22e9, 3e11)}
    assert {price(few, costs).best_depth for costs in at.values()} == {price(few, at[2.22e9]).best_depth}
    assert price(unknown, at[3e11]).best_depth > price(unknown, at[2.22e9]).best_depth
    assert price(distilled, at[3e11]).cost is None


def test_models_of_the_nearest_sizes_have_each_their_own_shape() -> None:
    found = answered(1.25e8)
    assert len({(one.network.depth, one.network.width) for one in found.shipped}) == 3
    assert all(abs(math.log(one.size / 1.25e8)) < 0.2 for one in found.shipped)


def test_shipped_models_have_the_sizes_that_their_numbers_make() -> None:
    for one in shipped_models(SizeAxis.TOTAL):
        assert one.size() == one.total_params
        tables = 1 if one.counting.tied else 2
        made = one.block_params + tables * one.counting.vocab_size * one.width
        assert made == pytest.approx(one.total_params, rel=0.03), one.name


def test_the_vocabulary_of_the_law_is_its_formulas() -> None:
    """33 million other parameters have 3,145,728 of vocabulary by the derivative."""
    low, high = vocabulary_of_law(33e6, 512)
    assert min(abs(one - 3_145_728 / 512) for one in (low, high)) < 1.0
    assert 0.7 < low / high <= 1.0


def test_factors_are_written_in_two_digits() -> None:
    assert [times(one) for one in (3.87, 27.4, 512.0)] == ["3.9 times", "27 times", "510 times"]
