"""Cases that stand in a YAML file beside their tests: what is given, and what is said of it."""

from typing import Any

import yaml
from small import REPOSITORY


def listed(file: str, section: str) -> list[tuple[Any, str]]:
    """The cases of a section of a file below tests/."""
    sections = yaml.safe_load((REPOSITORY / "tests" / file).read_text(encoding="utf-8"))
    return [(case["given"], case["says"]) for case in sections[section]]
