"""Two depths compared at equal size without a fitted curve."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from loss_surfaces import curve_of

from shapelaw.fits.curves import loss_curves
from shapelaw.fits.gaps import gaps_of
from shapelaw.fits.noise import Noise, WidthNoise

ERR = 0.001  # of every loss of curve_of
NOISE = Noise(ERR, math.inf)


def test_networks_of_equal_size_are_compared_as_they_stand() -> None:
    """100 x 2 layers of width 100 / sqrt 2 and so on: every size of one depth is a size of the other."""
    widths = np.array([100.0, 200.0, 400.0])
    gaps = gaps_of(curve_of(6, widths, [4.0, 3.0, 2.0]), curve_of(12, widths / math.sqrt(2), [4.1, 3.0, 1.9]))
    assert gaps.width.tolist() == [100, 200, 400]
    assert gaps.deeper_width == pytest.approx(widths / math.sqrt(2))
    assert gaps.deeper_by == pytest.approx([-0.1, 0.0, 0.1])
    assert gaps.err == pytest.approx([ERR * math.sqrt(2)] * 3)
    assert gaps.better(NOISE).tolist() == [-1, 0, 1]


def test_sizes_that_the_deeper_depth_does_not_reach_are_left_out() -> None:
    gaps = gaps_of(curve_of(1, [16, 64, 90, 128], [4.0, 3.0, 2.5, 2.0]), curve_of(2, [46, 90], [3.0, 2.0]))
    assert gaps.width.tolist() == [64, 90, 128]
    assert gaps.deeper_width.tolist() == [46, 46, 90]
    between = math.log(2 * 46**2), math.log(2 * 90**2)  # two points of two layers, and the line through them
    at = np.array([math.log(width**2) for width in (64, 90, 128)])
    assert gaps.deeper_loss == pytest.approx(3.0 - (at - between[0]) / (between[1] - between[0]))
    assert gaps.deeper_loss[-1] < 2.0  # 128 of one layer is 1% larger than 90 of two


def test_without_noise_nothing_is_significant() -> None:
    runs = pd.DataFrame(
        {"depth": [1, 1, 2, 2], "width": [64, 128, 46, 90], "seed": 0, "loss": [4.0, 3.0, 9.0, 1.0]}
    )
    curves = loss_curves(runs, None)
    gaps = gaps_of(curves[1], curves[2])
    assert np.isnan(gaps.err).all()
    assert gaps.better(None).tolist() == [0, 0]


@given(st.floats(-0.01, 0.01), st.floats(0.1, 3.0))
def test_a_power_law_has_the_gap_that_was_put_in(gap: float, slope: float) -> None:
    """Between sizes the error of a straight line in log size is that of the power law's curvature, no more."""
    shallow, deep = np.geomspace(32, 256, 13), np.geomspace(22, 184, 13)

    def law(depth: int, width: np.ndarray) -> np.ndarray:
        return slope * (12 * depth * width**2 / 12_288) ** -0.15

    found = gaps_of(curve_of(1, shallow, law(1, shallow)), curve_of(2, deep, law(2, deep) - gap))
    step = math.log(deep[1] / deep[0]) * 2
    curvature = slope * 0.15**2 * step**2 / 8
    assert found.deeper_by == pytest.approx(np.full(len(found.width), gap), abs=3 * curvature + 1e-12)


def test_each_gap_has_the_noise_of_its_widths() -> None:
    """A loss difference of 3 sigma among wide networks, whose noise is known worse, is not significant."""
    noise = WidthNoise(0.02, 9.0, -1.0, 0.5, middle=32.0, middle_std=0.01, lowest=16.0, highest=256.0)
    runs = pd.DataFrame(
        [(depth, w, 0, 2.0 - 0.1 * depth) for depth in (1, 2) for w in (16, 32, 64, 256)],
        columns=["depth", "width", "seed", "loss"],
    )
    shallow, deep = loss_curves(runs, noise).values()
    assert shallow.loss_err == pytest.approx([0.02, 0.01, 0.005, 0.00125])
    gaps = gaps_of(shallow, deep)
    known = noise.threshold_at(gaps.width, gaps.deeper_width)
    assert (known >= noise.threshold()).all()
    assert gaps.better(noise).tolist() == (gaps.z > known).astype(int).tolist()
    assert gaps.better(noise).tolist() != gaps.better(Noise(noise.std, noise.dof)).tolist()
