"""Keys and digests of runs, budgets by hand, and numbers that can't be trained with."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small import listed

from shapelaw.specs.making import make_shape
from shapelaw.specs.runs import Budget, Run, Training, digest_of
from shapelaw.specs.shapes import Shape

TRAINING = Training(steps=100, batch_size=4)


def run_of(shape: Shape, seed: int = 0) -> Run:
    return Run("wiki", shape, TRAINING, seed)


@pytest.mark.parametrize(("options", "label"), listed("specs/labels.yaml", "decoders"))
def test_a_key_says_what_is_unusual_and_no_more(options: dict[str, dict[str, Any]], label: str) -> None:
    shape, recipe = (options.get(part, {}) for part in ("shape", "recipe"))
    plain = make_shape(6, 128, 2, 500, 64)
    run = Run("wiki", replace(plain, **shape), replace(TRAINING, **recipe), 0)
    assert run.label == f"wiki-V500-L6-d128-{label}-s0"
    assert run.key == f"{run.label}-{run.digest[:8]}"
    assert Run.from_dict(run.to_dict()) == run
    assert recipe.items() <= run.flat().items()
    larger = replace(run, training=replace(run.training, batch_size=8))
    assert (larger.label, larger.key != run.key) == (run.label, True)


@st.composite
def llama_shapes(draw: st.DrawFn) -> Shape:
    some = st.none() | st.integers(1, 9)
    return make_shape(
        draw(st.integers(1, 2)),
        8,
        2,
        300,
        16,
        draw(st.sampled_from([2, 4])),
        block="llama",
        kv_heads=draw(st.sampled_from([None, 1, 2])),
        tied=draw(st.booleans()),
        base_width=(base := draw(some)),
        base_attention_dim=base and draw(some),
    )


@st.composite
def gpt2_shapes(draw: st.DrawFn) -> Shape:
    some = st.none() | st.integers(1, 9)
    return make_shape(
        draw(st.integers(1, 2)),
        draw(st.sampled_from([4, 8])),
        2,
        draw(st.sampled_from([6, 300])),
        16,
        draw(st.sampled_from([2, 4, 5])),
        embedding_rank=draw(some),
        positional_rank=draw(some),
        ff_width=draw(st.none() | st.sampled_from([15, 16, 17])),
        redundant_rank=True,
    )


shapes = st.one_of(gpt2_shapes(), llama_shapes())


@given(shapes, shapes)
def test_other_shapes_have_other_keys_and_a_spec_is_read_back(one: Shape, other: Shape) -> None:
    assert (run_of(one).key == run_of(other).key) == (one == other)
    assert (run_of(one).digest == run_of(other).digest) == (one == other)
    assert Run.from_dict(run_of(one).to_dict()) == run_of(one)


specs = st.dictionaries(st.text(), st.integers() | st.text() | st.none() | st.floats(allow_nan=False))


@given(specs)
def test_it_does_not_depend_on_the_order(spec: dict[str, object]) -> None:
    assert digest_of(dict(reversed(spec.items()))) == digest_of(spec)
    assert digest_of({**spec, "one more": 0}) != digest_of(spec)


SHAPE = make_shape(2, 64, 2, 500, 128)


def test_the_steps_of_a_budget_follow_from_the_shape() -> None:
    tokens = 16 * 128
    assert Budget("steps", 4000).steps(SHAPE, 16) == 4000
    assert Budget("tokens_per_param", 20).steps(SHAPE, 16) == round(20 * SHAPE.total_params / tokens)
    assert Budget("tokens_per_block_param", 100).steps(SHAPE, 16) == round(100 * SHAPE.block_params / tokens)
    assert Budget("flops", 1e13).steps(SHAPE, 16) == round(1e13 / SHAPE.step_flops(16))
    wide = replace(SHAPE, width=128, attention_dim=64)
    assert Budget("tokens_per_param", 20).steps(wide, 16) > Budget("tokens_per_param", 20).steps(SHAPE, 16)
    assert Budget("flops", 1e13).steps(wide, 16) < Budget("flops", 1e13).steps(SHAPE, 16)
    assert Budget("flops", 1).steps(SHAPE, 16) == 1
    more_tokens = replace(SHAPE, vocab_size=2000)
    assert Budget("tokens_per_block_param", 100).steps(more_tokens, 16) == Budget(
        "tokens_per_block_param", 100
    ).steps(SHAPE, 16)


def test_a_budget_has_a_name_and_a_part_of_the_key() -> None:
    named = [
        (one.name, one.tag)
        for one in (
            Budget("steps", 4000),
            Budget("tokens_per_param", 2.5),
            Budget("tokens_per_block_param", 100),
            Budget("flops", 1e15),
        )
    ]
    assert named == [
        ("4,000 steps", ""),
        ("2.5 tokens per parameter", "2.5tpp"),
        ("100 tokens per block parameter", "100tpb"),
        ("1e+15 FLOPs", "1e15flops"),
    ]
