"""What is not a shape of Llama's or of printed blocks, in a sentence each."""

from typing import Any

import pytest

from shapelaw.specs.shapes import shape_problems

LLAMA = {"block": "llama"}
PRINTED = {"block": "printed"}


@pytest.mark.parametrize(
    ("sizes", "options", "sentence"),
    [
        (
            (2, 90, 2, 257, 128),
            LLAMA,
            "the dimension of a head is 45, and rotary positions turn its numbers in pairs: take an even one "
            "(width 88 or 92 with 2 heads or, where heads is {dim: 45}, an even dim)",
        ),
        ((2, 8, 2, 257, 8), {**LLAMA, "attention_dim": 3}, "take an even one (attention_dim 4 with 2 heads)"),
        (
            (2, 16, 4, 257, 8),
            {**LLAMA, "kv_heads": 3},
            "kv_heads 3 does not divide 4 heads; use one of 1, 2, 4",
        ),
        ((2, 16, 4, 257, 8), {**LLAMA, "kv_heads": 0}, "kv_heads is 0; it must be at least 1"),
        ((2, 16, 4, 257, 8), {"kv_heads": 2}, "kv_heads is 2 and block is gpt2; set block: llama"),
        ((2, 16, 4, 257, 8), {"block": "lama"}, "block is 'lama'; there are gpt2, llama and printed"),
        ((2, 16, 4, 257, 8), {**LLAMA, "positional_rank": 4}, "block is llama, which has rotary positions"),
        ((2, 16, 4, 257, 8), {**LLAMA, "attention_degree": 3}, "block is llama, which has softmax attention"),
        ((2, 16, 4, 257, 8), {**LLAMA, "gelu": "erf"}, "gelu is erf and block is llama, which has SwiGLU"),
        (
            (2, 16, 4, 257, 8),
            {**PRINTED, "kv_heads": 2},
            "kv_heads is 2 and block is printed; set block: llama",
        ),
        (
            (2, 16, 4, 257, 8),
            {**PRINTED, "gelu": "erf"},
            "gelu is erf and block is printed, which has ReLU; leave it out, or set block: gpt2",
        ),
        (
            (2, 16, 4, 257, 8),
            {**PRINTED, "attention_degree": 3},
            "block is printed, which has softmax attention",
        ),
        ((2, 16, 4, 257, 8), {"base_attention_dim": 4}, "base_attention_dim is set without base_width"),
        ((2, 16, 4, 257, 8), {"base_width": 0}, "base_width is 0; it must be at least 1"),
        ((2, 16, 4, 257, 8), {"tied": True, "embedding_rank": 4}, "a classifier that is the token embedding"),
    ],
)
def test_what_is_wrong_with_a_block_is_said(
    sizes: tuple[int, ...], options: dict[str, Any], sentence: str
) -> None:
    (problem,) = shape_problems(*sizes, **options)
    assert sentence in problem
