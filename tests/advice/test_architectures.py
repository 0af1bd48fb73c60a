"""Architectures out of numbers, rows and flags, and what is not one."""

import math

import pytest
from listed import listed

from shapelaw.advice.models.architectures import Architecture, architecture_of_row, make_architecture
from shapelaw.errors import UserError


def test_the_sizes_that_follow_from_others() -> None:
    assert make_architecture("GPT-3 2.7B", width=2560, vocab_size=50257, heads=32).attention_width == 2560
    assert make_architecture(
        "T5-11B", width=1024, vocab_size=32128, heads=128, attention_dim=128
    ).attention_width == (16 * 1024)
    assert make_architecture("x", width=8, vocab_size=5).attention_width is None


def test_a_patch_s_numbers_are_its_effective_vocabulary() -> None:
    """Vocabulary paper, section 2.1: V = M/N d_input; a patch of 16 x 16 colours has 768, as in section 6."""
    assert make_architecture("x", width=1280, patch=16, channels=3, image=224).vocabulary == 768
    assert make_architecture("x", width=1280, patch=16).vocabulary == 256


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
