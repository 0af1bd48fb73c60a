"""Monotone regression, and a test of monotony that accounts for noise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from shapelaw.fits.line import FitStatus, Floats
from shapelaw.fits.noise import Noise

SIGNIFICANT = 0.05


class Monotony(StrEnum):
    """The verdict on falls of means by more than their noise."""

    RISING = "rising, no significant fall"
    FALLING = "falls significantly"
    FLAT = "no significant change"
    NO_NOISE = "no noise estimate"
    TOO_FEW_POINTS = "too few points"


@dataclass(frozen=True)
class MonotonyTest:
    """`falls_p` is the chance of falls this large if none are real; `rises_p` the same for rises.

    `largest_fall` is the largest drop from a point to any later one, 0 if there is none, with its standard error
    and the two x. `chi2` is the weighted sum of squared residuals from the nearest curve that does not fall, with
    its `r_squared`; `falls_p` is its p-value. All NaN where nothing was tested.
    """

    verdict: Monotony
    falls_p: float = np.nan
    rises_p: float = np.nan
    largest_fall: float = np.nan
    largest_fall_err: float = np.nan
    fall_from: float = np.nan
    fall_to: float = np.nan
    chi2: float = np.nan
    r_squared: float = np.nan

    @property
    def status(self) -> FitStatus:
        """The status of the isotonic fit, whatever the test finds."""
        return {
            Monotony.TOO_FEW_POINTS: FitStatus.TOO_FEW_POINTS,
            Monotony.NO_NOISE: FitStatus.NOT_IDENTIFIABLE,
        }.get(self.verdict, FitStatus.CONVERGED)

    @property
    def message(self) -> str:
        """The reason for `status`, in a sentence."""
        if self.verdict is Monotony.NO_NOISE:
            return "no seed noise, so a fall can't be told from chance; train several seeds of some points"
        if self.verdict is Monotony.TOO_FEW_POINTS:
            return "1 point: an order needs 2"
        return f"{self.verdict} (p of a fall = {self.falls_p:.2g})"


def isotonic(y: npt.ArrayLike, weights: npt.ArrayLike) -> Floats:
    """The nearest non-decreasing rows to (m, n) `y` in weighted (n,) least squares, by the max-min formula.

    Robertson, Wright, Dykstra 1988, theorem 1.4.4; O(m n^2) memory, meant for the tens of points of a curve.
    """
    y_mn, w = np.atleast_2d(np.asarray(y, dtype=np.float64)), np.asarray(weights, dtype=np.float64)
    n = y_mn.shape[1]
    total = np.concatenate([np.zeros((len(y_mn), 1)), np.cumsum(y_mn * w, axis=1)], axis=1)
    mass = np.concatenate([[0.0], np.cumsum(w)])
    first, last = np.triu_indices(n)
    average = np.full((len(y_mn), n, n), np.nan)  # [:, s, t] is the mean of points s to t
    average[:, first, last] = (total[:, last + 1] - total[:, first]) / (mass[last + 1] - mass[first])
    least = np.empty_like(average)  # [:, s, i]: the least mean of s to t over t >= i
    running = np.full((len(y_mn), n), np.inf)
    for i in range(n - 1, -1, -1):
        running = np.fmin(running, average[:, :, i])
        least[:, :, i] = running
    return np.stack([least[:, : i + 1, i].max(axis=1) for i in range(n)], axis=1)


def monotony(
    x: Floats, y: Floats, err: Floats, noise: Noise | None, *, draws: int = 4000, seed: int = 0
) -> MonotonyTest:
    """Test the order of (n,) means against `noise`, from which their standard errors `err` were estimated.

    The statistic is the weighted squared distance to the nearest non-decreasing curve; where nothing falls it is
    largest for a constant curve (Robertson et al. 1988, section 2.3), so its distribution is drawn for that one, with
    the noise's own uncertainty. `falls_p` is therefore exact for a plateau and too large for a steep curve: chance is
    never called a fall more often than stated. `rises_p` is the same test of the reversed order.
    """
    if len(x) < 2:
        return MonotonyTest(Monotony.TOO_FEW_POINTS)
    if noise is None or not np.isfinite(err).all():
        return MonotonyTest(Monotony.NO_NOISE)
    rng = np.random.default_rng(seed)
    weights = err**-2.0
    scale = np.ones(draws) if np.isinf(noise.dof) else np.sqrt(rng.chisquare(noise.dof, draws) / noise.dof)
    drawn = rng.standard_normal((draws, len(x))) * err
    p_values = []
    for sign in (1.0, -1.0):
        observed = _distance(sign * y[None, :], weights)[0]
        by_chance = _distance(sign * drawn, weights) / scale**2
        p_values.append(float((1 + (by_chance >= observed * (1 - 1e-12)).sum()) / (1 + draws)))
    falls_p, rises_p = p_values
    drop = np.triu(y[:, None] - y[None, :], k=1)
    start, end = np.unravel_index(int(drop.argmax()), drop.shape)
    verdict = Monotony.RISING if rises_p < SIGNIFICANT else Monotony.FLAT
    chi2 = float(_distance(y[None, :], weights)[0])
    total = float((weights * (y - np.average(y, weights=weights)) ** 2).sum())
    found = MonotonyTest(
        Monotony.FALLING if falls_p < SIGNIFICANT else verdict,
        falls_p,
        rises_p,
        largest_fall=0.0,
        chi2=chi2,
        r_squared=1 - chi2 / total if total > 0 else np.nan,
    )
    if not drop[start, end] > 0:
        return found
    err_of_fall, ends = float(np.hypot(err[start], err[end])), (float(x[start]), float(x[end]))
    return replace(
        found,
        largest_fall=float(drop[start, end]),
        largest_fall_err=err_of_fall,
        fall_from=ends[0],
        fall_to=ends[1],
    )


def _distance(y: Floats, weights: Floats) -> Floats:
    return np.asarray((weights * (y - isotonic(y, weights)) ** 2).sum(axis=1), dtype=np.float64)
