"""A loss curve as a smooth function of log size: a polynomial of the order that AIC picks."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numpy.polynomial import legendre

from shapelaw.fits.curves import Curve
from shapelaw.fits.line import Floats
from shapelaw.fits.noise import Noise
from shapelaw.fits.scatter import least
from shapelaw.specs.sizes import SAME_SIZE

# a lower order that fits by luck would make the errors too small
LEAST_ORDER, MAX_ORDER = 3, 6
MIN_SIZES = 4
# sizes farther apart than this factor leave a gap in which the curve is unknown
FAR = 4.0


def unit(x: npt.ArrayLike, knots: Floats) -> Floats:
    """`x` on the scale on which `knots` span [-1, 1]."""
    low, high = float(knots.min()), float(knots.max())
    return (2.0 * np.asarray(x, dtype=np.float64) - low - high) / (high - low)


def smooth_loss(curve: Curve, size: npt.ArrayLike, noise: Noise | None) -> tuple[Floats, Floats]:
    """Smoothed loss and its standard error at (m,) sizes, from seed noise and residuals together (`scatter.py`).

    NaN where the curve doesn't reach (see `reaches`), and everywhere with fewer than four sizes. Without a noise
    estimate there is no smoothing: the curve is the straight pieces of `Curve.loss_at`, its error NaN.
    """
    knots, x = curve.log_size, np.log(np.asarray(size, dtype=np.float64))
    reached = reaches(curve, x)
    if noise is None or not reached.any():
        loss, loss_err = curve.loss_at(size)
        return np.where(reached, loss, np.nan), np.where(reached, loss_err, np.nan)
    basis: Floats = np.asarray(legendre.legvander(unit(knots, knots), MAX_ORDER), dtype=np.float64)
    highest = min(MAX_ORDER, len(knots) - 2)
    designs: list[Floats] = [basis[:, : order + 1] for order in range(min(LEAST_ORDER, highest), highest + 1)]
    y = curve.loss / noise.std
    seeds = noise.runs_at(curve.width, curve.seeds)
    best, scatter = least(designs, y, seeds, noise.dof)
    err = scatter.std(seeds)
    solve = np.linalg.pinv(designs[best] / err[:, None])
    # (m, n): the smoothed loss is linear in the losses
    at = legendre.legvander(unit(x, knots), designs[best].shape[1] - 1) @ solve
    loss, loss_err = noise.std * (at @ (y / err)), noise.std * np.sqrt((at**2).sum(axis=1))
    return np.where(reached, loss, np.nan), np.where(reached, loss_err, np.nan)


def reaches(curve: Curve, log_size: Floats) -> npt.NDArray[np.bool_]:
    """True for those of (m,) log sizes that a curve of four sizes or more covers; with fewer it covers none.

    A curve covers its range and 10% beyond, but not the inside of a gap: between neighbours more than a factor `FAR`
    apart nothing was measured.
    """
    knots = curve.log_size
    if len(knots) < MIN_SIZES:
        return np.zeros(log_size.shape, dtype=np.bool_)
    right = np.clip(np.searchsorted(knots, log_size), 1, len(knots) - 1)
    nearest = np.minimum(np.abs(log_size - knots[right]), np.abs(log_size - knots[right - 1]))
    between = (log_size >= knots[0]) & (log_size <= knots[-1])
    close = knots[right] - knots[right - 1] <= np.log(FAR)
    return np.asarray((between & close) | (nearest <= SAME_SIZE))
