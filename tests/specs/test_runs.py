"""Keys and digests of runs, budgets by hand, and numbers that can't be trained with."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapelaw.specs.runs import (
    LATER_OPTIONS,
    Budget,
    Run,
    Training,
    below_one,
    digest_of,
    flat_run,
    run_from_dict,
    run_to_dict,
    schedule_problems,
)
from shapelaw.specs.shapes import Shape, make_shape

TRAINING = Training(steps=100, batch_size=4)


def run_of(shape: Shape, seed: int = 0) -> Run:
    return Run("wiki", shape, TRAINING, seed)


def test_a_key_says_what_is_unusual_and_no_more() -> None:
    plain = make_shape(6, 128, 2, 500, 64)
    assert run_of(plain).label == "wiki-V500-L6-d128-H2-t100-s0"
    assert run_of(replace(plain, embedding_rank=16)).label == "wiki-V500-L6-d128-r16-H2-t100-s0"
    assert run_of(replace(plain, embedding_rank=128)).label == "wiki-V500-L6-d128-r128-H2-t100-s0"
    assert run_of(replace(plain, embedding_rank=200)).label == "wiki-V500-L6-d128-r200-H2-t100-s0"
    wide = make_shape(6, 128, 2, 500, 64, attention_dim=128, ff_width=1024)
    assert run_of(wide).label == "wiki-V500-L6-d128-H2-a128-f1024-t100-s0"


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({"learning_rate": 0.004}, "lr0.004"),
        ({"weight_decay": 0.0}, "wd0"),
        ({"dropout": 0.1}, "do0.1"),
        ({"schedule": "constant"}, "constant"),
        ({"learning_rate": 3e-5, "weight_decay": 0.1, "schedule": "constant"}, "lr0.00003-wd0.1-constant"),
    ],
)
def test_a_key_shows_the_recipe_where_it_is_not_the_usual_one(changes: dict[str, Any], shown: str) -> None:
    run = run_of(make_shape(6, 128, 2, 500, 64))
    other = replace(run, training=replace(TRAINING, **changes))
    assert other.label == run.label.replace("-t100", f"-{shown}-t100")


def test_a_key_is_the_label_and_eight_digits_of_the_digest() -> None:
    run = run_of(make_shape(6, 128, 2, 500, 64))
    larger = replace(run, training=replace(TRAINING, batch_size=8))
    assert larger.label == run.label
    for one in (run, larger):
        assert one.key == f"{one.label}-{one.digest[:8]}"
    assert larger.key != run.key


def test_a_key_says_which_block_it_is() -> None:
    plain = make_shape(6, 128, 4, 500, 64, block="llama")
    assert run_of(plain).label == "wiki-V500-L6-d128-H4-llama-t100-s0"
    printed = run_of(make_shape(6, 128, 4, 500, 64, block="printed"))
    assert printed.label == "wiki-V500-L6-d128-H4-printed-t100-s0"
    assert run_from_dict(run_to_dict(printed)) == printed
    assert (
        run_of(replace(plain, kv_heads=2, tied=True)).label == "wiki-V500-L6-d128-H4-llama-kv2-tied-t100-s0"
    )
    assert run_of(replace(plain, base_width=64)).label == "wiki-V500-L6-d128-H4-llama-mu64-t100-s0"
    scaled = replace(plain, base_width=64, base_attention_dim=16)
    assert run_of(scaled).label == "wiki-V500-L6-d128-H4-llama-mu64a16-t100-s0"


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
def test_other_shapes_have_other_keys(one: Shape, other: Shape) -> None:
    assert (run_of(one).key == run_of(other).key) == (one == other)
    assert (run_of(one).digest == run_of(other).digest) == (one == other)


@given(shapes)
def test_a_spec_is_read_back(shape: Shape) -> None:
    assert run_from_dict(run_to_dict(run_of(shape))) == run_of(shape)


def test_options_that_are_not_used_are_not_in_a_spec() -> None:
    """So that runs from before an option was there keep their digests."""
    values = run_to_dict(run_of(make_shape(6, 128, 2, 500, 64)))["shape"]
    assert not set(LATER_OPTIONS) & values.keys()


def test_another_parametrization_makes_another_run_and_the_usual_one_keeps_its_digest() -> None:
    """A digest of before there was a choice."""
    run = Run("wiki", make_shape(2, 16, 2, 500, 64), Training(800, 16), 0)
    other = replace(run, training=replace(run.training, parametrization="completep"))
    assert run.digest == "83c0b9d8b5b1498e"
    assert "parametrization" not in run_to_dict(run)["training"]
    assert other.digest != run.digest
    assert other.label == run.label.replace("-t800", "-completep-t800")
    assert run_from_dict(run_to_dict(other)) == other
    assert flat_run(other)["parametrization"] == "completep"


def test_the_exact_gelu_makes_another_run_and_the_usual_one_keeps_its_digest() -> None:
    for degree, digest in ((None, "83c0b9d8b5b1498e"), (3, "d66afe003dd2a798")):
        shape = make_shape(2, 16, 2, 500, 64, attention_degree=degree)
        run = Run("wiki", shape, Training(800, 16), 0)
        exact = replace(run, shape=replace(shape, gelu="erf"))
        assert run.digest == digest
        assert exact.digest != digest
        assert exact.label == run.label.replace("-t800", "-erf-t800")
        assert [run_from_dict(run_to_dict(one)) for one in (run, exact)] == [run, exact]


specs = st.dictionaries(st.text(), st.integers() | st.text() | st.none() | st.floats(allow_nan=False))


@given(specs)
def test_it_does_not_depend_on_the_order(spec: dict[str, object]) -> None:
    assert digest_of(dict(reversed(spec.items()))) == digest_of(spec)
    assert digest_of({**spec, "one more": 0}) != digest_of(spec)


def test_it_is_the_same_for_ever() -> None:
    """Of sha256('{"seed": 0, "study": "depth_width"}'), the first 16 digits."""
    assert digest_of({"study": "depth_width", "seed": 0}) == "ef2a19544a589929"


def test_every_number_below_one_is_told() -> None:
    assert below_one({"heads": 1, "steps": 0, "width": -2}) == [
        "steps is 0; it must be at least 1.",
        "width is -2; it must be at least 1.",
    ]


@pytest.mark.parametrize(
    ("learning_rate", "warmup", "right"),
    [(1e-3, 0.0, True), (1e-3, 0.99, True), (0.0, 0.1, False), (1e-3, 1.0, False), (1e-3, -0.1, False)],
)
def test_a_rate_is_positive_and_a_warm_up_a_share_of_the_steps(
    learning_rate: float, warmup: float, right: bool
) -> None:
    said = schedule_problems(learning_rate, warmup)
    assert (said == []) == right
    assert all(f"learning_rate {learning_rate}" in sentence for sentence in said)
    assert all(f"warmup {warmup}" in sentence for sentence in said)


SHAPE = make_shape(2, 64, 2, 500, 128)


def test_the_steps_of_a_budget_follow_from_the_shape() -> None:
    tokens = 16 * 128
    assert Budget("steps", 4000).steps(SHAPE, 16) == 4000
    assert Budget("tokens_per_param", 20).steps(SHAPE, 16) == round(20 * SHAPE.total_params / tokens)
    assert Budget("flops", 1e13).steps(SHAPE, 16) == round(1e13 / SHAPE.step_flops(16))
    wide = replace(SHAPE, width=128, attention_dim=64)
    assert Budget("tokens_per_param", 20).steps(wide, 16) > Budget("tokens_per_param", 20).steps(SHAPE, 16)
    assert Budget("flops", 1e13).steps(wide, 16) < Budget("flops", 1e13).steps(SHAPE, 16)
    assert Budget("flops", 1).steps(SHAPE, 16) == 1


def test_a_budget_has_a_name_and_a_part_of_the_key() -> None:
    named = [
        (one.name, one.tag)
        for one in (Budget("steps", 4000), Budget("tokens_per_param", 2.5), Budget("flops", 1e15))
    ]
    assert named == [
        ("4,000 steps", ""),
        ("2.5 tokens per parameter", "2.5tpp"),
        ("1e+15 FLOPs", "1e15flops"),
    ]


@pytest.mark.parametrize("schedule", ["cosine", "constant"])
@pytest.mark.parametrize("budget", [None, Budget("flops", 1e15)])
def test_runs_say_their_budget_and_schedule_where_they_have_one_of_their_own(
    budget: Budget | None, schedule: str
) -> None:
    run = Run("wiki", SHAPE, Training(800, 16, schedule=schedule), 0, budget=budget)  # type: ignore[arg-type]
    values = run_to_dict(run)
    assert run_from_dict(values) == run
    assert ("budget" in values, "schedule" in values["training"]) == (
        budget is not None,
        schedule != "cosine",
    )
    expected = [
        *(["constant"] if schedule == "constant" else []),
        *(["1e15flops"] if budget else []),
        "t800",
        "s0",
    ]
    assert run.label == "-".join(["wiki-V500-L2-d64-H2", *expected])
    assert flat_run(run).get("budget") == (None if budget is None else "1e+15 FLOPs")
    assert flat_run(run).get("schedule") == (None if schedule == "cosine" else schedule)
