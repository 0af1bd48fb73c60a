"""Configs that can't be run: each problem is told once, by its key, with what would be right (mistakes.yaml)."""

from typing import Any

import pytest
import yaml
from shipped import problems_of
from small import REPOSITORY

CASES = yaml.safe_load((REPOSITORY / "tests" / "settings" / "mistakes.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("config", "says"),
    [(case["config"], case["says"]) for cases in CASES.values() for case in cases],
    ids=lambda value: None if isinstance(value, dict) else str(value)[:60],
)
def test_all_that_is_wrong_with_a_config_is_told(config: dict[str, Any], says: str | list[str]) -> None:
    expected = [says] if isinstance(says, str) else says
    first, *lines = problems_of(**config).replace(str(REPOSITORY), "PROJECT").splitlines()
    assert first == f"The config has {len(expected)} problem{'s' if len(expected) > 1 else ''}:"
    for line, whole in zip(lines, expected, strict=True):
        beginning = whole.removesuffix(" …")
        assert line.startswith(f"  - {beginning}") if beginning != whole else line == f"  - {whole}"
