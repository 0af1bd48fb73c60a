"""The shapes that a surface is fitted to, and whether they can tell a best depth at all."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt
import pandas as pd

from shapelaw.fits.curves import SIZE_COLUMNS, SizeAxis
from shapelaw.fits.line import Floats
from shapelaw.fits.noise import group_means
from shapelaw.fits.projection import standard_params
from shapelaw.fits.surface_forms import NARROW, Frame, quadratic

LEAST_SHAPES = 8
# the least standard deviation of log depth among shapes of one size; with less, depth is a function of size
APART = 0.1
CONSTANT = 1e-6  # losses that span less than this share of them don't vary


class SurfaceStatus(StrEnum):
    """The trust that a surface, or its answer about one size, deserves."""

    CONVERGED = "converged"
    DEEPER = "at a bound: deeper than the shapes"
    SHALLOWER = "at a bound: shallower than the shapes"
    NOT_IDENTIFIABLE = "not identifiable"
    TOO_FEW = "too few shapes"
    EXTRAPOLATED = "extrapolated"


@dataclass(frozen=True)
class Shapes:
    """The trained shapes: (n,) depths, widths, sizes, mean losses over seeds, and numbers of seeds."""

    depth: Floats
    width: Floats
    size: Floats
    loss: Floats
    seeds: Floats

    @property
    def x(self) -> Floats:
        return np.log(self.size)

    @property
    def z(self) -> Floats:
        return np.log(self.depth)

    def __len__(self) -> int:
        return len(self.depth)


def shapes_of(runs: pd.DataFrame, size: SizeAxis) -> Shapes:
    """The shapes of checked runs (`depth, width, seed, loss` and the column of `size`, see `check_runs`)."""
    column = SIZE_COLUMNS[size]
    if column not in runs and size is SizeAxis.BLOCK:
        runs = runs.assign(**{column: standard_params(runs["depth"], runs["width"])})
    means = group_means(runs, ["depth", "width"], also=[column])
    columns = ("depth", "width", column, "loss", "seeds")
    return Shapes(*(means[name].to_numpy(dtype=np.float64) for name in columns))


def why_no_surface(shapes: Shapes) -> tuple[SurfaceStatus, str] | None:
    """The status and the sentence of shapes that no surface can be fitted to; None if one can."""
    if len(shapes) < LEAST_SHAPES:
        text = f"{len(shapes)} shape{'' if len(shapes) == 1 else 's'}, and a surface needs {LEAST_SHAPES}"
        return SurfaceStatus.TOO_FEW, text
    if len(np.unique(shapes.depth)) < 3:
        text = "the shapes have fewer than three depths, and a best depth needs one on either side"
        return SurfaceStatus.NOT_IDENTIFIABLE, text
    if losses_constant(shapes.loss):
        return SurfaceStatus.NOT_IDENTIFIABLE, "the losses don't vary"
    order = 2 if np.ptp(shapes.x) > NARROW else 0
    powers = np.vander(shapes.x - shapes.x.mean(), order + 1)
    off = shapes.z - powers @ np.linalg.lstsq(powers, shapes.z, rcond=None)[0]
    if math.sqrt(float(off @ off) / max(len(shapes) - order - 1, 1)) < APART:
        text = (
            "all shapes lie on one line of log depth against log size, so that depth and size can't be told apart; "
            "train some sizes at other depths, half and twice as deep"
        )
        return SurfaceStatus.NOT_IDENTIFIABLE, text
    return None


def losses_constant(loss: npt.ArrayLike) -> bool:
    """True where (n,) losses span so little that they tell no shape from another."""
    losses = np.asarray(loss, dtype=np.float64)
    return bool(np.ptp(losses) < CONSTANT * np.abs(losses).max())


def spread_about_polynomial(shapes: Shapes) -> float:
    """Standard deviation of the losses about a polynomial of the second degree, in nats."""
    design = quadratic(Frame.of(shapes.x, shapes.z)).model.columns(np.zeros(0), shapes.x, shapes.z)
    off = shapes.loss - design @ np.linalg.lstsq(design, shapes.loss, rcond=None)[0]
    return float(np.sqrt(off @ off / max(len(off) - design.shape[1], 1)))
