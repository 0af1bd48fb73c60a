"""Sentences about numbers that can't be trained with."""

import pytest

from shapelaw.specs.checks import below_one, schedule_problems


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
