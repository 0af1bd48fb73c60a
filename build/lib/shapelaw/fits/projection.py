"""The network size that is worth a depth, and the depth worth a size, from the line `log d = a + b L` and other forms.

The line is one form that fits; others fit as well and project elsewhere. Each is linear in its coefficients, so leaving
a point out costs nothing: the point's residual and variance follow from the leverage. A form's weight is its share of
the predictive density of the left-out points, over Bayesian bootstraps of the points, since few points determine it
poorly (pseudo-BMA+: Yao et al. 2018). Five points hardly distinguish a line from a curve: read each form's own
projection too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy import special, stats  # type: ignore[import-untyped]

from shapelaw.fits.line import Floats, LineFit, whitening
from shapelaw.fits.noise import INTERVAL

# a fit with a smaller p-value has errors that are too small
SCATTERED = 0.01


def standard_params(depth: npt.ArrayLike, width: npt.ArrayLike) -> Floats:
    """Non-embedding parameters of a stack of standard blocks, `P = 12 L d^2` (Levine et al. 2020, section 2.1)."""
    return 12.0 * np.asarray(depth, dtype=np.float64) * np.asarray(width, dtype=np.float64) ** 2


def transition_width(fit: LineFit, depth: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Width from which a greater depth is better, `exp(a + b L)`, and its standard error; shapes as `depth`."""
    if not fit.usable:
        raise ValueError(f"the fit is not usable: {fit.status} ({fit.message})")
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
    factor, root = fit.chi2_reduced, math.sqrt(fit.chi2_reduced)
    errors = {name: getattr(fit, name) * root for name in ("a_err", "b_err")}
    covariances = {name: getattr(fit, name) * factor for name in ("cov_aa", "cov_ab", "cov_bb")}
    return replace(fit, **errors, **covariances)


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


FORMS: Mapping[str, tuple[str, Callable[[Floats], list[Floats]]]] = {
    "line": ("a + b L", lambda x: [np.ones_like(x), x]),
    "quadratic": ("a + b L + c L²", lambda x: [np.ones_like(x), x, x**2]),
    "root": ("a + b √L", lambda x: [np.ones_like(x), np.sqrt(x)]),
    "power law": ("a + b log L", lambda x: [np.ones_like(x), np.log(x)]),
}
BOOTSTRAPS = 2000
FARTHEST = 1000.0  # layers


@dataclass(frozen=True)
class Form:
    """One form of log width: (k,) coefficients with covariance (k, k), its weight, and how well it fits.

    `log_density` is the sum over points of the log predictive density of each, left out. Where the points scatter more
    than their errors (p < 1%) the covariance is widened by chi2 / dof.
    """

    name: str
    coefficients: Floats
    covariance: Floats
    chi2: float
    dof: int
    p_value: float
    log_density: float
    weight: float


def fit_forms(depth: npt.ArrayLike, log_width: npt.ArrayLike, sigma: npt.ArrayLike) -> tuple[Form, ...]:
    """All forms with fewer coefficients than there are points, by falling weight; none with fewer than 3 points.

    Args:
        sigma: (n,) standard errors of `log_width`, or their (n, n) covariance. A point that is left out is predicted
            by the others with what its error shares with theirs.
    """
    x, y, err = (np.asarray(values, dtype=np.float64) for values in (depth, log_width, sigma))
    whiten, fitted = whitening(err), []
    for name, (_, columns) in FORMS.items():
        design = whiten @ np.stack(columns(x), axis=1)
        n, k = design.shape
        if n <= k or np.linalg.matrix_rank(design) < k:
            continue
        covariance = np.linalg.inv(design.T @ design)
        coefficients = covariance @ design.T @ whiten @ y
        residual = whiten @ y - design @ coefficients
        # the precision of what is left of the points, whose diagonal is that of each by the others
        left = whiten.T @ (np.eye(n) - design @ covariance @ design.T) @ whiten
        alone = np.maximum(np.diag(left), 1e-12 * np.diag(whiten.T @ whiten))
        density = stats.norm.logpdf(whiten.T @ residual / alone, scale=1.0 / np.sqrt(alone))
        chi2 = float(residual @ residual)
        p_value = float(stats.chi2.sf(chi2, n - k))
        widened = chi2 / (n - k) if p_value < SCATTERED else 1.0
        fitted.append((name, coefficients, covariance * widened, chi2, n - k, p_value, density))
    if not fitted:
        return ()
    weights = predictive_weights(np.stack([form[-1] for form in fitted]))
    forms = [
        Form(*form[:-1], log_density=float(form[-1].sum()), weight=float(weight))
        for form, weight in zip(fitted, weights, strict=True)
    ]
    return tuple(sorted(forms, key=lambda form: -form.weight))


