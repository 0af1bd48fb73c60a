"""A weighted straight line, or a proportion up to a level, with errors, covariance and a status, to points and limits.

Leaving out a limit like "above 180" biases a fit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy import optimize, special, stats  # type: ignore[import-untyped]

from shapelaw.fits.noise import Floats as Floats
from shapelaw.fits.noise import Noise, chance_words

_FREE = 2  # parameters of a line


class FitStatus(StrEnum):
    """The outcome of a fit. Only `CONVERGED` may be used, drawn or extrapolated."""

    CONVERGED = "converged"
    TOO_FEW_POINTS = "too few points"
    NOT_IDENTIFIABLE = "not identifiable"
    AT_EDGE = "at the edge"  # the value is a bound
    CURVED = "curved"  # a line was asked for, and the points are not on one
    FAILED = "did not converge"


class Fit:
    """What fits have in common that are dataclasses with a `status`, such as `FitStatus`."""

    status: Any

    @property
    def usable(self) -> bool:
        return bool(self.status == FitStatus.CONVERGED)

    def to_dict(self) -> dict[str, float | int | str | None]:
        """The fields for JSON, with None for NaN."""
        return {
            one.name: None if isinstance(value, float) and not math.isfinite(value) else value
            for one in fields(self)  # type: ignore[arg-type]
            for value in [getattr(self, one.name)]
        }

    @classmethod
    def without_numbers(cls, status: Any, n_points: int, message: str, **known: Any) -> Self:
        """One whose numbers are NaN but for the `known` ones and the degrees of freedom beside two parameters."""
        left = {"float": math.nan, "int": max(n_points - _FREE, 0)}
        nothing = {one.name: left[one.type] for one in fields(cls) if one.type in left}  # type: ignore[arg-type]
        return cls(**nothing | known | {"status": status, "n_points": n_points, "message": message})


def overall_status(statuses: Sequence[str]) -> str:
    """The status of several fits together: "converged" if one of them is, else the first one's."""
    if not statuses:
        return FitStatus.TOO_FEW_POINTS.value
    return FitStatus.CONVERGED.value if FitStatus.CONVERGED.value in statuses else statuses[0]


@dataclass(frozen=True)
class LineFit(Fit):
    """`y = a + b x` with standard errors and covariance; NaN throughout unless `status` is converged.

    `chi2` is the weighted sum of squared residuals (eq. 58 of Levine et al. 2020), `chi2_reduced` is
    `chi2 / dof`, `p_value` the chance of a larger `chi2` if the line and the errors are right, and `r_squared`
    is one minus the ratio of `chi2` to that of the weighted mean (eq. 59, with the mean normalised by its
    weights, which the printed equation leaves out). `message` gives the reason for `status` in a sentence.
    """

    a: float
    b: float
    a_err: float
    b_err: float
    cov_aa: float
    cov_ab: float
    cov_bb: float
    chi2: float
    chi2_reduced: float
    p_value: float
    r_squared: float
    dof: int
    n_points: int
    status: FitStatus
    message: str


@dataclass(frozen=True)
class Limit:
    """At `x` the value is above (`side` 1) or below (-1) a bound with standard error `sigma`."""

    x: float
    bound: float
    sigma: float
    side: int


