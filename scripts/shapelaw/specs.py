"""What the specs of all kinds of runs share: how they are named, and what is wrong with their numbers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any


def digest_of(spec: Mapping[str, Any]) -> str:
    """A hash of plain JSON values, whatever their order."""
    return hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()[:16]


def below_one(numbers: Mapping[str, int]) -> list[str]:
    """A sentence for every number that is below 1."""
    return [f"{name} is {value}; it must be at least 1." for name, value in numbers.items() if value < 1]


def schedule_problems(learning_rate: float, warmup: float) -> list[str]:
    """A sentence where Adam's peak rate is not positive or the warm-up no share of the steps."""
    if learning_rate > 0 and 0 <= warmup < 1:
        return []
    return [f"learning_rate {learning_rate} must be above 0 and warmup {warmup} in [0, 1)."]
