"""Architectures out of numbers, rows and flags, and what is not one."""

import math

import pytest

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


@pytest.mark.parametrize(
    ("numbers", "sentence"),
    [
        ({"vocab_size": 5}, "mine: the width is missing; every architecture needs one."),
        ({"width": -3, "vocab_size": 5}, "mine: width is -3; it must be at least 1."),
        (
            {"width": 8, "vocab_size": 5, "embedding_rank": 0},
            "mine: embedding_rank is 0; it must be at least 1.",
        ),
        ({"width": "wide", "vocab_size": 5}, "mine: width is 'wide'; it must be a whole number."),
        ({"width": 8.5, "vocab_size": 5}, "mine: width is 8.5; it must be a whole number."),
        ({"width": math.inf, "vocab_size": 5}, "mine: width is inf; it must be a whole number."),
        (
            {"width": 8},
            "mine: its input is either a vocabulary (vocab_size) or patches (patch); give one of them.",
        ),
        (
            {"width": 8, "vocab_size": 5, "patch": 2},
            "mine: its input is either a vocabulary (vocab_size) or patches (patch); give one of them.",
        ),
        (
            {"width": 8, "patch": 15, "image": 224},
            "mine: a patch of 15 pixels does not divide an image of 224; the nearest image that it divides has 225.",
        ),
        (
            {"width": 8, "vocab_size": 5, "channels": 3},
            "mine: image and channels belong to patches; give patch too, or leave them out.",
        ),
        (
            {"width": 8, "vocab_size": 5, "attention_dim": 4},
            "mine: attention_dim is the dimension of one head; give heads too.",
        ),
        (
            {"width": 8, "vocab_size": 5, "heads": 3},
            "mine: 3 heads do not divide a width of 8; give attention_dim, the dimension of one head.",
        ),
    ],
)
def test_what_is_not_an_architecture_gets_one_sentence(numbers: dict[str, object], sentence: str) -> None:
    with pytest.raises(UserError) as caught:
        make_architecture("mine", **numbers)
    assert str(caught.value) == sentence
