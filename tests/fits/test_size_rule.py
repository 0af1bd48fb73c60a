"""Sizes as a function of depth and width, from sizes alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapelaw.fits.size_rule import size_rule

DEPTH = np.array([2.0, 4.0, 8.0, 16.0, 3.0, 24.0])
WIDTH = np.array([64.0, 512.0, 128.0, 256.0, 1024.0, 96.0])


@given(st.floats(4, 40), st.floats(0, 50), st.floats(0, 200_000))
def test_a_rule_is_found_again_and_inverted(blocks, layers, table):
    size = blocks * DEPTH * WIDTH**2 + layers * DEPTH * WIDTH + table * WIDTH
    rule = size_rule(DEPTH, WIDTH, size)
    assert rule.exact
    np.testing.assert_allclose(rule.width(DEPTH, size), WIDTH, rtol=2e-2)


def test_standard_blocks():
    rule = size_rule(DEPTH, WIDTH, 12 * DEPTH * WIDTH**2)
    assert rule.blocks == pytest.approx(12.0)
    assert rule.table_share(DEPTH, WIDTH).max() < 1e-6


def test_sizes_that_follow_no_rule_have_no_width():
    rule = size_rule(DEPTH, WIDTH, np.array([5.0, 1.0, 3.0, 7.0, 2.0, 9.0]))
    assert not rule.exact
    assert np.isnan(rule.width([4.0], [5.0])).all()
