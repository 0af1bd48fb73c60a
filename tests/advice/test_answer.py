"""The answer for one size: as data, in words, as JSON, for a budget, and as configs for libraries that train it."""

import ast
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from commands import json_of, output_of
from hypothesis import given, settings
from hypothesis import strategies as st

from shapelaw.advice.answer import allocation, answer
from shapelaw.advice.answer.costs import Best, Question
from shapelaw.advice.answer.formats import config_of, shape_for
from shapelaw.advice.answer.numbers import as_json
from shapelaw.advice.answer.sizes import Counting
from shapelaw.advice.answer.text import ends, paragraph, text_of
from shapelaw.advice.evidence.predicted import allocation_law
from shapelaw.advice.evidence.public import Network, public_evidence, shipped_models, transitions_of
from shapelaw.specs.sizes import SizeAxis
from shapelaw.studies.study import published_json

LAW = transitions_of(published_json("evidence")["law"])
VOCAB_32K = Counting(vocab_size=32000)


def answered(
    size: float, tokens: float = 3e10, counting: Counting = VOCAB_32K, equal_time: bool = False, **more
) -> answer.ShapeAnswer:
    question = Question(size, counting, tokens, public_evidence().clock, equal_time=equal_time)
    return answer.public_answer(question, **more)


def test_beyond_the_evidence_a_law_of_one_s_own_answers_with_a_wider_interval() -> None:
    small = 1e6
    own = replace(LAW, own=True, sizes=(1e5, 1e7), source="mine")
    found = answered(small, counting=Counting(vocab_size=257), own=own)
    assert found.by == "mine"
    assert found.rows == ()
    witness = next(one for one in found.witnesses if one.name == "mine")
    assert found.best.low < witness.low
    assert found.best.high > witness.high
    far = answered(small, counting=Counting(vocab_size=257), own=replace(own, sizes=(1e8, 1e9)))
    assert far.by == ""


def test_a_weak_law_says_why() -> None:
    weak = replace(LAW, p_value=1.6e-8, count=3, own=True, source="mine")
    (first, *_) = [one for one in answered(1.3e9, own=weak).witnesses if one.name == "mine"]
    assert "don't lie on it (p < 0.001)" in first.remarks[0]
    assert "rests on 3 transitions" in first.remarks[1]


def test_a_model_that_was_made_from_another_is_not_priced() -> None:
    made = next(one for one in shipped_models(SizeAxis.TOTAL) if one.origin)
    assert answer.price(made, Question(1.3e9, VOCAB_32K, 3e11, public_evidence().clock)).cost is None


def test_shipped_models_have_the_sizes_that_their_numbers_make() -> None:
    for one in shipped_models(SizeAxis.TOTAL):
        assert one.size() == one.total_params
        tables = 1 if one.counting.tied else 2
        made = one.block_params + tables * one.counting.vocab_size * one.width
        assert made == pytest.approx(one.total_params, rel=0.03), one.name


def test_the_vocabulary_of_the_law_is_its_formulas() -> None:
    """33 million other parameters have 3,145,728 of vocabulary by the derivative."""
    low, high = answer.vocabulary_of_law(33e6, 512)
    assert min(abs(one - 3_145_728 / 512) for one in (low, high)) < 1.0
    assert 0.7 < low / high <= 1.0


BLOCKS = 12 * 16 * 2048**2
GIVEN = Network("Your shape", 16, 2048, BLOCKS, BLOCKS + 2 * 32000 * 2048, VOCAB_32K)


def test_a_given_shape_of_another_size_is_told_with_its_own() -> None:
    text = text_of(answered(1.3e9, given=GIVEN))
    assert "has 936 million where 1.3 billion was asked (-28%)" in text


def _one_line(found: answer.ShapeAnswer) -> str:
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


