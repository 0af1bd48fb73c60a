"""Checks of a spec's numbers that several kinds of run share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


def below_one(numbers: Mapping[str, int]) -> list[str]:
    """A sentence for every number that is below 1."""
    return [f"{name} is {value}; it must be at least 1." for name, value in numbers.items() if value < 1]


def schedule_problems(learning_rate: float, warmup: float) -> list[str]:
    """A sentence where Adam's peak rate isn't positive or the warm-up isn't a share of the steps in [0, 1)."""
    if learning_rate > 0 and 0 <= warmup < 1:
        return []
    return [f"learning_rate {learning_rate} must be above 0 and warmup {warmup} in [0, 1)."]


@dataclass(frozen=True)
class KeyDoc:
    """The meaning, unit and bounds of a spec's field, for the section of the config that it is read from.

    Attributes:
        description: a sentence or two.
        unit: the unit of a number.
        ge, gt, lt, le: bounds: at least, above, below, at most.
    """

    description: str
    unit: str = ""
    ge: float | None = None
    gt: float | None = None
    lt: float | None = None
    le: float | None = None
