"""The part of a memorization curve that is linear in the number of heads, if there is one."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from shapelaw.fits.growth import LEAST_CHANCE, MISFIT, SCATTER, SEED_NOISE
from shapelaw.fits.line import FitStatus, Floats, LineFit, fit_line
from shapelaw.fits.memorized import SATURATED, MemorizationCurve, standard_errors
from shapelaw.fits.noise import Noise, chance_words

BENT = 0.05
POWER = 1.4  # of H: a test that would not tell this growth from a line has not shown a line


@dataclass(frozen=True)
class LinearPart:
    """`share = a + b H` over the `used` (n,) points of a curve, where they are consistent with a line.

    `curvature_p` is the chance that noise alone makes a parabola so much better than the line (an F-test; NaN where it
    can't be made), `curvature` the parabola's coefficient of H². Where the chance is below 5% the line's status is
    "curved" and it has no slope; its R² is kept, and does not show a line. `tells` is False where shares as
    H^`POWER` at the same points and with the same errors would pass for a line as well. `errors` names the source of
    the line's errors: "seed noise", "scatter" of the points around it beyond that, or, with one seed, the "misfit".
    """

    line: LineFit
    used: npt.NDArray[np.bool_]
    errors: str
    curvature_p: float
    curvature: float
    tells: bool


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
    chance, curvature, tells = _bend(x, y, err, noise)
    if line.usable and math.isnan(chance):
        text = f"{len(x)} points of one seed can't tell a line from a curve: that takes 4"
        line = _without_slope(line, FitStatus.TOO_FEW_POINTS, text)
    elif line.usable and chance < BENT:
        how = "faster" if curvature > 0 else "more slowly"
        line = _without_slope(
            line, FitStatus.CURVED, f"the share grows {how} than a line ({chance_words(chance)})"
        )
    return LinearPart(line, used, errors, chance, curvature, tells)


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


def _bend(x: Floats, y: Floats, err: Floats, noise: Noise | None) -> tuple[float, float, bool]:
    """The chance that noise alone gives a parabola its gain over the line, the coefficient of x², and `tells`.

    The unit is the seed noise or, without repeats or where the points lie off the parabola too (p < 1%), the scatter
    about the parabola.
    """
    dof = len(x) - 3
    if dof < (0 if noise is not None else 1):
        return math.nan, math.nan, False
    powers = np.stack([np.ones_like(x), x, x**2], axis=1)
    line, parabola = (_least(powers[:, :k], y, err) for k in (2, 3))
    gain, curvature = line[1] - parabola[1], float(parabola[0][2])
    power = y[-1] * (x / x[-1]) ** POWER
    power_gain = _least(powers[:, :2], power, err)[1] - _least(powers, power, err)[1]
    if noise is not None and (dof == 0 or noise.chance(parabola[1], dof) >= LEAST_CHANCE):
        unit, known = 1.0, noise
    else:
        unit, known = dof / max(parabola[1], 1e-300), Noise(1.0, dof)
    return known.chance(gain * unit, 1), curvature, known.chance(power_gain * unit, 1) < BENT


def _least(design: Floats, y: Floats, err: Floats) -> tuple[Floats, float]:
    """Coefficients and chi2 of weighted least squares."""
    white, target = design / err[:, None], y / err
    coefficients: Floats = np.asarray(np.linalg.lstsq(white, target, rcond=None)[0], dtype=np.float64)
    return coefficients, float(((target - white @ coefficients) ** 2).sum())


def _without_slope(line: LineFit, status: FitStatus, message: str) -> LineFit:
    nan = math.nan
    line = replace(line, a=nan, b=nan, a_err=nan, b_err=nan, cov_aa=nan, cov_ab=nan, cov_bb=nan)
    return replace(line, status=status, message=message)
