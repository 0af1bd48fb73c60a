"""Architectures out of numbers, rows and flags, and what is not one."""

import math

import pytest
from small import listed

from shapelaw.advice.models.architectures import Architecture, architecture_of_row, make_architecture
from shapelaw.errors import UserError


def test_a_row_of_a_table_has_texts_floats_and_gaps() -> None:
    row = {
        "name": "x",
        "width": "64",
        "vocab_size": 257.0,
        "patch": math.nan,
        "heads": None,
        "depth": "",
        "note": "y",
    }
    assert architecture_of_row(row) == Architecture("x", 64, 257)


@pytest.mark.parametrize(("numbers", "sentence"), listed("advice/architectures.yaml", "architectures"))
def test_what_is_not_an_architecture_gets_one_sentence(numbers: dict[str, object], sentence: str) -> None:
    with pytest.raises(UserError) as caught:
        make_architecture("mine", **numbers)
    assert str(caught.value) == f"mine: {sentence}"
