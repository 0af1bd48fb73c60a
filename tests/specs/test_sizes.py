"""Sizes as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapelaw.specs.sizes import UNITS, size_of


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1.3B", 1.3e9),
        ("300m", 3e8),
        ("60k", 6e4),
        ("1T", 1e12),
        ("6e7", 6e7),
        (" 124,439,808 ", 124_439_808.0),
    ],
)
def test_a_size_is_read_as_it_is_said(text: str, size: float) -> None:
    assert size_of(text) == size


@given(st.integers(1, 999), st.sampled_from(sorted(UNITS)))
def test_every_unit_multiplies(number: int, unit: str) -> None:
    assert size_of(f"{number}{unit}") == size_of(f"{number}{unit.upper()}") == number * UNITS[unit]


@pytest.mark.parametrize("text", ["", "B", "1.3X", "many", "0", "-1e9", "nan", "inf"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - float's own message, or ours
        size_of(text)
