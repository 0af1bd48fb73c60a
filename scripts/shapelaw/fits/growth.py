"""The growth of the share memorized with the heads: the exponent of `share = c H^k`."""

from __future__ import annotations

import math
from dataclasses import dataclass

import lmfit
import numpy as np
import numpy.typing as npt
from scipy import stats  # type: ignore[import-untyped]

from shapelaw.fits.line import FitStatus, too_few_points
from shapelaw.fits.memorized import MemorizationCurve, standard_errors

LEAST_CHANCE = 0.01
LEVEL = 0.68
ONE_SEED = "one seed: an interval from the misfit, which holds the truth less often than 68%"
SEED_NOISE, SCATTER, MISFIT = "seed noise", "scatter", "misfit (one seed)"


@dataclass(frozen=True)
class Growth:
    """`share = c H^exponent`, with the exponent's standard error and its interval by Student's t.

    The interval is one of 68% where the error comes from repeated seeds. That of one seed comes from the misfit, held
    32 to 62% of the truths in simulations, and is called so. `errors` names the source of the error: `SEED_NOISE`,
    `SCATTER` where the points lie farther from the curve than that allows, or `MISFIT`. Numbers are NaN unless `status`
    is converged.
    """

    exponent: float
    err: float
    low: float
    high: float
    n_points: int
    errors: str
    status: FitStatus
    message: str


def fit_growth(curve: MemorizationCurve, used: npt.NDArray[np.bool_]) -> Growth:
    """Least squares over the `used` (n,) points of a curve along H, with the weights of its line."""
    x, y, seeds, noise = curve.x[used], curve.share[used], curve.seeds[used], curve.noise
    n_points = len(x)
    if n_points < 3:
        return _none(n_points, FitStatus.TOO_FEW_POINTS, too_few_points(n_points, "an exponent", 3))
    err = standard_errors(curve)[used] if noise is not None else seeds**-0.5
    last = float(x[-1])
    model = lmfit.Model(lambda x, level, exponent: level * (x / last) ** exponent)
    start = model.make_params(level=float(y[-1]), exponent=1.0)
    result = model.fit(y, start, x=x, weights=1.0 / err, scale_covar=False)
    if not result.success or result.covar is None or not np.isfinite(result.covar).all():
        return _none(n_points, FitStatus.FAILED, f"the minimiser failed: {result.message}")
    dof, chi2 = n_points - 2, float(result.chisqr)
    believed = noise is not None and noise.chance(chi2, dof) >= LEAST_CHANCE
    scale = 1.0 if believed else math.sqrt(chi2 / dof)
    at = result.var_names.index("exponent")
    exponent, sigma = float(result.params["exponent"].value), scale * math.sqrt(float(result.covar[at, at]))
    known = noise.dof if noise is not None and believed else dof
    reach = sigma * float(stats.t.ppf(0.5 + LEVEL / 2, known))
    errors = SEED_NOISE if believed else MISFIT if noise is None else SCATTER
    return Growth(
        exponent,
        sigma,
        exponent - reach,
        exponent + reach,
        n_points,
        errors,
        FitStatus.CONVERGED,
        f"{n_points} points; " + (ONE_SEED if errors == MISFIT else f"the error comes from {errors}"),
    )


def _none(n_points: int, status: FitStatus, message: str) -> Growth:
    nan = math.nan
    return Growth(nan, nan, nan, nan, n_points, "", status, message)
