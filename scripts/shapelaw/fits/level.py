"""Values in proportion to x up to a level and flat beyond it, from points and limits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import optimize, special, stats  # type: ignore[import-untyped]

from shapelaw.fits.limits import Limit
from shapelaw.fits.line import FitStatus, Floats, goodness, too_few_points

LEAST_POINTS = 3


@dataclass(frozen=True)
class LevelFit:
    """`y = min(k + x, level)` in logarithms: a value in proportion to another one, until it is flat.

    Attributes:
        k, k_err: the offset and its standard error; NaN where every point is on the level.
        level, level_err: the level and its standard error; NaN where no point is on it.
        chi2, dof, p_value: of the points, as in `LineFit`.
        n_points: points, limits not counted.
        status: "converged", or why there is no fit.
        message: the goodness of fit, or the reason, in a sentence.
    """

    k: float
    k_err: float
    level: float
    level_err: float
    chi2: float
    dof: int
    p_value: float
    n_points: int
    status: FitStatus
    message: str

    @property
    def usable(self) -> bool:
        return self.status is FitStatus.CONVERGED


def fit_level(
    x: npt.ArrayLike, y: npt.ArrayLike, sigma: npt.ArrayLike, limits: Sequence[Limit] = ()
) -> LevelFit:
    """The most likely `y = min(k + x, level)` given points with normal errors and limits.

    The likelihood of a limit is that of `fit_line_with_limits`. It has a kink at each x, so a simplex starts from every
    split of the points into those below the level and those on it. The errors are those of the part that each
    parameter has at the maximum; that a point may belong to the other part is not in them.

    Args:
        x, y, sigma: (n,) logarithms and the standard errors of `y`.
        limits: bounds on y.
    """
    x_n, y_n, sigma_n = (np.asarray(values, dtype=np.float64) for values in (x, y, sigma))
    if len(x_n) < LEAST_POINTS:
        nothing = (math.nan,) * 5
        text = too_few_points(len(x_n), "a proportion and a level", LEAST_POINTS)
        return LevelFit(*nothing, 0, math.nan, len(x_n), FitStatus.TOO_FEW_POINTS, text)
    at_x, bound, scale = (
        np.array([getattr(limit, name) for limit in limits]) for name in ("x", "bound", "sigma")
    )
    side = np.array([float(limit.side) for limit in limits])

    def misfit(at: Floats) -> float:
        """Minus twice the log likelihood."""
        residual = (y_n - np.minimum(at[0] + x_n, at[1])) / sigma_n
        z = side * (np.minimum(at[0] + at_x, at[1]) - bound) / scale
        return float(residual @ residual - 2 * special.log_ndtr(z).sum())

    weights = sigma_n**-2.0
    beyond = max([float(y_n.max()), *bound.tolist()]) + 1.0
    found = []
    for cut in [*np.unique(x_n).tolist(), math.inf]:
        low, high = x_n < cut, x_n >= cut
        k = np.average(y_n[low] - x_n[low], weights=weights[low]) if low.any() else beyond - x_n.min()
        level = np.average(y_n[high], weights=weights[high]) if high.any() else beyond
        start = np.array([[k, level], [k + 0.1, level], [k, level + 0.1]])
        options = {"initial_simplex": start, "xatol": 1e-9, "fatol": 1e-9, "maxiter": 4000}
        found.append(optimize.minimize(misfit, start[0], method="Nelder-Mead", options=options))
    best = min(found, key=lambda one: float(one.fun))
    k, level = (float(value) for value in best.x)
    rises, limit_rises = k + x_n <= level, k + at_x <= level
    z = side * (np.minimum(k + at_x, level) - bound) / scale
    mills = np.exp(stats.norm.logpdf(z) - special.log_ndtr(z))
    of_limits = mills * (mills + z) / scale**2  # information, next to none where a limit is kept by far
    errors = [
        1 / math.sqrt(weights[part].sum() + of_limits[limit_part].sum()) if part.any() else math.nan
        for part, limit_part in ((rises, limit_rises), (~rises, ~limit_rises))
    ]
    residual = (y_n - np.minimum(k + x_n, level)) / sigma_n
    parts = int(rises.any()) + int((~rises).any())
    chi2, dof = float(residual @ residual), len(x_n) - parts
    p_value = float(stats.chi2.sf(chi2, dof))
    return LevelFit(
        k if rises.any() else math.nan,
        errors[0],
        level if (~rises).any() else math.nan,
        errors[1],
        chi2,
        dof,
        p_value,
        len(x_n),
        FitStatus.CONVERGED,
        goodness(chi2, dof, p_value),
    )
