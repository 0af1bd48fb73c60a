"""Sizes as people write them, the shapes of one size, and sizes as a rule of depth and width."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shapelaw.advice.answer.sizes import Counting, big, shape_of_size, size_of
from shapelaw.advice.own_runs.budgets import size_rule
from shapelaw.errors import UserError
from shapelaw.specs.making import make_shape
from shapelaw.specs.sizes import SizeAxis


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


@pytest.mark.parametrize("text", ["", "B", "1.3X", "many", "0", "-1e9", "nan", "inf"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - float's own message, or ours
        size_of(text)


countings = st.builds(
    Counting,
    st.sampled_from(list(SizeAxis)),
    st.sampled_from([257, 32_000, 50_257, 151_936]),
    st.booleans(),
    st.sampled_from(["llama", "gpt2"]),
    st.sampled_from([0, 2048]),
)


@given(st.floats(7.0, 11.5), st.floats(0.3, 5.0), countings)
@settings(max_examples=200, deadline=None)
def test_a_shape_has_its_size_to_two_percent_and_is_one_that_hardware_likes(
    log_size: float, log_depth: float, counting: Counting
) -> None:
    size, depth = 10**log_size, max(1, round(math.exp(log_depth)))
    if counting.width_at(size, depth) < 8:
        return
    found = shape_of_size(size, depth, counting)
    shape = found.shape
    assert found.size == counting.size(shape)
    assert shape.depth == depth
    assert shape.width % (64 if shape.width >= 1024 else 16 if shape.width >= 64 else 8) == 0
    assert shape.width == shape.heads * shape.attention_dim
    if shape.width >= 256:
        assert 64 <= shape.attention_dim <= 128
        assert shape.heads % 4 == 0
    if shape.width >= 128:
        # a step of the width is more than the feed-forward width can make up where most of the size is embedding
        assert found.fits or shape.block_params < 0.4 * size
    assert found.fits == (abs(found.off) <= 0.02)


@pytest.mark.parametrize("kv_heads", [1, 3, 4, 6, 8])
@pytest.mark.parametrize("depth", [6, 12, 24, 48])
def test_heads_of_keys_divide_the_heads_and_keep_the_size(kv_heads: int, depth: int) -> None:
    for size in (1.25e8, 7e8, 1.3e9, 7e9):
        found = shape_of_size(size, depth, Counting(vocab_size=32000, kv_heads=kv_heads))
        shape = found.shape
        assert shape.heads % kv_heads == shape.heads % 4 == 0
        assert found.fits
        assert found.size == shape.total_params
        assert shape.kv_heads == kv_heads


def test_heads_of_keys_that_divide_no_heads_are_a_sentence() -> None:
    with pytest.raises(
        UserError, match=r"^3 heads of keys don't divide the heads of any width near 116, which"
    ):
        shape_of_size(2e6, 12, Counting(vocab_size=257, kv_heads=3))


@given(st.floats(20e6, 3e9), countings)
@settings(max_examples=60, deadline=None)
def test_the_real_width_spends_the_size_and_falls_with_depth(size: float, counting: Counting) -> None:
    widths = [counting.width_at(size, depth) for depth in (4, 8, 16, 32)]
    assert widths == sorted(widths, reverse=True)
    table, fixed, small = counting._terms()
    spent = [
        fixed + (table + small * depth) * width + 12 * depth * width**2
        for depth, width in zip((4, 8, 16, 32), widths, strict=True)
    ]
    assert spent == pytest.approx([size] * 4)


def test_all_parameters_are_those_of_the_shape() -> None:
    """GPT-2 itself, 12 layers of width 768 with 1,024 positions; Llama's at the same numbers has none of them."""
    gpt2 = make_shape(12, 768, 12, 50257, 1024, tied=True)
    counting = Counting(tied=True, block="gpt2", positions=1024)
    assert counting.size(gpt2) == gpt2.total_params == 124_439_808
    assert Counting(tied=True, block="gpt2").size(gpt2) == gpt2.total_params - 1024 * 768
    llama = make_shape(22, 2048, 32, 32000, 2048, block="llama", kv_heads=4, ff_width=5632)
    assert Counting(vocab_size=32000).size(llama) == llama.total_params == 1_100_048_384  # TinyLlama's
    assert Counting(SizeAxis.BLOCK).size(llama) == llama.block_params
    assert Counting(SizeAxis.FLOPS, vocab_size=32000).size(llama) == llama.block_params + 32000 * 2048


def test_an_embedding_in_two_factors_takes_its_own_share() -> None:
    counting = Counting(vocab_size=50257, rank=64)
    shapes = [shape_of_size(1e8, depth, counting) for depth in (6, 12, 24)]
    full = [shape_of_size(1e8, depth, Counting(vocab_size=50257)) for depth in (6, 12, 24)]
    assert all(one.fits for one in shapes)
    assert all(one.shape.width > other.shape.width for one, other in zip(shapes, full, strict=True))
    opt = Counting(vocab_size=50272, tied=True, positions=2050, block="gpt2", rank=512)  # OPT-350M's
    table, fixed, _ = opt._terms()
    assert fixed + table * 1024 == 50272 * 512 + 2 * 512 * 1024 + 2050 * 1024
    assert shape_of_size(331_196_416, 24, opt).fits
    with pytest.raises(UserError, match="has 51,463,168 parameters, and the budget is 1,000,000"):
        shape_of_size(1e6, 8, Counting(vocab_size=50257, rank=1024))


def test_numbers_are_written_as_people_say_them() -> None:
    assert [big(number) for number in (244_445_760, 318_828)] == ["244 million", "319,000"]


DEPTHS = np.array([2.0, 4.0, 8.0, 16.0, 3.0, 24.0])
WIDTHS = np.array([64.0, 512.0, 128.0, 256.0, 1024.0, 96.0])


@given(st.floats(4, 40), st.floats(0, 50), st.floats(0, 200_000))
def test_a_rule_is_found_again_and_inverted(blocks, layers, table):
    size = blocks * DEPTHS * WIDTHS**2 + layers * DEPTHS * WIDTHS + table * WIDTHS
    rule = size_rule(DEPTHS, WIDTHS, size)
    assert rule.exact
    np.testing.assert_allclose(rule.width(DEPTHS, size), WIDTHS, rtol=2e-2)


def test_standard_blocks_have_no_table_and_sizes_that_follow_no_rule_no_width():
    standard = size_rule(DEPTHS, WIDTHS, 12 * DEPTHS * WIDTHS**2)
    assert standard.blocks == pytest.approx(12.0)
    assert standard.table_share(DEPTHS, WIDTHS).max() < 1e-6
    rule = size_rule(DEPTHS, WIDTHS, np.array([5.0, 1.0, 3.0, 7.0, 2.0, 9.0]))
    assert not rule.exact
    assert np.isnan(rule.width([4.0], [5.0])).all()


def test_swiglu_s_rounded_widths_follow_a_rule():
    """13 d² of a block at width 16, 12 d² at 24: before, a small grid of Llama's blocks had no widths and no figure."""
    depths, widths = (np.ravel(one) for one in np.meshgrid([1, 2, 4], [16, 24, 32, 40]))
    shapes = [
        make_shape(*map(int, pair), 2, 257, 64, block="llama") for pair in zip(depths, widths, strict=True)
    ]
    sizes = [shape.block_params for shape in shapes]
    rule = size_rule(depths, widths, sizes)
    assert rule.exact
    np.testing.assert_allclose(rule.width(depths, sizes), widths, rtol=2.5e-2)
