"""A loss curve as a smooth function of log size: a polynomial of the order that AIC picks."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numpy.polynomial import legendre

from shapelaw.fits.curves import SAME_SIZE, Curve
from shapelaw.fits.line import Floats

# a lower order that fits by luck would make the errors too small
LEAST_ORDER, MAX_ORDER = 3, 6


def unit(x: npt.ArrayLike, knots: Floats) -> Floats:
    """`x` on the scale on which `knots` span [-1, 1]."""
    low, high = float(knots.min()), float(knots.max())
    return (2.0 * np.asarray(x, dtype=np.float64) - low - high) / (high - low)


def smooth_loss(curve: Curve, params: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Smoothed loss and its standard error at (m,) sizes; NaN more than 10% out of the curve's range.

    Without a noise estimate or with fewer than four sizes nothing can be smoothed: the curve is then the straight
    pieces of `Curve.loss_at`.
    """
    if len(curve.params) < 4 or not np.isfinite(curve.loss_err).all():
        return curve.loss_at(params)
    knots, x = curve.log_params, np.log(np.asarray(params, dtype=np.float64))
    design = legendre.legvander(unit(knots, knots), MAX_ORDER) / curve.loss_err[:, None]
    y = curve.loss / curve.loss_err
    best_aic, order = np.inf, LEAST_ORDER
    solve: Floats = np.zeros((0, 0))
    for candidate in range(min(LEAST_ORDER, len(knots) - 2), min(MAX_ORDER, len(knots) - 2) + 1):
        inverse = np.asarray(np.linalg.pinv(design[:, : candidate + 1]), dtype=np.float64)
        residual = y - design[:, : candidate + 1] @ (inverse @ y)
        aic = float(residual @ residual) + 2.0 * (candidate + 1)
        if aic < best_aic:
            best_aic, order, solve = aic, candidate, inverse
    at = (
        legendre.legvander(unit(x, knots), order) @ solve
    )  # (m, n): the smoothed loss is linear in the losses
    outside = (x < knots[0] - SAME_SIZE) | (x > knots[-1] + SAME_SIZE)
    loss, err = at @ y, np.sqrt((at**2).sum(axis=1))
    return np.where(outside, np.nan, loss), np.where(outside, np.nan, err)
