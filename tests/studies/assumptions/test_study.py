"""What is wrong with the keys of the check of assumptions."""

from typing import Any

import pytest
from shipped import problems_of


@pytest.mark.parametrize(
    ("changes", "sentences"),
    [
        (
            {"assumptions": {"images": "/nowhere"}},
            ["assumptions.images is /nowhere, which is not a folder; leave it out"],
        ),
        (
            {"assumptions": {"positions": "rotary"}},
            ["assumptions.positions", "'rotary'", "'learned' or 'sinusoidal'"],
        ),
        (
            {"assumptions": {"source": "wikki"}},
            ["assumptions.source: the source 'wikki' has an unknown kind", "did you mean 'wiki'?"],
        ),
    ],
)
def test_each_mistake_in_its_keys_is_a_sentence(changes: dict[str, Any], sentences: list[str]) -> None:
    said = problems_of(**changes)
    assert all(sentence in said for sentence in sentences), said