def fit_line(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    sigma: npt.ArrayLike,
    limits: Sequence[Limit] = (),
    *,
    sigma_dof: float = math.inf,
    rescale_covariance: bool = False,
) -> LineFit:
    """The most likely `y = a + b x` given points with normal errors and limits (Tobin 1958).

    Without limits it is that of weighted least squares. A limit's likelihood is `Phi(side (a + b x - bound) / sigma)`.
    The log likelihood is concave, so Newton steps from the line through the points find its only maximum. The
    covariance is the inverse of the observed information; chi2, its p-value and R² are those of the points. Where the
    points alone give no line, limits don't either.

    Args:
        x, y: (n,) finite values.
        sigma: (n,) positive standard errors of `y`, or their (n, n) covariance.
        limits: bounds on y.
        sigma_dof: degrees of freedom with which a common factor of `sigma` was estimated; `p_value` accounts for them.
        rescale_covariance: multiply the covariance by `chi2 / dof`, for errors known up to a common factor.
            Off by default: the transition widths have errors of their own (Levine et al. 2020, D.1).

    Raises:
        ValueError: the arrays differ in shape, or a value is not finite, or a `sigma` is not positive (definite).
    """
    x_n, y_n, sigma_n = (np.asarray(values, dtype=np.float64) for values in (x, y, sigma))
    if not (x_n.ndim == 1 and x_n.shape == y_n.shape and set(sigma_n.shape) == set(x_n.shape)):
        raise ValueError(
            f"x, y and sigma must be vectors of one length: {x_n.shape}, {y_n.shape}, {sigma_n.shape}"
        )
    if not (np.isfinite(x_n).all() and np.isfinite(y_n).all() and np.isfinite(sigma_n).all()):
        raise ValueError("x, y and sigma must be finite")
    if sigma_n.ndim == 1 and (sigma_n <= 0).any():
        raise ValueError("sigma must be positive")

    n_points = len(x_n)
    if n_points <= _FREE:
        text = too_few_points(n_points, "a line", _FREE + 1)
        return LineFit.without_numbers(FitStatus.TOO_FEW_POINTS, n_points, text)
    if np.unique(x_n).size < 2:
        text = "all points share one x, so they determine no slope"
        return LineFit.without_numbers(FitStatus.NOT_IDENTIFIABLE, n_points, text)

    whiten = whitening(sigma_n)
    points, values = whiten @ np.stack([np.ones_like(x_n), x_n], axis=1), whiten @ y_n
    at, covariance = _most_likely(points, values, limits)
    residual, level = values - points @ at, points[:, 0]
    chi2, dof = float(residual @ residual), n_points - _FREE
    if rescale_covariance:
        covariance *= chi2 / dof
    total = float(((values - level * (level @ values) / (level @ level)) ** 2).sum())
    p_value = Noise(1.0, sigma_dof).chance(chi2, dof)
    said, number = goodness(chi2, dof, p_value), len(limits)
    (aa, ab), (_, bb) = covariance.tolist()
    return LineFit(
        a=float(at[0]),
        b=float(at[1]),
        a_err=math.sqrt(aa),
        b_err=math.sqrt(bb),
        cov_aa=aa,
        cov_ab=ab,
        cov_bb=bb,
        chi2=chi2,
        chi2_reduced=chi2 / dof,
        p_value=p_value,
        r_squared=1.0 - chi2 / total if total > 0 else math.nan,
        dof=dof,
        n_points=n_points,
        status=FitStatus.CONVERGED,
        message=f"{number} limit{'' if number == 1 else 's'} used; for the points, {said}"
        if limits
        else said,
    )


def whitening(sigma: Floats) -> Floats:
    """(n, n) what makes values with (n,) standard errors, or an (n, n) covariance, independent with a variance of 1."""
    return np.diag(1.0 / sigma) if sigma.ndim == 1 else np.linalg.inv(np.linalg.cholesky(sigma))


def _most_likely(points: Floats, values: Floats, limits: Sequence[Limit]) -> tuple[Floats, Floats]:
    """The parameters (2,) of a line and their covariance; design (n, 2) and values (n,) of the points are whitened."""
    scale = np.array([limit.side / limit.sigma for limit in limits])
    bounds = np.array([[1.0, limit.x] for limit in limits]).reshape(-1, _FREE) * scale[:, None]
    offset = np.array([limit.bound for limit in limits]) * scale

    def ascent(at: Floats) -> tuple[float, Floats, Floats]:
        """The log likelihood with its gradient (2,) and minus its Hessian (2, 2)."""
        residual, z = values - points @ at, bounds @ at - offset
        mills = inverse_mills(z)
        value = float(special.log_ndtr(z).sum() - 0.5 * (residual**2).sum())
        gradient = points.T @ residual + bounds.T @ mills
        return value, gradient, points.T @ points + (bounds.T * (mills * (mills + z))) @ bounds

    at = np.asarray(np.linalg.lstsq(points, values)[0], dtype=np.float64)
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
    return at, np.asarray(np.linalg.inv(information), dtype=np.float64)


def inverse_mills(z: Floats) -> Floats:
    """phi(z) / Phi(z), the slope of a limit's log likelihood in units of its error."""
    ratio: Floats = np.exp(stats.norm.logpdf(z) - special.log_ndtr(z))
    return ratio


def too_few_points(n_points: int, form: str, needed: int) -> str:
    """The message of a fit with too few points, such as `2 points: a line and a check of its fit need 3`."""
    return f"{n_points} point{'' if n_points == 1 else 's'}: {form} and a check of its fit need {needed}"


def goodness(chi2: float, dof: int, p_value: float) -> str:
    """The goodness of fit in words: chi²/dof, its chance and, below 1%, a warning that the errors are too small."""
    freedom = f"{dof} degree{'' if dof == 1 else 's'} of freedom"
    words = f"chi2/dof = {chi2 / dof:.3g} with {freedom} ({chance_words(p_value)})"
    if p_value < 0.01:
        words += "; the points scatter more than their errors allow, so the errors of the fit are too small"
    return words


def chance_of_limits(values: Sequence[float], limits: Sequence[Limit]) -> float:
    """The chance of the limit that `values` at the limits' x keep worst; 1 without limits."""
    z = [
        limit.side * (value - limit.bound) / limit.sigma for value, limit in zip(values, limits, strict=True)
    ]
    return min((float(special.ndtr(one)) for one in z), default=1.0)


