"""Which shapes a surface can be fitted to."""

import numpy as np
import pandas as pd
import pytest

from shapelaw.fits.curves import SizeAxis
from shapelaw.fits.surface import fit_surface
from shapelaw.fits.surface_shapes import Shapes, SurfaceStatus, shapes_of


def test_shapes_are_the_means_of_their_runs():
    runs = pd.DataFrame(
        {
            "depth": [2, 2, 4],
            "width": [8, 8, 8],
            "seed": [0, 1, 0],
            "loss": [3.0, 3.5, 2.0],
            "total_params": [9.0, 9.0, 12.0],
        }
    )
    shapes = shapes_of(runs, SizeAxis.BLOCK)
    assert shapes.size.tolist() == [12 * 2 * 64, 12 * 4 * 64]
    assert shapes.loss.tolist() == [3.25, 2.0]
    assert shapes.seeds.tolist() == [2.0, 1.0]
    assert shapes_of(runs, SizeAxis.TOTAL).size.tolist() == [9.0, 12.0]


def some(depth, width):
    depth, width = np.array(depth, dtype=float), np.array(width, dtype=float)
    size = 12.0 * depth * width**2
    return Shapes(depth, width, size, 3.0 - 0.1 * np.log(size), np.ones(len(depth)))


@pytest.mark.parametrize(
    ("shapes", "status", "words"),
    [
        (some([2, 4, 8], [64, 64, 64]), SurfaceStatus.TOO_FEW, "3 shapes, and a surface needs 8"),
        (
            some([2] * 5 + [4] * 5, range(64, 224, 16)),
            SurfaceStatus.NOT_IDENTIFIABLE,
            "fewer than three depths",
        ),
        (
            some([2, 3, 4, 6, 8, 12, 16, 24, 32], [32, 48, 64, 96, 128, 192, 256, 384, 512]),
            SurfaceStatus.NOT_IDENTIFIABLE,
            "on one line of log depth against log size",
        ),
    ],
)
def test_shapes_that_no_surface_can_be_fitted_to(shapes, status, words):
    surface = fit_surface(shapes, None)
    assert surface.status is status
    assert words in surface.message
    assert surface.forms == ()
