"""Counts by hand; what is not a shape, in a sentence each; the numbers that a patch embedding sees."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small import listed

from shapelaw.specs.making import HeadDim, ShapeError, make_shape, with_attention_degree
from shapelaw.specs.shapes import INPUTS, PATCHES, numbers_of_ids, swiglu_width


def test_gpt2_smalls_published_size() -> None:
    """GPT-2 small has 124,439,808 parameters with its tied classifier; ours is not tied."""
    shape = make_shape(depth=12, width=768, heads=12, vocab_size=50257, context_length=1024)
    assert shape.total_params - 50257 * 768 == 124_439_808
    assert shape.block_params == 12 * 12 * 768**2


def shape_problems(*sizes: Any, **options: Any) -> list[str]:
    """A sentence for each problem of `make_shape`'s arguments."""
    with pytest.raises(ShapeError) as error:
        make_shape(*sizes, **options)
    return error.value.problems


LLAMA = {"block": "llama"}


@pytest.mark.parametrize(("sizes", "sentence"), listed("specs/mistakes.yaml", "shapes"))
def test_what_is_wrong_is_said(sizes: dict[str, Any], sentence: str) -> None:
    (problem,) = shape_problems(**sizes)
    assert sentence in problem
    with pytest.raises(ValueError, match=re.escape(sentence)):
        make_shape(**sizes)


def test_heads_of_one_dimension_share_the_width() -> None:
    of_64 = HeadDim(64)
    shape = make_shape(2, 256, of_64, 257, 128, **LLAMA)
    assert (shape.heads, shape.attention_dim) == (4, 64)
    assert shape == make_shape(2, 256, 4, 257, 128, **LLAMA)
    assert shape_problems(2, 200, of_64, 257, 128) == [
        "width 200 is not divisible by heads of dimension 64; use width 192 or 256, or a number of heads"
    ]
    assert "use width 64," in shape_problems(2, 40, of_64, 257, 128)[0]
    assert "both set" in shape_problems(2, 64, of_64, 257, 128, 32)[0]


def test_llama_2_7bs_published_size() -> None:
    """Llama 2 7B (Touvron et al. 2023): 6,738,415,616 parameters, and 8/3 d rounded up to a multiple of 256."""
    ff_width = swiglu_width(4096, 256)
    assert ff_width == 11008
    shape = make_shape(32, 4096, 32, 32000, 4096, ff_width=ff_width, **LLAMA)
    assert shape.total_params == 6_738_415_616


def test_a_gated_network_has_as_many_weights_as_gpt2s() -> None:
    for width in range(24, 400, 4):
        gated, plain = (make_shape(2, width, 2, 257, 128, block=block) for block in ("llama", "gpt2"))
        assert 0 <= gated.block_params - plain.block_params < 2 * 3 * width * 8
        assert gated.hidden_width % 8 == 0


def test_the_printed_block_has_twelve_squares_of_the_width_and_two_norms() -> None:
    """Levine et al. 2020, section 2.1: "the parameter count for an entire layer is 12 d^2"."""
    shape = make_shape(6, 128, 2, 2000, 64, block="printed")
    assert shape.block_params == 6 * 12 * 128**2
    assert shape.total_params == shape.block_params + 6 * 4 * 128 + (2 * 2000 + 64) * 128
    assert shape.activation_bytes(1) < make_shape(6, 128, 2, 2000, 64).activation_bytes(1)


def test_ranks_above_full_are_shapes_where_they_are_meant() -> None:
    shape = make_shape(12, 680, 10, 2000, 128, embedding_rank=1080, positional_rank=1080, redundant_rank=True)
    assert shape.embedding_params == 1080 * (2000 + 680 + 128 + 680)


def test_the_feed_forward_width_of_t5_follows_the_attention() -> None:
    """T5-11B: d = 1,024, 128 heads of 128, d_ff = 65,536 (Raffel et al. 2020)."""
    shape = make_shape(24, 1024, 128, 32128, 512, attention_dim=128, ff_width=65536)
    assert shape.attention_ratio == 16
    assert shape.ff_width == 4 * shape.attention_width
    assert shape.block_params == 24 * (4 * 1024 * 16384 + 2 * 1024 * 65536)
    assert make_shape(2, 8, 2, 300, 16).hidden_width == 32
    assert make_shape(2, 129, 2, 100, 8, attention_dim=7).attention_width == 14


@given(st.integers(1, 6), st.integers(17, 60), st.sampled_from([1, 2, 4]), st.integers(2, 7))
def test_attention_of_another_degree_has_as_many_weights(
    depth: int, dim: int, heads: int, degree: int
) -> None:
    """A head's dimension is off by 1/2 at most: (k + 1) / (24 dim) of a block's weights, 2% from dim = 17 on."""
    softmax = make_shape(depth, dim * heads, heads, 300, 16)
    other = with_attention_degree(softmax, degree)
    assert abs(other.block_params / softmax.block_params - 1) <= 0.02
    assert (other.width, other.depth, other.heads) == (dim * heads, depth, heads)
    assert other.attention_degree == degree
    if degree == 3:
        assert other.total_params == softmax.total_params


def test_where_whole_dimensions_are_too_coarse_it_is_said() -> None:
    with pytest.raises(
        ValueError, match=r"degree 4 within 2% .* \(the nearest has 408 for 432\); take a larger width"
    ):
        with_attention_degree(make_shape(1, 6, 2, 300, 16), 4)


def test_every_patch_has_numbers_of_its_own() -> None:
    rows = numbers_of_ids()
    assert len(rows) == len({tuple(row) for row in rows}) == PATCHES + 1
    assert {len(row) for row in rows} == {INPUTS}
    assert {number for row in rows[1:] for number in row[:-1]} == {-1.0, 0.0, 1.0}
