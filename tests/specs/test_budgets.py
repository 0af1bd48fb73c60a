"""Steps of a budget, by hand."""

from dataclasses import replace

import pytest

from shapelaw.specs.budgets import Budget
from shapelaw.specs.runs import Run, Training, flat_run, run_from_dict, run_to_dict
from shapelaw.specs.shapes import make_shape

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
