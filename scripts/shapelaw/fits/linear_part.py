"""The part of a memorization curve that is linear in the heads, if there is one, and the exponent of its growth."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import lmfit
import numpy as np
import numpy.typing as npt
from scipy import stats  # type: ignore[import-untyped]

from shapelaw.fits.line import FitStatus, Floats, LineFit, fit_line, too_few_points
from shapelaw.fits.memorized import SATURATED, MemorizationCurve, standard_errors
from shapelaw.fits.noise import Noise

LEAST_CHANCE = 0.01
LEVEL = 0.68
SEED_NOISE, SCATTER, MISFIT = "seed noise", "scatter", "misfit (one seed)"


@dataclass(frozen=True)
class Growth:
    """`share = c H^exponent`, with the exponent's standard error and its 68% interval by Student's t.

    `errors` names the source of the error: `SEED_NOISE`, `SCATTER` where the points lie farther from the curve than
    that allows, or `MISFIT`. Numbers are NaN unless `status` is converged.
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
    said, ends = f"{n_points} points; the error comes from {errors}", (exponent - reach, exponent + reach)
    return Growth(exponent, sigma, *ends, n_points, errors, FitStatus.CONVERGED, said)


def _none(n_points: int, status: FitStatus, message: str) -> Growth:
    nan = math.nan
    return Growth(nan, nan, nan, nan, n_points, "", status, message)


BENT = 0.05


@dataclass(frozen=True)
class LinearPart:
    """`share = a + b H` over the `used` (n,) points of a curve, where they are consistent with a line.

    `curvature_p` is the chance that noise alone makes a parabola so much better than the line (an F-test; NaN where it
    can't be made), `curvature` the parabola's coefficient of H². Where the chance is below 5% the line's status is
    "curved" and it has no slope; its R² is kept, and does not show a line. `errors` names the source of the line's
    errors: "seed noise", "scatter" of the points around it beyond that, or, with one seed, the "misfit".
    """

    line: LineFit
    used: npt.NDArray[np.bool_]
    errors: str
    curvature_p: float
    curvature: float


def linear_part(curve: MemorizationCurve, saturated: float = SATURATED, floor: float = 0.0) -> LinearPart:
    """The line through the non-saturated points of the share (n,) against the heads.

    The rule: by growing H, the line uses the points before the first one whose mean share over seeds is above
    `saturated`. It is fixed in advance and ignores how straight the points lie, so that the test of a bend means
    something. (Mahdavi et al. 2024, section 5.2, fit "the non-saturated part" and give no rule.) At 0.9 a curve that
    saturates softly is already bent a little; the table `linear_rules` has the line for other values too.

    Points below `floor` are not used either: a share that guessing reaches is not part of a line. The default keeps
    all.
    """
    above = np.flatnonzero(curve.share > saturated)
    used = np.arange(len(curve.x)) < (above[0] if above.size else len(curve.x))
    used &= curve.share >= floor
    return line_through(curve, used)


def line_through(curve: MemorizationCurve, used: npt.NDArray[np.bool_]) -> LinearPart:
    """The line through the `used` (n,) points of a curve against the heads, if they are consistent with one.

    The points are weighted by seeds and noise. The line's errors come from the seeds' noise; without repeats, or where
    the points scatter more than it allows (p < 1%), from their scatter around the line.
    """
    x, y, noise = curve.x[used], curve.share[used], curve.noise
    err = standard_errors(curve)[used] if noise is not None else curve.seeds[used] ** -0.5
    line, errors = _line_of(x, y, err, noise)
    chance, curvature = _bend(x, y, err, noise)
    if line.usable and math.isnan(chance):
        text = f"{len(x)} points of one seed can't tell a line from a curve: that takes 4"
        line = _without_slope(line, FitStatus.TOO_FEW_POINTS, text)
    elif line.usable and chance < BENT:
        how = "faster" if curvature > 0 else "more slowly"
        line = _without_slope(line, FitStatus.CURVED, f"the share grows {how} than a line (p = {chance:.2g})")
    return LinearPart(line, used, errors, chance, curvature)


def _line_of(x: Floats, y: Floats, err: Floats, noise: Noise | None) -> tuple[LineFit, str]:
    if noise is None:
        line = fit_line(x, y, err, rescale_covariance=True)
        text = (
            "one seed: the errors come from the points' scatter about the line"
            if line.usable
            else line.message
        )
        # without a noise estimate chi2 says nothing
        nan = math.nan
        return replace(line, chi2=nan, chi2_reduced=nan, p_value=nan, message=text), MISFIT
    line = fit_line(x, y, err, sigma_dof=noise.dof)
    if not line.usable or line.p_value >= LEAST_CHANCE:
        return line, SEED_NOISE
    wider = fit_line(x, y, err, sigma_dof=noise.dof, rescale_covariance=True)
    text = f"chi2/dof = {line.chi2_reduced:.3g} with the seeds' noise: the errors come from the larger scatter instead"
    return replace(wider, message=text), SCATTER


def _bend(x: Floats, y: Floats, err: Floats, noise: Noise | None) -> tuple[float, float]:
    """The chance that noise alone gives a parabola its gain over the line, and the coefficient of x².

    The unit is the seed noise or, without repeats or where the points lie off the parabola too (p < 1%), the scatter
    about the parabola.
    """
    dof = len(x) - 3
    if dof < (0 if noise is not None else 1):
        return math.nan, math.nan
    powers = np.stack([np.ones_like(x), x, x**2], axis=1)
    line, parabola = (_least(powers[:, :k], y, err) for k in (2, 3))
    gain, curvature = line[1] - parabola[1], float(parabola[0][2])
    if noise is not None and (dof == 0 or noise.chance(parabola[1], dof) >= LEAST_CHANCE):
        return noise.chance(gain, 1), curvature
    return Noise(1.0, dof).chance(gain * dof / max(parabola[1], 1e-300), 1), curvature


def _least(design: Floats, y: Floats, err: Floats) -> tuple[Floats, float]:
    """Coefficients and chi2 of weighted least squares."""
    white, target = design / err[:, None], y / err
    coefficients: Floats = np.asarray(np.linalg.lstsq(white, target, rcond=None)[0], dtype=np.float64)
    return coefficients, float(((target - white @ coefficients) ** 2).sum())


def _without_slope(line: LineFit, status: FitStatus, message: str) -> LineFit:
    nan = math.nan
    line = replace(line, a=nan, b=nan, a_err=nan, b_err=nan, cov_aa=nan, cov_ab=nan, cov_bb=nan)
    return replace(line, status=status, message=message)
