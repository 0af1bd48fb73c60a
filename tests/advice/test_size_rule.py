"""Sizes of shapes as a rule of depth and width."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapelaw.advice.own_runs.size_rule import size_rule
from shapelaw.specs.making import make_shape

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
