"""A weighted straight line with errors, covariance and a status, fitted with lmfit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum

import lmfit
import numpy as np
import numpy.typing as npt

from shapelaw.fits.noise import Noise, chance_words

Floats = npt.NDArray[np.float64]
_FREE = 2  # parameters of a line


class FitStatus(StrEnum):
    """The outcome of a fit. Only `CONVERGED` may be used, drawn or extrapolated."""

    CONVERGED = "converged"
    TOO_FEW_POINTS = "too few points"
    NOT_IDENTIFIABLE = "not identifiable"
    AT_EDGE = "at the edge"  # the value is a bound
    CURVED = "curved"  # a line was asked for, and the points are not on one
    FAILED = "did not converge"


def overall_status(statuses: Sequence[str]) -> str:
    """The status of several fits together: "converged" if one of them is, else the first one's."""
    if not statuses:
        return FitStatus.TOO_FEW_POINTS.value
    return FitStatus.CONVERGED.value if FitStatus.CONVERGED.value in statuses else statuses[0]


@dataclass(frozen=True)
class LineFit:
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

    @property
    def usable(self) -> bool:
        return self.status is FitStatus.CONVERGED

    def to_dict(self) -> dict[str, float | int | str | None]:
        """The fields for JSON, with None for NaN."""
        return {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in asdict(self).items()
        }


def fit_line(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    sigma: npt.ArrayLike | None = None,
    *,
    sigma_dof: float = math.inf,
    rescale_covariance: bool = False,
) -> LineFit:
    """Weighted least squares of `y = a + b x`.

    Args:
        x, y: (n,) finite values.
        sigma: (n,) positive standard errors of `y`; all 1 if not given.
        sigma_dof: degrees of freedom with which a common factor of `sigma` was estimated; `p_value` accounts for them.
        rescale_covariance: multiply the covariance by `chi2 / dof`, for errors known up to a common factor.
            Off by default: the transition widths have errors of their own (Levine et al. 2020, D.1).

    Raises:
        ValueError: the arrays differ in shape, or a value is not finite, or a `sigma` is not positive.
    """
    x_n, y_n = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    sigma_n = np.ones_like(y_n) if sigma is None else np.asarray(sigma, dtype=np.float64)
    if not (x_n.ndim == 1 and x_n.shape == y_n.shape == sigma_n.shape):
        raise ValueError(
            f"x, y and sigma must be vectors of one length: {x_n.shape}, {y_n.shape}, {sigma_n.shape}"
        )
    if not (np.isfinite(x_n).all() and np.isfinite(y_n).all() and np.isfinite(sigma_n).all()):
        raise ValueError("x, y and sigma must be finite")
    if (sigma_n <= 0).any():
        raise ValueError("sigma must be positive")

    n_points = len(x_n)
    if n_points <= _FREE:
        text = too_few_points(n_points, "a line", _FREE + 1)
        return _unusable(FitStatus.TOO_FEW_POINTS, n_points, text)
    if np.unique(x_n).size < 2:
        text = "all points share one x, so they determine no slope"
        return _unusable(FitStatus.NOT_IDENTIFIABLE, n_points, text)

    model = lmfit.models.LinearModel()
    start = model.make_params(intercept=float(y_n.mean()), slope=0.0)
    result = model.fit(
        y_n,
        start,
        x=x_n,
        weights=1.0 / sigma_n,
        scale_covar=rescale_covariance,
        fit_kws={"xtol": 1e-13, "ftol": 1e-13},
    )
    if not result.success or result.covar is None or not np.isfinite(result.covar).all():
        return _unusable(FitStatus.FAILED, n_points, f"the minimiser failed: {result.message}")
    return _converged(result, y_n, sigma_n, sigma_dof)


def _converged(result: lmfit.model.ModelResult, y: Floats, sigma: Floats, sigma_dof: float) -> LineFit:
    order = [result.var_names.index(name) for name in ("intercept", "slope")]
    covariance = result.covar[np.ix_(order, order)]
    chi2, dof = float(result.chisqr), len(y) - _FREE
    centre = float(np.average(y, weights=sigma**-2.0))
    total = float((((y - centre) / sigma) ** 2).sum())
    p_value = Noise(1.0, sigma_dof).chance(chi2, dof)
    return LineFit(
        a=float(result.params["intercept"].value),
        b=float(result.params["slope"].value),
        a_err=math.sqrt(covariance[0, 0]),
        b_err=math.sqrt(covariance[1, 1]),
        cov_aa=float(covariance[0, 0]),
        cov_ab=float(covariance[0, 1]),
        cov_bb=float(covariance[1, 1]),
        chi2=chi2,
        chi2_reduced=chi2 / dof,
        p_value=p_value,
        r_squared=1.0 - chi2 / total if total > 0 else math.nan,
        dof=dof,
        n_points=len(y),
        status=FitStatus.CONVERGED,
        message=goodness(chi2, dof, p_value),
    )


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


def _unusable(status: FitStatus, n_points: int, message: str) -> LineFit:
    nothing = dict.fromkeys(
        (
            "a",
            "b",
            "a_err",
            "b_err",
            "cov_aa",
            "cov_ab",
            "cov_bb",
            "chi2",
            "chi2_reduced",
            "p_value",
            "r_squared",
        ),
        math.nan,
    )
    return LineFit(**nothing, dof=max(n_points - _FREE, 0), n_points=n_points, status=status, message=message)