def test_few_tokens_are_told_with_who_decides_and_what_more_of_them_change() -> None:
    """Before, 26 layers stood below an interval of 3 to 9 without a word."""
    few, more = (answered(1e8, tokens, Counting(vocab_size=8000)) for tokens in (2e9, 3e10))
    said = _one_line(few)
    low, high = ends(more.best)
    assert (
        "Below 10 billion tokens the runs of Bian et al. 2025 decide alone; at 30 billion the best depth would be "
        f"{more.best.depth:.0f} layers ({low} to {high}). The 26 layers of Levine et al. 2020, table 4a lie outside of"
    ) in said
    assert as_json(few)["with_more_tokens"]["depth"] == more.best.depth
    assert "decide alone" not in _one_line(more)
    assert as_json(more)["with_more_tokens"] is None


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


POWERS = st.floats(0.2, 0.6)


@settings(max_examples=30)
@given(POWERS, POWERS, st.floats(1e18, 1e22))
def test_a_law_of_losses_has_its_least_loss_at_the_size_that_it_names(
    alpha: float, beta: float, flops: float
) -> None:
    factors = (400.0, 900.0)
    size = allocation.law_of_losses("x", (alpha, beta), factors, (1.0, 2.0)).size(flops)

    def loss(of: float) -> float:
        return factors[0] * of**-alpha + factors[1] * (flops / (allocation.FLOPS_A_PARAMETER * of)) ** -beta

    assert loss(size) < min(loss(0.9 * size), loss(1.1 * size))


def test_published_laws_say_what_their_papers_say() -> None:
    """Besiroglu et al. 2024: about 20 tokens a parameter at Chinchilla's 5.76e23 FLOPs, 70 billion parameters.

    DeepSeek LLM (2024), section 3.2: M = 0.1715 C^0.5243 FLOPs a token, of which 6 are a parameter's.
    """
    refitted, deepseek = allocation.PUBLISHED
    assert 60e9 < refitted.size(5.76e23) < 80e9
    assert deepseek.size(1e20) == pytest.approx(
        0.1715 * 1e20**0.5243 / allocation.FLOPS_A_PARAMETER, rel=0.001
    )


def test_no_other_size_of_the_same_flops_loses_less() -> None:
    """By the mean of the draws, with the best depth of each size."""
    found = allocation.public_allocation(VOCAB_32K, 1e20, 0.005)
    (least, most), low, high = found.flat, found.low, found.high
    assert low < least < found.size < most < high
    used = allocation.FLOPS_A_PARAMETER * found.size * found.tokens
    assert 1.0 < used / 1e20 < 1.2  # the embedding is not multiplied


@pytest.mark.parametrize("flops", [1e17, 1e23])
def test_beyond_the_evidence_only_laws_tell(flops: float) -> None:
    found = allocation.public_allocation(VOCAB_32K, flops, 0.005)
    assert found.low is None
    assert found.size == pytest.approx(math.exp(np.mean([math.log(law.size(flops)) for law in found.laws])))
    assert "the laws' mean" in " ".join(allocation.allocation_text(found).split())


def test_a_law_is_found_again_from_its_losses() -> None:
    sizes, ratios = np.meshgrid(np.geomspace(7e7, 2e9, 6), [20.0, 40.0, 160.0])
    runs = pd.DataFrame({"total_params": sizes.ravel(), "tokens": (sizes * ratios).ravel(), "told": 0.01})
    loss = 1.8 + 480.0 * runs["total_params"] ** -0.35 + 2100.0 * runs["tokens"] ** -0.37
    found = allocation_law(runs.assign(loss=loss + 0.01), "x")
    true = allocation.law_of_losses("x", (0.35, 0.37), (480.0, 2100.0), found.flops)
    assert found.exponent == pytest.approx(true.exponent, abs=0.01)
    assert found.size(1e20) == pytest.approx(true.size(1e20), rel=0.02)


def test_a_budget_in_flops_or_hours_has_an_answer(tmp_path: Path) -> None:
    by_flops = json_of("shape", "--flops", "2.7648e20", "--vocab", "32k", cwd=tmp_path)
    hours = ("--hours", 24, "--gpus", 8, "--flops-per-gpu", "4e14", "--vocab", "32k")
    by_hours = json_of("shape", *hours, cwd=tmp_path)
    assert by_flops == by_hours
    assert by_flops["size"] == by_flops["budget"]["size"]
    assert by_flops["tokens"] == by_flops["budget"]["tokens"]
    assert by_flops["best"]["depth"] >= 20


