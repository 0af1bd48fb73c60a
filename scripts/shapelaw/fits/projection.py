"""The network size that is worth a depth, and the depth worth a size, from the line `log d = a + b L`."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy import special  # type: ignore[import-untyped]

from shapelaw.fits.line import Floats, LineFit

# a fit with a smaller p-value has errors that are too small
SCATTERED = 0.01


def standard_params(depth: npt.ArrayLike, width: npt.ArrayLike) -> Floats:
    """Non-embedding parameters of a stack of standard blocks, `P = 12 L d^2` (Levine et al. 2020, section 2.1)."""
    return 12.0 * np.asarray(depth, dtype=np.float64) * np.asarray(width, dtype=np.float64) ** 2


def transition_width(fit: LineFit, depth: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Width from which a greater depth is better, `exp(a + b L)`, and its standard error; shapes as `depth`."""
    _require_usable(fit)
    depth_n = np.asarray(depth, dtype=np.float64)
    width = np.exp(fit.a + fit.b * depth_n)
    return width, width * _log_width_err(fit, depth_n)


def transition_size(fit: LineFit, depth: npt.ArrayLike) -> tuple[Floats, Floats]:
    """`N_transition(L) = 12 L exp(2a + 2bL)` and its propagated standard error; shapes as `depth`.

    Eq. 10 of Levine et al. 2020, with the full covariance of `a` and `b`. The relative error, twice that of the
    width, is also the standard error of `log N_transition`.

    Raises:
        ValueError: the fit is not usable.
    """
    width, _ = transition_width(fit, depth)
    size = standard_params(depth, width)
    return size, size * 2.0 * _log_width_err(fit, np.asarray(depth, dtype=np.float64))


@dataclass(frozen=True)
class Projection:
    """The best shape of one size by the fit: real-valued depth (layers) and width with standard errors."""

    depth: float
    depth_err: float
    width: float
    width_err: float


def widened(fit: LineFit) -> LineFit:
    """The fit with its covariance times chi2 / dof where its points scatter more than their errors allow (p < 1%)."""
    if not fit.usable or not fit.p_value < SCATTERED:
        return fit
    factor = fit.chi2_reduced
    return replace(
        fit,
        a_err=fit.a_err * math.sqrt(factor),
        b_err=fit.b_err * math.sqrt(factor),
        cov_aa=fit.cov_aa * factor,
        cov_ab=fit.cov_ab * factor,
        cov_bb=fit.cov_bb * factor,
    )


def why_no_projection(fit: LineFit) -> str | None:
    """The reason why a fit can't be projected, in a sentence; None if it can.

    A projection needs a usable fit whose slope is above zero by at least two standard errors, `widened` where its
    points scatter more: otherwise a size has no single depth.
    """
    return _unprojectable(widened(fit))


def _unprojectable(fit: LineFit) -> str | None:
    if not fit.usable:
        return f"no fit: {fit.status} ({fit.message})"
    if fit.b < 2.0 * fit.b_err or fit.b <= 0:
        return f"no projection: the slope b = {fit.b:.3g} ± {fit.b_err:.2g} is not significantly above zero"
    return None


def project(fit: LineFit, block_params: float) -> Projection:
    """Solve `N_transition(L) = block_params` for real `L`; embeddings do not count (Levine et al. 2020, table
    1).

    In closed form `L = W(b block_params / (6 exp(2a))) / (2b)` with Lambert's W. The errors move `a` and `b` with their
    covariance at fixed `block_params`, so those of depth and width are of opposite sign.

    Raises:
        ValueError: `block_params` is not positive, or the fit has no projection (see `why_no_projection`).
    """
    reason = _unprojectable(fit)
    if reason is not None:
        raise ValueError(reason)
    if not block_params > 0:
        raise ValueError(f"block_params must be positive, not {block_params}")
    depth = float(special.lambertw(fit.b * block_params / 6.0 * math.exp(-2.0 * fit.a)).real) / (2.0 * fit.b)
    width = math.sqrt(block_params / (12.0 * depth))
    # d/da and d/db of log(12 L) + 2a + 2bL = log(block_params), at fixed block_params
    depth_err = float(_log_width_err(fit, np.asarray(depth))) * 2.0 / (1.0 / depth + 2.0 * fit.b)
    return Projection(depth, depth_err, width, width * depth_err / (2.0 * depth))


def _log_width_err(fit: LineFit, depth: Floats) -> Floats:
    variance = fit.cov_aa + 2.0 * depth * fit.cov_ab + depth**2 * fit.cov_bb
    return np.sqrt(np.maximum(variance, 0.0))


def _require_usable(fit: LineFit) -> None:
    if not fit.usable:
        raise ValueError(f"the fit is not usable: {fit.status} ({fit.message})")