def predictive_weights(densities: Floats, start: Floats | float = 1.0) -> Floats:
    """(f,) weights of models from the (f, n) log densities of what was left out, over Bayesian bootstraps of these.

    Args:
        densities: log predictive densities.
        start: (f,) weights before the data speak, up to a factor.
    """
    n = densities.shape[1]
    shares = np.random.default_rng(0).dirichlet(np.ones(n), BOOTSTRAPS)
    weights: Floats = special.softmax(n * shares @ densities.T + np.log(start), axis=1).mean(axis=0)
    return weights


def log_width_of(form: Form, depth: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Log transition width by one form at (m,) depths, and its standard error."""
    design = np.stack(FORMS[form.name][1](np.asarray(depth, dtype=np.float64)), axis=1)
    return design @ form.coefficients, np.sqrt(np.einsum("mk,kl,ml->m", design, form.covariance, design))


def draw_sizes(forms: Sequence[Form], depth: npt.ArrayLike, *, draws: int = 4000, seed: int = 0) -> Floats:
    """(draws, m) logs of `N_transition(L)` at (m,) depths: forms drawn by weight, then their coefficients."""
    rng, x = np.random.default_rng(seed), np.asarray(depth, dtype=np.float64)
    weight = np.array([form.weight for form in forms])
    chosen = rng.choice(len(forms), size=draws, p=weight / weight.sum())
    log_width = np.empty((draws, len(x)))
    for index, form in enumerate(forms):
        rows = chosen == index
        drawn = rng.multivariate_normal(
            form.coefficients, form.covariance, size=int(rows.sum()), method="cholesky"
        )
        log_width[rows] = drawn @ np.stack(FORMS[form.name][1](x), axis=0)
    return np.asarray(np.log(standard_params(x, 1.0)) + 2.0 * log_width, dtype=np.float64)


def sizes_between(forms: Sequence[Form], depth: npt.ArrayLike, quantiles: Sequence[float]) -> Floats:
    """(q, m) quantiles of `N_transition(L)` over all forms at (m,) depths; infinite beyond any number."""
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(np.quantile(draw_sizes(forms, depth), quantiles, axis=0)), dtype=np.float64)


def first_depths(
    forms: Sequence[Form], block_params: Callable[[Floats], Floats], *, draws: int = 4000, seed: int = 0
) -> Floats:
    """(draws,) first depths at which `N_transition(L)` reaches a size; infinite where no depth up to 1,000 does.

    Args:
        block_params: parameters of the blocks at (m,) depths.
    """
    depth = np.geomspace(1.0, FARTHEST, 600)
    over = draw_sizes(forms, depth, draws=draws, seed=seed) - np.log(block_params(depth))
    right = np.maximum((over >= 0).argmax(axis=1), 1)
    rows = np.arange(len(over))
    before, after = over[rows, right - 1], over[rows, right]
    reached = (over >= 0).any(axis=1)
    share = np.where(reached, np.clip(before / (before - after), 0.0, 1.0), 0.0)
    log_depth = np.log(depth)
    at = np.exp((1.0 - share) * log_depth[right - 1] + share * log_depth[right])
    return np.asarray(np.where(reached, at, np.inf))


@dataclass(frozen=True)
class Spread:
    """The 68% intervals of depth and width at a size over all forms; infinite depth where a form never reaches it.

    `unreached` is the share of draws in which no depth of up to 1,000 layers is worth the size.
    """

    depth_low: float
    depth_high: float
    width_low: float
    width_high: float
    unreached: float


def spread(forms: Sequence[Form], block_params: float) -> Spread:
    """The first depth with `N_transition(L) = block_params`, and its width, over draws of forms and coefficients."""
    at = first_depths(forms, lambda depth: np.full_like(depth, block_params))
    low, high = np.quantile(at, INTERVAL, method="nearest")
    width_low, width_high = (
        math.sqrt(block_params / (12.0 * value)) if math.isfinite(value) else 0.0 for value in (high, low)
    )
    return Spread(float(low), float(high), width_low, width_high, float(np.isinf(at).mean()))
