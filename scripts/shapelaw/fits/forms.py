"""The uncertainty of a projection: several forms of the transition width, weighted by their predictions.

The line `log d = a + b L` is one form that fits; others fit as well and project elsewhere. Each is linear in its
coefficients, so leaving a point out costs nothing: the point's residual and variance follow from the leverage. A form's
weight is its share of the predictive density of the left-out points, over Bayesian bootstraps of the points, since few
points determine it poorly (pseudo-BMA+: Yao et al. 2018). Five points hardly distinguish a line from a curve: read each
form's own projection too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special, stats  # type: ignore[import-untyped]

from shapelaw.fits.line import Floats
from shapelaw.fits.projection import SCATTERED, standard_params

FORMS: Mapping[str, tuple[str, Callable[[Floats], list[Floats]]]] = {
    "line": ("a + b L", lambda x: [np.ones_like(x), x]),
    "quadratic": ("a + b L + c L²", lambda x: [np.ones_like(x), x, x**2]),
    "root": ("a + b √L", lambda x: [np.ones_like(x), np.sqrt(x)]),
    "power law": ("a + b log L", lambda x: [np.ones_like(x), np.log(x)]),
}
INTERVAL = (0.16, 0.84)
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
    """All forms with fewer coefficients than there are points, by falling weight; none with fewer than 3 points."""
    x, y, err = (np.asarray(values, dtype=np.float64) for values in (depth, log_width, sigma))
    fitted = []
    for name, (_, columns) in FORMS.items():
        design = np.stack(columns(x), axis=1) / err[:, None]
        n, k = design.shape
        if n <= k or np.linalg.matrix_rank(design) < k:
            continue
        covariance = np.linalg.inv(design.T @ design)
        coefficients = covariance @ design.T @ (y / err)
        residual, leverage = (
            y / err - design @ coefficients,
            np.einsum("nk,kl,nl->n", design, covariance, design),
        )
        left = np.maximum(1.0 - leverage, 1e-12)
        density = stats.norm.logpdf(residual / left, scale=1.0 / np.sqrt(left)) - np.log(err)
        chi2 = float(residual @ residual)
        p_value = float(stats.chi2.sf(chi2, n - k))
        widened = chi2 / (n - k) if p_value < SCATTERED else 1.0
        fitted.append((name, coefficients, covariance * widened, chi2, n - k, p_value, density))
    if not fitted:
        return ()
    density = np.stack([form[-1] for form in fitted])  # (forms, n)
    shares = np.random.default_rng(0).dirichlet(np.ones(len(x)), BOOTSTRAPS)
    weights = special.softmax(len(x) * shares @ density.T, axis=1).mean(axis=0)
    forms = [
        Form(*form[:-1], log_density=float(form[-1].sum()), weight=float(weight))
        for form, weight in zip(fitted, weights, strict=True)
    ]
    return tuple(sorted(forms, key=lambda form: -form.weight))


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
