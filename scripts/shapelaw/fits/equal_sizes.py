"""How much the losses of two sets of networks differ at equal size and depth, as one number and size by size.

Each depth's curve is taken at the sizes of the other set within the range that both cover. A loss at a size is linear
in the losses of the networks around it, so the mean over sizes is too, and its error follows from theirs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats  # type: ignore[import-untyped]

from shapelaw.fits.curves import Curve
from shapelaw.fits.line import Floats
from shapelaw.fits.noise import Noise, student_threshold
from shapelaw.specs.sizes import SAME_SIZE

EXACT = 1e-6  # in log size: rounding


@dataclass(frozen=True)
class Difference:
    """The other set's loss less the one's at (m,) sizes, each of one depth.

    Attributes:
        depth: (m,) depths.
        size: (m,) sizes, growing within a depth.
        one, other: (m,) losses.
        err: (m,) standard errors of `other - one`; NaN without a noise estimate, as are all errors.
        mean_err: standard error of the mean difference over all sizes, whose losses share networks.
        dof: degrees of freedom of the errors.
    """

    depth: npt.NDArray[np.int64]
    size: Floats
    one: Floats
    other: Floats
    err: Floats
    mean_err: float
    dof: float

    @property
    def value(self) -> Floats:
        """(m,) differences."""
        return self.other - self.one

    @property
    def mean(self) -> float:
        """The mean difference, every size counting alike; NaN without sizes."""
        return float(self.value.mean()) if len(self.size) else math.nan


def weights_at(curve: Curve, size: Floats) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """(m, n) weights of a depth's n losses in its loss at (m,) sizes, and where it reaches them.

    Linear in log size between neighbours, up to 10% beyond the ends; one network reaches its own size alone.
    """
    x, knots = np.log(size), curve.log_size
    count = len(knots)
    if count == 1:
        return np.ones((len(x), 1)), np.abs(x - knots[0]) <= EXACT
    right = np.clip(np.searchsorted(knots, x), 1, count - 1)
    share = (x - knots[right - 1]) / (knots[right] - knots[right - 1])
    weights, rows = np.zeros((len(x), count)), np.arange(len(x))
    weights[rows, right - 1], weights[rows, right] = 1.0 - share, share
    return weights, (x >= knots[0] - SAME_SIZE) & (x <= knots[-1] + SAME_SIZE)


def difference(
    one: Mapping[int, Curve], other: Mapping[int, Curve], noises: tuple[Noise | None, Noise | None]
) -> Difference:
    """The difference of two sets of curves, over the depths that both have.

    Args:
        noises: of either set; where they are equal, one estimate that both share.
    """
    depths, sizes, losses, errs = [], [], [], []
    variances = np.zeros(2)  # of the sum over sizes
    dofs = np.full(2, np.inf)  # of either set's noise, where it is known least
    for depth in sorted(set(one) & set(other)):
        pair = one[depth], other[depth]
        at = _own_sizes(*pair)
        found = [weights_at(curve, at) for curve in pair]
        inside = found[0][1] & found[1][1]
        weights = [rows[inside] for rows, _ in found]
        depths.append(np.full(int(inside.sum()), depth))
        sizes.append(at[inside])
        losses.append([w @ curve.loss for w, curve in zip(weights, pair, strict=True)])
        spread = [w**2 @ curve.loss_err**2 for w, curve in zip(weights, pair, strict=True)]
        errs.append(np.sqrt(spread[0] + spread[1]))
        variances += [
            float(w.sum(axis=0) ** 2 @ curve.loss_err**2) for w, curve in zip(weights, pair, strict=True)
        ]
        for side, (noise, curve) in enumerate(zip(noises, pair, strict=True)):
            if noise is not None:
                dofs[side] = min(dofs[side], float(noise.dof_at(curve.width).min()))
    count = sum(len(part) for part in sizes)
    if not count:
        empty = np.zeros(0)
        return Difference(np.zeros(0, np.int64), empty, empty, empty, empty, math.nan, math.nan)
    return Difference(
        np.concatenate(depths).astype(np.int64),
        np.concatenate(sizes),
        np.concatenate([pair[0] for pair in losses]),
        np.concatenate([pair[1] for pair in losses]),
        np.concatenate(errs),
        float(np.sqrt(variances.sum())) / count,
        _dof(variances, dofs, noises),
    )


def _own_sizes(one: Curve, other: Curve) -> Floats:
    """The sizes of both, equal ones once."""
    every: Floats = np.sort(np.concatenate([one.size, other.size]))
    apart = np.concatenate([[True], np.diff(np.log(every)) > EXACT])
    return np.asarray(every[apart], dtype=np.float64)


def _dof(variances: Floats, dofs: Floats, noises: tuple[Noise | None, Noise | None]) -> float:
    """Degrees of freedom of a sum of two variances (Satterthwaite 1946); of one estimate the least of its own."""
    if None in noises:
        return math.nan
    if noises[0] == noises[1]:
        return float(dofs.min())
    parts = float((variances**2 / dofs).sum())
    return float(variances.sum() ** 2 / parts) if parts > 0 else math.inf


def two_sided(value: float, err: float, dof: float) -> float:
    """The chance of a value as far from zero where it is zero; NaN without an error."""
    if not (math.isfinite(err) and err > 0):
        return math.nan
    z = abs(value) / err
    return float(2 * (stats.norm.sf(z) if math.isinf(dof) else stats.t.sf(z, dof)))


def quantile(dof: float, confidence: float = 0.95) -> float:
    """Student's two-sided quantile in standard errors; NaN where the degrees of freedom are."""
    return float(student_threshold(np.asarray(dof), confidence))


def holm(p_values: Floats) -> Floats:
    """P values with Holm's correction (1979) for their number, in the order given; NaN stays NaN and counts."""
    order = np.argsort(p_values)
    steps = (len(p_values) - np.arange(len(p_values))) * p_values[order]
    corrected = np.empty_like(p_values)
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return corrected