LEAST_ON_A_PART = 2  # points at different x, so that the part's form is tested too
LEAST_GAIN = float(stats.chi2.isf(0.05, 1))  # of -2 log L over one part alone, for two parts


@dataclass(frozen=True)
class LevelFit(Fit):
    """`y = min(k + x, level)` in logarithms: in proportion to x for small x, the same for large x.

    Attributes:
        k, level: the parameters; NaN throughout unless `status` is converged.
        k_err, level_err: their standard errors, which are independent: each parameter has points of its own.
        chi2, dof, p_value: of the points, as in `LineFit`.
        n_points: points, limits not counted.
        status: "converged"; "not identifiable" where one part alone, or too few points on one, would do as well.
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


def fit_level(
    x: npt.ArrayLike, y: npt.ArrayLike, sigma: npt.ArrayLike, limits: Sequence[Limit] = ()
) -> LevelFit:
    """The most likely `y = min(k + x, level)` given points with normal errors and limits.

    A limit's likelihood is that of `fit_line`. The likelihood has a kink at each x, so a simplex starts
    from every split of the points into those below the level and those on it. The errors are those of the part that
    each parameter has at the maximum; that a point may belong to the other part is not in them.

    Args:
        x, y, sigma: (n,) logarithms and the standard errors of `y`.
        limits: bounds on y.
    """
    x_n, y_n, sigma_n = (np.asarray(values, dtype=np.float64) for values in (x, y, sigma))
    if len(x_n) < 2 * LEAST_ON_A_PART:
        text = too_few_points(len(x_n), "a proportion and a level", 2 * LEAST_ON_A_PART)
        return LevelFit.without_numbers(FitStatus.TOO_FEW_POINTS, len(x_n), text)
    at_x, bound, scale, side = (
        np.array([getattr(limit, name) for limit in limits], dtype=np.float64)
        for name in ("x", "bound", "sigma", "side")
    )

    def kept(k: float, level: float) -> Floats:
        """By how many standard errors each limit is kept."""
        return side * (np.minimum(k + at_x, level) - bound) / scale

    def misfit(k: float, level: float) -> float:
        """Minus twice the log likelihood."""
        residual = (y_n - np.minimum(k + x_n, level)) / sigma_n
        return float(residual @ residual - 2 * special.log_ndtr(kept(k, level)).sum())

    k, level, least = _two_parts(x_n, y_n, sigma_n**-2.0, misfit)
    rises, limit_rises = k + x_n <= level, k + at_x <= level
    one_part = min(
        optimize.minimize_scalar(lambda k: misfit(k, math.inf)).fun,
        optimize.minimize_scalar(lambda level: misfit(math.inf, level)).fun,
    )
    if one_part - least < LEAST_GAIN:
        text = "the transitions may as well be all in proportion, or all the same"
        return LevelFit.without_numbers(FitStatus.NOT_IDENTIFIABLE, len(x_n), text)
    if min(np.unique(x_n[part]).size for part in (rises, ~rises)) < LEAST_ON_A_PART:
        text = f"a proportion and a level need {LEAST_ON_A_PART} points each, and one of them has less"
        return LevelFit.without_numbers(FitStatus.NOT_IDENTIFIABLE, len(x_n), text)

    z = kept(k, level)
    mills = inverse_mills(z)
    of_limits = mills * (mills + z) / scale**2  # information: next to none of a limit that is kept by far
    k_err, level_err = (
        1 / math.sqrt((sigma_n[part] ** -2.0).sum() + of_limits[limit_part].sum())
        for part, limit_part in ((rises, limit_rises), (~rises, ~limit_rises))
    )
    residual = (y_n - np.minimum(k + x_n, level)) / sigma_n
    chi2, dof = float(residual @ residual), len(x_n) - 2
    p_value = float(stats.chi2.sf(chi2, dof))
    said = goodness(chi2, dof, p_value)
    return LevelFit(k, k_err, level, level_err, chi2, dof, p_value, len(x_n), FitStatus.CONVERGED, said)


def _two_parts(
    x: Floats, y: Floats, weights: Floats, misfit: Callable[[float, float], float]
) -> tuple[float, float, float]:
    """k, the level and the misfit at the least one that the starts lead to."""
    found = []
    for cut in np.unique(x)[1:]:
        low, high = x < cut, x >= cut
        k = np.average(y[low] - x[low], weights=weights[low])
        level = np.average(y[high], weights=weights[high])
        start = np.array([[k, level], [k + 0.1, level], [k, level + 0.1]])
        options = {"initial_simplex": start, "xatol": 1e-9, "fatol": 1e-9, "maxiter": 4000}
        found.append(
            optimize.minimize(lambda at: misfit(*at), start[0], method="Nelder-Mead", options=options)
        )
    if not found:
        return math.inf, math.inf, math.inf
    best = min(found, key=lambda one: float(one.fun))
    return float(best.x[0]), float(best.x[1]), float(best.fun)