ASKED_FOR = ("350M", "--vocab", "32k", "--tokens", "30B")


def built_params(folder: Path) -> int:
    """Parameters of the model that transformers builds by a config.json, without memory."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder))
    assert [type(model).__name__] == model.config.architectures
    return int(sum(one.numel() for one in model.parameters()))


@pytest.mark.parametrize(
    "options",
    [
        ("--format", "hf"),
        ("--format", "hf", "--kv-heads", 4, "--tied", "--context", 4096),
        ("--format", "hf", "--block", "gpt2", "--tied", "--context", 1024),
        ("--format", "nanochat"),
        ("--format", "nanochat", "--kv-heads", 2, "--depth", 16),
    ],
)
def test_transformers_builds_the_config_in_the_size_that_was_asked(
    tmp_path: Path, options: tuple[object, ...]
) -> None:
    (tmp_path / "config.json").write_text(
        output_of("shape", *ASKED_FOR, *options, cwd=tmp_path), encoding="utf-8"
    )
    near = 0.02 if "hf" in options else 0.08  # nanochat's width alone makes the size, in steps of 64
    assert built_params(tmp_path) == pytest.approx(350e6, rel=near)


@given(st.sampled_from([6, 12, 24, 48]), st.floats(3e7, 3e9), st.sampled_from([None, 4]))
def test_torchtitan_makes_the_feed_forward_width_again(depth: int, size: float, kv_heads: int | None) -> None:
    """`models/llama3/model/args.py` and `model.py: FeedForward` of pytorch/torchtitan at 183f6fce."""
    shape = shape_for("torchtitan", size, depth, Counting(SizeAxis.BLOCK, 32000, kv_heads=kv_heads))
    call = ast.parse(config_of(shape, "torchtitan", 2048), mode="eval").body
    assert isinstance(call, ast.Call)
    args = {word.arg: ast.literal_eval(word.value) for word in call.keywords}
    fields = "dim n_layers n_heads n_kv_heads vocab_size multiple_of ffn_dim_multiplier max_seq_len"
    assert set(args) <= {*fields.split()}
    hidden = int(args["ffn_dim_multiplier"] * int(2 * 4 * args["dim"] / 3))
    step = args["multiple_of"]
    assert step * ((hidden + step - 1) // step) == shape.hidden_width
    assert (args["dim"], args["n_layers"], args["n_heads"]) == (shape.width, shape.depth, shape.heads)


@given(st.sampled_from([6, 12, 24]), st.floats(3e7, 3e9), st.integers(2, 8))
def test_nanochat_s_heads_are_shared_out_among_its_heads_of_keys(
    depth: int, size: float, kv_heads: int
) -> None:
    shape = shape_for("nanochat", size, depth, Counting(vocab_size=32000, kv_heads=kv_heads))
    assert shape.heads % kv_heads == 0
    assert shape.heads * shape.attention_dim == shape.width


def test_litgpt_has_the_fields(tmp_path: Path) -> None:
    """`litgpt/config.py: Config` of Lightning-AI/litgpt at 0006c973, of which it reads a model_config.yaml."""
    config = yaml.safe_load(output_of("shape", *ASKED_FOR, "--format", "litgpt", "--depth", 24, cwd=tmp_path))
    fields = (
        "name block_size vocab_size padded_vocab_size n_layer n_embd n_head n_query_groups head_size "
        "intermediate_size rotary_percentage parallel_residual bias norm_class_name mlp_class_name"
    )
    assert set(config) == {*fields.split()}
    d, queries, keys = config["n_embd"], config["n_head"], config["n_query_groups"]
    block = d * config["head_size"] * 2 * (queries + keys) + 3 * d * config["intermediate_size"]
    assert config["n_layer"] * block + 2 * config["padded_vocab_size"] * d == pytest.approx(350e6, rel=0.01)
    assert config["parallel_residual"] is config["bias"] is False


def test_a_budget_has_a_config_too(tmp_path: Path) -> None:
    found = json.loads(
        output_of("shape", "--flops", "1e20", "--vocab", "32k", "--format", "hf", cwd=tmp_path)
    )
    assert found["num_hidden_layers"] > 20
