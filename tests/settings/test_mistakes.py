"""Configs that can't be run: each problem is told once, by its key, with what would be right (mistakes.yaml)."""

from typing import Any

import pytest
from shipped import cases_of, check_told, problems_of
from small import REPOSITORY


@pytest.mark.parametrize(
    ("config", "says"), cases_of("settings/mistakes.yaml"), ids=lambda value: str(value)[:60]
)
def test_all_that_is_wrong_with_a_config_is_told(config: dict[str, Any], says: list[str]) -> None:
    first, *lines = problems_of(**config).replace(str(REPOSITORY), "PROJECT").splitlines()
    assert first == f"The config has {len(says)} problem{'s' if len(says) > 1 else ''}:"
    check_told([line.removeprefix("  - ") for line in lines], says)
