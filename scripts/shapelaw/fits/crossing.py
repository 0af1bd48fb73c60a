"""Our own estimator of the width at which the deeper of two networks becomes the better one.

Both loss curves are smooth in `x = log P`: the shallower is `f(x)`, the deeper `f(x) + g(x)`, with `f` and `g`
polynomials (Legendre) whose orders AIC picks, `g` at least a cubic: lower orders bias the crossing or, picked where
they fit by luck, make the interval too short. That is linear least squares with a known noise, so a parametric
bootstrap (new noise on the fitted curves, orders picked anew) costs a few matrix products for all draws at once.

The crossing of a draw is the `x` that maximises the integral of `g` from the left: up to there the deeper network
is on balance worse, from there on better. With one change of sign that is the zero of `g`; with none it is an end
of the range, and wiggles around zero still give one answer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numpy.polynomial import legendre

from shapelaw.fits.curves import Curve, Transition, TransitionStatus, no_transition, shared_range, sizes_in
from shapelaw.fits.line import Floats
from shapelaw.fits.noise import Noise
from shapelaw.fits.smooth import LEAST_ORDER, MAX_ORDER, unit

BOOTSTRAP = "bootstrap"
MIN_SIZES = 4
GRID = 400
INTERVAL = (0.16, 0.84)
# a share of draws below this counts as "none"
RARE = 0.025


@dataclass(frozen=True)
class CrossingDraws:
    """The fitted difference of two loss curves, deeper minus shallower, and the crossings of its draws.

    `log_params` (GRID,) spans the sizes that both curves cover; `difference`, `low` and `high` (GRID,) are the fit
    and its 68% band there; `crossing` and `crossings` (n_draws,) are log sizes, at an end of the range for draws
    without a crossing. `noise_scale` is the factor, 1 or more, by which the noise had to grow for the curves to be
    smooth within it.
    """

    log_params: Floats
    difference: Floats
    low: Floats
    high: Floats
    crossing: float
    crossings: Floats
    noise_scale: float

    @property
    def share_below(self) -> float:
        """Share of draws in which the deeper network is better over the whole range."""
        return float(np.mean(self.crossings <= self.log_params[0]))

    @property
    def share_above(self) -> float:
        """Share of draws in which the shallower network is better over the whole range."""
        return float(np.mean(self.crossings >= self.log_params[-1]))


def bootstrap_crossing(
    shallow: Curve, deep: Curve, noise: Noise | None, *, draws: int = 2000, seed: int = 0
) -> tuple[Transition, CrossingDraws | None]:
    """The crossing of two loss curves with the 68% interval of its bootstrap distribution.

    `width_err` is half the interval, all in widths of the shallower network. A crossing is reported if at least 95%
    of the draws have one in the sizes that both depths cover, and at least two sizes of each depth lie on either
    side of it; else the status says what is known. The draws are None where no curves were fitted (no noise, or
    fewer than 4 sizes in common).
    """
    if noise is None:
        return no_transition(shallow, deep, BOOTSTRAP, TransitionStatus.NO_NOISE), None
    span = shared_range(shallow, deep)
    sizes = [sizes_in(curve, *span) for curve in (shallow, deep)]
    n_common = min(len(x) for x in sizes)
    if n_common < MIN_SIZES or span[0] >= span[1]:
        return no_transition(shallow, deep, BOOTSTRAP, TransitionStatus.TOO_FEW_SIZES), None

    found = _draw_crossings(shallow, deep, noise, span, n_common, draws, np.random.default_rng(seed))
    inner = (max(x[1] for x in sizes), min(x[-2] for x in sizes))
    quantiles = np.quantile(found.crossings, INTERVAL)
    status = _status(found, quantiles, inner)
    if status is not TransitionStatus.CROSSING:
        return no_transition(shallow, deep, BOOTSTRAP, status), found
    width, width_low, width_high = (float(w) for w in shallow.width_at([found.crossing, *quantiles]))
    return (
        Transition(
            shallow.depth,
            deep.depth,
            width,
            (width_high - width_low) / 2,
            width_low,
            width_high,
            BOOTSTRAP,
            status,
        ),
        found,
    )


def _status(found: CrossingDraws, quantiles: Floats, inner: tuple[float, float]) -> TransitionStatus:
    below, above = found.share_below, found.share_above
    if above < RARE and below > 1 - RARE:
        return TransitionStatus.DEEPER_BETTER
    if below < RARE and above > 1 - RARE:
        return TransitionStatus.SHALLOWER_BETTER
    wide = quantiles[1] - quantiles[0] > (found.log_params[-1] - found.log_params[0]) / 2
    if wide or min(below, above) > RARE:
        return TransitionStatus.TOO_NOISY
    inside = inner[0] <= found.crossing <= inner[1] and below + above < 2 * RARE
    return TransitionStatus.CROSSING if inside else TransitionStatus.AT_EDGE


@dataclass(frozen=True)
class _Model:
    """One choice of orders. For n losses: `design` (n, k) is divided by the noise, `solve` (k, n) its pseudo-inverse.

    The last `order + 1` of the k coefficients are those of the difference.
    """

    order: int
    design: Floats
    solve: Floats


def _draw_crossings(
    shallow: Curve,
    deep: Curve,
    noise: Noise,
    span: tuple[float, float],
    n_common: int,
    draws: int,
    rng: np.random.Generator,
) -> CrossingDraws:
    x = np.concatenate([shallow.log_params, deep.log_params])
    err = np.concatenate([shallow.loss_err, deep.loss_err])
    y = np.concatenate([shallow.loss, deep.loss]) / err
    is_deep = np.arange(len(x)) >= len(shallow.params)
    models = _models(x, is_deep, err, max_order=min(MAX_ORDER, n_common - 1))
    grid = np.linspace(*span, GRID)
    basis = legendre.legvander(unit(grid, x), MAX_ORDER)

    fitted, chosen, coefficients = _fit(models, y[None, :])
    scale = _noise_scale(
        float(((y - fitted[0]) ** 2).sum()), len(x) - models[chosen[0]].design.shape[1], noise
    )
    # the noise is an estimate itself; how uncertain it is goes into the draws (Student's t, not a normal)
    uncertain = (
        np.ones(draws) if np.isinf(noise.dof) else np.sqrt(noise.dof / rng.chisquare(noise.dof, draws))
    )
    drawn = fitted[0] + scale * uncertain[:, None] * rng.standard_normal((draws, len(x)))
    _, _, drawn_coefficients = _fit(models, drawn)

    differences = drawn_coefficients @ basis.T
    low, high = np.quantile(differences, INTERVAL, axis=0)
    difference = (coefficients @ basis.T)[0]
    return CrossingDraws(
        log_params=grid,
        difference=difference,
        low=low,
        high=high,
        crossing=float(_crossing(difference[None, :], grid)[0]),
        crossings=_crossing(differences, grid),
        noise_scale=scale,
    )


def _models(x: Floats, is_deep: npt.NDArray[np.bool_], err: Floats, max_order: int) -> list[_Model]:
    """All pairs of orders, `g` of 3 or more and at most that of `f`; and one below `max_order`, never interpolating."""
    basis = legendre.legvander(unit(x, x), max_order)
    models = []
    for order in range(min(LEAST_ORDER, max_order - 1), max_order):
        for shared in range(order, max_order + 1):
            if shared + order + 2 < len(x):
                design = (
                    np.hstack([basis[:, : shared + 1], basis[:, : order + 1] * is_deep[:, None]])
                    / err[:, None]
                )
                models.append(_Model(order, design, np.asarray(np.linalg.pinv(design), dtype=np.float64)))
    return models


def _fit(models: list[_Model], y: Floats) -> tuple[Floats, npt.NDArray[np.intp], Floats]:
    """Fit (m, n) whitened losses by each model and keep the one of least AIC, `chi2 + 2 k`, row by row.

    Returns the fitted losses (m, n), the index of the model (m,) and the coefficients of `g` (m, MAX_ORDER + 1).
    """
    least = np.full(len(y), np.inf)
    chosen = np.zeros(len(y), dtype=np.intp)
    fitted, difference = np.empty_like(y), np.zeros((len(y), MAX_ORDER + 1))
    for index, model in enumerate(models):
        coefficients = y @ model.solve.T
        values = coefficients @ model.design.T
        aic = ((y - values) ** 2).sum(axis=1) + 2.0 * model.design.shape[1]
        better = aic < least
        least[better], chosen[better], fitted[better] = aic[better], index, values[better]
        difference[better] = 0.0
        difference[better, : model.order + 1] = coefficients[better, -model.order - 1 :]
    return fitted, chosen, difference


def _noise_scale(chi2: float, dof: int, noise: Noise) -> float:
    """By how much the residuals exceed the seed noise, where that is significant (p < 1%), else 1."""
    return float(np.sqrt(chi2 / dof)) if noise.chance(chi2, dof) < 0.01 else 1.0


def _crossing(differences: Floats, grid: Floats) -> Floats:
    """The x (m,) that maximises the integral from the left of (m, GRID) differences; see the module's docstring."""
    steps = (differences[:, 1:] + differences[:, :-1]) / 2.0
    integral = np.concatenate([np.zeros((len(differences), 1)), np.cumsum(steps, axis=1)], axis=1)
    peak = integral.argmax(axis=1)
    crossing: Floats = grid[peak]
    row = np.flatnonzero((peak > 0) & (peak < len(grid) - 1))
    left = np.where(differences[row, peak[row]] >= 0, peak[row], peak[row] - 1)
    before, after = differences[row, left], differences[row, left + 1]
    crossing[row] = grid[left] + (grid[1] - grid[0]) * before / (before - after)
    return crossing
