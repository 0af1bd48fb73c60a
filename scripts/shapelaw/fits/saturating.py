"""Smooth curves that rise and level off: a knee has to beat them before it counts as one.

Each form has three parameters, as many as two pieces with a knee, so that Akaike's criterion compares only their fits;
the rounded knee has a fourth, its width. All are searched on grids of their shapes, with the level and the scale in
closed form. On a smooth curve with 8 to 12 points and 3 seeds a knee is then reported in 0 to 6% of draws
(`benchmarks/knees.py`; in 59 to 100% when it had to beat a straight line only).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from shapelaw.fits.line import Floats

# least AICc advantage of a knee over every smooth curve, and the most that a rounded knee may have over it
MARGIN, ROUNDED_MARGIN = 3.0, 2.0
ROUNDED = "rounded knee"
_SHAPES: Floats = np.geomspace(0.03, 5.0, 120)  # shares of the range of x


@dataclass(frozen=True)
class Alternative:
    """A smooth form, and its AICc minus the knee's: above zero the knee is better."""

    form: str
    gap: float


def smooth_alternatives(
    x: Floats, y: Floats, err: Floats, knee_chi2: float, noise_dof: float
) -> list[Alternative]:
    """All forms for (n,) points whose errors `err` were estimated with `noise_dof` degrees of freedom (0: not at all).

    The likelihood is Student's, with the noise integrated out; the small-sample correction counts the n points and the
    degrees of freedom as observations. With too few observations for a fourth parameter the rounded knee is left out.
    """
    u = (x - x[0]) / (x[-1] - x[0])
    fits = {
        "exponential": (3, _straight(np.exp(-u / _SHAPES[:, None]), y, err)),
        "hyperbola": (3, _straight(1.0 / (u + _SHAPES[:, None]), y, err)),
        "logarithm": (3, _straight(np.log(u + 0.5 * _SHAPES[:, None]), y, err)),
        "logistic": (3, _logistic(u, y, err)),
        ROUNDED: (4, _rounded(x, y, err)),
    }
    knee = _aicc(knee_chi2, 3, len(x), noise_dof)
    found = [Alternative(form, _aicc(chi2, k, len(x), noise_dof) - knee) for form, (k, chi2) in fits.items()]
    return [one for one in found if not math.isnan(one.gap)]


def beaten_by(alternatives: list[Alternative]) -> Alternative | None:
    """The best smooth form that the knee doesn't beat clearly enough; None if it beats them all."""
    short = [a for a in alternatives if a.gap < (-ROUNDED_MARGIN if a.form == ROUNDED else MARGIN)]
    return min(short, key=lambda one: one.gap, default=None)


def _aicc(chi2: float, parameters: int, points: int, noise_dof: float) -> float:
    """Akaike's criterion with its correction for few observations; the noise counts as one more parameter."""
    if math.isinf(noise_dof):
        return chi2 + 2.0 * parameters
    observations, k = points + noise_dof, parameters + 1
    if observations <= k + 1:
        return math.nan if parameters > 3 else observations * math.log(max(noise_dof + chi2, 1e-300))
    fit = observations * math.log(max(noise_dof + chi2, 1e-300))
    return fit + 2.0 * k * observations / (observations - k - 1)


def _straight(basis: Floats, y: Floats, err: Floats) -> float:
    """The least chi2 of `a + b basis` over the rows of (m, n) `basis`."""
    weights = err**-2.0 / (err**-2.0).sum()
    rise, centred = basis - (basis @ weights)[:, None], y - y @ weights
    variance = np.maximum(rise**2 @ weights, 1e-300)
    least = centred**2 @ weights - (rise @ (weights * centred)) ** 2 / variance
    return float((err**-2.0).sum() * max(float(least.min()), 0.0))


def _logistic(u: Floats, y: Floats, err: Floats) -> float:
    """The least chi2 of `a / (1 + exp((u0 - u) / s))`."""
    middle, width = np.linspace(-1.0, 1.0, 60)[:, None, None], np.geomspace(0.02, 1.5, 50)[None, :, None]
    curve = 1.0 / (1.0 + np.exp(np.minimum((middle - u) / width, 500.0)))
    weights = err**-2.0
    explained = (curve @ (weights * y)) ** 2 / np.maximum(curve**2 @ weights, 1e-300)
    return max(float((weights * y**2).sum() - explained.max()), 0.0)


def _rounded(x: Floats, y: Floats, err: Floats) -> float:
    """The least chi2 of `plateau - slope w log(1 + exp((knee - x) / w))`: two pieces with a bend w wide."""
    knee = np.linspace(x[1], x[-2], 80)[:, None, None]
    width = np.geomspace(0.01, 0.75, 30)[None, :, None] * (x[-1] - x[0])
    bend = -width * np.logaddexp(0.0, (knee - x) / width)
    return _straight(bend.reshape(-1, len(x)), y, err)
