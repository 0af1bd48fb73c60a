"""A curve that rises in a straight line and is flat from a knee on, and smooth curves that a knee has to beat.

A smooth form has three parameters, as many as two pieces with a knee, so that Akaike's criterion compares only their
fits; the rounded knee has a fourth, its width. All are searched on grids of their shapes, with the level and the scale
in closed form. On a smooth curve with 8 to 12 points and 3 seeds a knee is then reported in 0 to 6% of draws
(`benchmarks/knees.py`; in 59 to 100% when it had to beat a straight line only).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from enum import StrEnum

import lmfit
import numpy as np
from scipy import stats  # type: ignore[import-untyped]

from shapelaw.fits.line import Fit, Floats, too_few_points
from shapelaw.fits.memorized import MEMORIZED
from shapelaw.fits.noise import SIGNIFICANT, Noise, chance_words

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
        "exponential": (3, _least(np.exp(-u / _SHAPES[:, None]), y, err)),
        "hyperbola": (3, _least(1.0 / (u + _SHAPES[:, None]), y, err)),
        "logarithm": (3, _least(np.log(u + 0.5 * _SHAPES[:, None]), y, err)),
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


def _straight(basis: Floats, y: Floats, err: Floats) -> Floats:
    """(m,) least chi2 of `a + b basis` for each row of (m, n) `basis`, in closed form."""
    weights = err**-2.0 / (err**-2.0).sum()
    rise, centred = basis - (basis @ weights)[:, None], y - y @ weights
    variance = np.maximum(rise**2 @ weights, 1e-300)
    explained = (rise @ (weights * centred)) ** 2 / variance
    least = (err**-2.0).sum() * np.maximum(centred**2 @ weights - explained, 0.0)
    return np.asarray(least, dtype=np.float64)


def _least(basis: Floats, y: Floats, err: Floats) -> float:
    return float(_straight(basis, y, err).min())


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
    return _least(bend.reshape(-1, len(x)), y, err)


MIN_POINTS = 5
GRID = 600
LEVELS = (0.68, 0.95)
_PARAMETERS = ("plateau", "slope", "knee")


class KneeStatus(StrEnum):
    """The outcome of a knee fit. Only `CONVERGED` may be used."""

    CONVERGED = "converged"
    TOO_FEW_POINTS = "too few points"
    FLAT = "no rise"
    STRAIGHT = "no plateau in range"
    AT_EDGE = "at the edge"
    SMOOTH = "a smooth curve fits as well"
    SATURATED = "all is memorized on the plateau"


@dataclass(frozen=True)
class KneeFit(Fit):
    """`y = plateau - slope max(knee - x, 0)` with standard errors, their covariance and the knee's intervals.

    `low68`, `high68`, `low95`, `high95` come from the profile of chi2, since chi2 is not smooth in the knee; an end
    that reaches the second or the second to last point is open and NaN. `noise_scale` is the factor, 1 or more, by
    which the errors had to grow to cover the points' scatter about the curve. `kink_p` is the chance that noise alone
    gives such a gain over a straight line. `smooth_form` is the best smooth curve, and `smooth_gap` its AICc minus the
    knee's (`smooth_alternatives`). Numbers are NaN where the fit could not be made.
    """

    plateau: float
    slope: float
    knee: float
    plateau_err: float
    slope_err: float
    knee_err: float
    cov_plateau_slope: float
    cov_plateau_knee: float
    cov_slope_knee: float
    low68: float
    high68: float
    low95: float
    high95: float
    chi2: float
    dof: int
    p_value: float
    r_squared: float
    kink_p: float
    smooth_form: str
    smooth_gap: float
    noise_scale: float
    n_points: int
    status: KneeStatus
    message: str

    def allows(self, x: float) -> bool:
        """True if the 95% interval allows a knee at x."""
        return self.usable and not (x < self.low95 or x > self.high95)

    def at(self, x: Floats) -> Floats:
        """The fitted curve at (m,) x."""
        return self.plateau - self.slope * np.maximum(self.knee - np.asarray(x, dtype=np.float64), 0.0)


def fit_knee(x: Floats, y: Floats, err: Floats, noise: Noise | None) -> KneeFit:
    """Fit the two pieces to (n,) means with standard errors `err`, estimated with the degrees of freedom of `noise`.

    The knee is sought between the second and the second to last point, so that each piece has two. It counts only
    where two pieces fit clearly better than any smooth curve with as many parameters. Without a noise estimate (`noise`
    None; `err` is then only a weight) the scatter around the curve is the noise.
    """
    n_points = len(x)
    if n_points < MIN_POINTS:
        text = too_few_points(n_points, "a knee", MIN_POINTS)
        dof = max(n_points - 3, 0)
        return KneeFit.without_numbers(KneeStatus.TOO_FEW_POINTS, n_points, text, dof=dof, smooth_form="")
    err = err if noise is not None else np.where(np.isfinite(err), err, 1.0)
    knees = np.linspace(x[1], x[-2], GRID)
    profile = _straight(np.minimum(x - knees[:, None], 0.0), y, err)
    best = int(profile.argmin())
    dof, chi2 = n_points - 3, float(profile[best])
    noise_dof, scale = _noise_scale(chi2, dof, noise)
    line, constant = _straight(x[None], y, err)[0], _straight(np.zeros((1, n_points)), y, err)[0]
    kink_p = _chance(line - chi2, 1, scale, noise_dof)
    rise_p = _chance(constant - chi2, 2, scale, noise_dof)

    result = _refine(x, y, err, knees[best], float(x[1]), float(x[-2]), rescale=1.0 if noise else scale)
    values = {name: float(result.params[name].value) for name in _PARAMETERS}
    growth = scale**2 if noise is not None else 1.0
    covariance = np.full((3, 3), np.nan) if result.covar is None else result.covar * growth
    covariances = {
        f"cov_{one}_{other}": float(covariance[at, to])
        for (at, one), (to, other) in itertools.combinations(enumerate(_PARAMETERS), 2)
    }
    errors = zip(_PARAMETERS, np.sqrt(np.diag(covariance)), strict=True)
    intervals = {
        f"{end}{100 * level:.0f}": value
        for level in LEVELS
        for end, value in zip(
            ("low", "high"), _profile_interval(knees, profile, scale, noise_dof, level), strict=True
        )
    }
    p_value = noise.chance(chi2, dof) if noise else math.nan
    smooth = smooth_alternatives(x, y, err, chi2, noise.dof if noise else 0.0)
    nearest = beaten_by(smooth) or min(smooth, key=lambda one: one.gap)
    status, message = _status(values, knees, rise_p, kink_p)
    if status is KneeStatus.CONVERGED and beaten_by(smooth):
        status, message = KneeStatus.SMOOTH, _as_good(nearest)
    return KneeFit(
        **values,
        **{f"{name}_err": float(err) for name, err in errors},
        **covariances,
        **intervals,
        chi2=chi2 if noise else math.nan,
        dof=dof,
        p_value=p_value,
        r_squared=1.0 - chi2 / constant if constant > 0 else math.nan,
        kink_p=kink_p,
        smooth_form=nearest.form,
        smooth_gap=nearest.gap,
        noise_scale=scale if noise else math.nan,
        n_points=n_points,
        status=status,
        message=message,
    )


def _refine(
    x: Floats, y: Floats, err: Floats, knee: float, low: float, high: float, *, rescale: float
) -> lmfit.model.ModelResult:
    """Refine the best knee of the grid with lmfit; `rescale` other than 1 takes the errors from the scatter."""
    design = np.stack([np.ones_like(x), np.minimum(x - knee, 0.0)], axis=1)
    plateau, slope = np.linalg.lstsq(design / err[:, None], y / err, rcond=None)[0]
    model = lmfit.Model(lambda x, plateau, slope, knee: plateau - slope * np.maximum(knee - x, 0.0))
    start = model.make_params(plateau=plateau, slope=slope, knee=knee)
    start["knee"].set(min=low, max=high)
    return model.fit(y, start, x=x, weights=1.0 / err, scale_covar=rescale != 1.0)


def _status(values: dict[str, float], knees: Floats, rise_p: float, kink_p: float) -> tuple[KneeStatus, str]:
    if rise_p > SIGNIFICANT or values["slope"] <= 0:
        return KneeStatus.FLAT, f"no significant rise ({chance_words(rise_p)})"
    step = knees[1] - knees[0]
    if kink_p > SIGNIFICANT:
        return KneeStatus.STRAIGHT, f"a straight line fits as well ({chance_words(kink_p)})"
    if not knees[0] + step < values["knee"] < knees[-1] - step:
        side = "below" if values["knee"] <= knees[0] + step else "above"
        return KneeStatus.AT_EDGE, f"the knee is at {values['knee']:.3g}, with too few points {side} it"
    if values["plateau"] > MEMORIZED:
        text = "all is memorized on the plateau, so the knee says nothing about d_h; take more examples"
        return KneeStatus.SATURATED, text
    return KneeStatus.CONVERGED, f"two pieces fit better than a straight line ({chance_words(kink_p)})"


def _as_good(smooth: Alternative) -> str:
    said = "fits better than" if smooth.gap < 0 else "fits as well as"
    article = "an" if smooth.form[0] in "aeiou" else "a"
    return f"{article} {smooth.form} {said} a knee (its AICc is {smooth.gap:+.1f} relative to the knee's)"


def _noise_scale(chi2: float, dof: int, noise: Noise | None) -> tuple[float, float]:
    """The degrees of freedom of the noise, and its growth where the scatter exceeds it (p < 1%)."""
    if noise is None:
        return float(dof), math.sqrt(max(chi2, 1e-300) / dof)
    too_much = noise.chance(chi2, dof) < 0.01
    return (float(dof), math.sqrt(chi2 / dof)) if too_much else (noise.dof, 1.0)


def _chance(gain: float, parameters: int, scale: float, noise_dof: float) -> float:
    """The chance that noise alone lowers chi2 by `gain` with this many more parameters."""
    return Noise(1.0, noise_dof).chance(max(gain, 0.0) / scale**2, parameters)


def _profile_interval(
    knees: Floats, profile: Floats, scale: float, noise_dof: float, level: float
) -> tuple[float, float]:
    allowed = float(stats.chi2.ppf(level, 1) if math.isinf(noise_dof) else stats.f.ppf(level, 1, noise_dof))
    inside = np.flatnonzero(profile - profile.min() <= allowed * scale**2)
    low, high = int(inside[0]), int(inside[-1])
    return (
        float(knees[low]) if low > 0 else math.nan,
        float(knees[high]) if high < len(knees) - 1 else math.nan,
    )
