"""A weighted line through points and limits; leaving out a limit such as "above 180" would bias the line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy import special, stats  # type: ignore[import-untyped]

from shapelaw.fits.line import Floats, LineFit, fit_line, goodness


@dataclass(frozen=True)
class Limit:
    """At `x` the value is above (`side` 1) or below (-1) a bound with standard error `sigma`."""

    x: float
    bound: float
    sigma: float
    side: int


def inverse_mills(z: Floats) -> Floats:
    """phi(z) / Phi(z), the slope of a limit's log likelihood in units of its error."""
    ratio: Floats = np.exp(stats.norm.logpdf(z) - special.log_ndtr(z))
    return ratio


def chance_of_limits(values: Sequence[float], limits: Sequence[Limit]) -> float:
    """The chance of the limit that `values` at the limits' x keep worst; 1 without limits."""
    z = [
        limit.side * (value - limit.bound) / limit.sigma for value, limit in zip(values, limits, strict=True)
    ]
    return min((float(special.ndtr(one)) for one in z), default=1.0)


def fit_line_with_limits(
    x: npt.ArrayLike, y: npt.ArrayLike, sigma: npt.ArrayLike, limits: Sequence[Limit]
) -> LineFit:
    """The most likely `y = a + b x` given points with normal errors and limits (Tobin 1958).

    A limit's likelihood is `Phi(side (a + b x - bound) / sigma)`. The log likelihood is concave, so Newton steps from
    the line through the points find its only maximum. The covariance is the inverse of the observed information; chi2,
    its p-value and R² are those of the points. Without limits, or where the points alone give no line, the result is
    that of `fit_line`.
    """
    plain = fit_line(x, y, sigma)
    if not limits or not plain.usable:
        return plain
    x_n, y_n, sigma_n = (np.asarray(values, dtype=np.float64) for values in (x, y, sigma))
    points = np.stack([np.ones_like(x_n), x_n], axis=1) / sigma_n[:, None]
    side = np.array([float(limit.side) for limit in limits])
    scale = side / np.array([limit.sigma for limit in limits])
    bounds = np.array([[1.0, limit.x] for limit in limits]) * scale[:, None]
    offset = np.array([limit.bound for limit in limits]) * scale

    def ascent(at: Floats) -> tuple[float, Floats, Floats]:
        """The log likelihood with its gradient (2,) and minus its Hessian (2, 2)."""
        residual, z = y_n / sigma_n - points @ at, bounds @ at - offset
        mills = inverse_mills(z)
        value = float(special.log_ndtr(z).sum() - 0.5 * (residual**2).sum())
        gradient = points.T @ residual + bounds.T @ mills
        return value, gradient, points.T @ points + (bounds.T * (mills * (mills + z))) @ bounds

    at = np.array([plain.a, plain.b])
    value, gradient, information = ascent(at)
    for _ in range(100):
        step = np.linalg.solve(information, gradient)
        if gradient @ step < 1e-18:
            break
        for share in 0.5 ** np.arange(40):
            trial = ascent(at + share * step)
            if trial[0] >= value:
                at, (value, gradient, information) = at + share * step, trial
                break
    covariance = np.linalg.inv(information)
    residual = y_n / sigma_n - points @ at
    chi2, number = float(residual @ residual), len(limits)
    total = plain.chi2 / (1.0 - plain.r_squared) if plain.r_squared < 1 else math.nan
    p_value = float(stats.chi2.sf(chi2, plain.dof))
    return replace(
        plain,
        a=float(at[0]),
        b=float(at[1]),
        a_err=math.sqrt(covariance[0, 0]),
        b_err=math.sqrt(covariance[1, 1]),
        cov_aa=float(covariance[0, 0]),
        cov_ab=float(covariance[0, 1]),
        cov_bb=float(covariance[1, 1]),
        chi2=chi2,
        chi2_reduced=chi2 / plain.dof,
        p_value=p_value,
        r_squared=1.0 - chi2 / total,
        message=f"{number} limit{'' if number == 1 else 's'} used; for the points, "
        + goodness(chi2, plain.dof, p_value),
    )
