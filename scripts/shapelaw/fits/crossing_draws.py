"""The difference of two smooth loss curves, and where it changes sign, by a parametric bootstrap.

Both loss curves are smooth in `x = log size`: the shallower is `f(x)`, the deeper `f(x) + g(x)`, with `f` and `g`
polynomials (Legendre) whose orders AIC picks, `g` at least a cubic: lower orders bias the crossing or, where they fit
by luck, make the interval too short. The fit is linear least squares, so refitting new noise, with orders picked anew,
costs a few matrix products for all draws at once. The noise is of seeds and of residuals together (`scatter.py`), drawn
from its posterior, so that its uncertainty enters the draws.

The crossing of a draw is the `x` that maximises the integral of `g` from the left: up to there the deeper network is
worse on balance, from there on better. With one change of sign that is the zero of `g`; with none it is an end of the
range; wiggles around zero still give one answer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numpy.polynomial import legendre

from shapelaw.fits.curves import Curve
from shapelaw.fits.line import Floats
from shapelaw.fits.noise import Noise
from shapelaw.fits.scatter import least, outlying
from shapelaw.fits.smooth import LEAST_ORDER, MAX_ORDER, unit

GRID = 400
INTERVAL = (0.16, 0.84)
SIGNIFICANT = (0.025, 0.975)


@dataclass(frozen=True)
class CrossingDraws:
    """The fitted difference of two loss curves, deeper minus shallower, and the crossings of its draws.

    `log_size` (GRID,) spans the sizes that both curves cover; `difference`, `low` and `high` (GRID,) are the fit
    and its 68% band there; `signs` (GRID,) are 1 where the deeper network is significantly worse (95%), -1 where it is
    significantly better, else 0. `crossing` and `crossings` (n_draws,) are log sizes, at an end of the range for draws
    without a crossing. `noise_scale` is the typical distance of a single run from its curve, in units of the seed
    noise; `outliers` are the (depth, width, sigmas) of shapes more than 4 sigma off.
    """

    log_size: Floats
    difference: Floats
    low: Floats
    high: Floats
    signs: npt.NDArray[np.int8]
    crossing: float
    crossings: Floats
    noise_scale: float
    outliers: tuple[tuple[int, int, float], ...]

    @property
    def share_below(self) -> float:
        """Share of draws in which the deeper network is better over the whole range."""
        return float(np.mean(self.crossings <= self.log_size[0]))

    @property
    def share_above(self) -> float:
        """Share of draws in which the shallower network is better over the whole range."""
        return float(np.mean(self.crossings >= self.log_size[-1]))


@dataclass(frozen=True)
class _Model:
    """One choice of orders. For n losses: `design` (n, k) is divided by the noise, `solve` (k, n) its pseudo-inverse.

    The last `order + 1` of the k coefficients are those of the difference.
    """

    order: int
    design: Floats
    solve: Floats


def draw_crossings(
    shallow: Curve,
    deep: Curve,
    noise: Noise,
    span: tuple[float, float],
    n_common: int,
    draws: int,
    rng: np.random.Generator,
) -> CrossingDraws:
    """Fit both curves and draw their crossings in `span` (log sizes), where each has at least `n_common` >= 4 sizes."""
    x = np.concatenate([shallow.log_size, deep.log_size])
    y = np.concatenate([shallow.loss, deep.loss]) / noise.std
    widths = np.concatenate([shallow.width, deep.width])
    seeds = noise.runs_at(widths, np.concatenate([shallow.seeds, deep.seeds]))
    is_deep = np.arange(len(x)) >= len(shallow.size)
    designs = _designs(x, is_deep, max_order=min(MAX_ORDER, n_common - 1))
    best, scatter = least([design for _, design in designs], y, seeds, noise.dof)
    err = scatter.std(seeds)
    models = [
        _Model(
            order, design / err[:, None], np.asarray(np.linalg.pinv(design / err[:, None]), dtype=np.float64)
        )
        for order, design in designs
    ]
    fitted, coefficients = _fit(models, y[None, :] / err)
    stds = scatter.draw(draws, rng, noise.drawn_tilts(widths, draws, rng))
    drawn = fitted[0] + stds / err * rng.standard_normal((draws, len(x)))
    _, drawn_coefficients = _fit(models, drawn)

    grid = np.linspace(*span, GRID)
    basis = noise.std * legendre.legvander(unit(grid, x), MAX_ORDER)
    differences = drawn_coefficients @ basis.T
    worst, low, high, best_case = np.quantile(
        differences, (SIGNIFICANT[0], *INTERVAL, SIGNIFICANT[1]), axis=0
    )
    difference = (coefficients @ basis.T)[0]
    return CrossingDraws(
        log_size=grid,
        difference=difference,
        low=low,
        high=high,
        signs=(worst > 0).astype(np.int8) - (best_case < 0).astype(np.int8),
        crossing=float(_crossing(difference[None, :], grid)[0]),
        crossings=_crossing(differences, grid),
        noise_scale=scatter.scale,
        outliers=tuple(
            ((deep if is_deep[at] else shallow).depth, int(widths[at]), pull)
            for at, pull in outlying(designs[best][1], y, seeds, noise.dof)
        ),
    )


def _designs(x: Floats, is_deep: npt.NDArray[np.bool_], max_order: int) -> list[tuple[int, Floats]]:
    """Order of `g` and design (n, k) for all pairs of orders, that of `g` from 3 to the order of `f`.

    All orders stay below `max_order`, so that neither curve is interpolated.
    """
    basis = legendre.legvander(unit(x, x), max_order)
    return [
        (order, np.hstack([basis[:, : shared + 1], basis[:, : order + 1] * is_deep[:, None]]))
        for order in range(min(LEAST_ORDER, max_order - 1), max_order)
        for shared in range(order, max_order + 1)
        if shared + order + 2 < len(x)
    ]


def _fit(models: list[_Model], y: Floats) -> tuple[Floats, Floats]:
    """Fit (m, n) whitened losses by each model and keep, row by row, the one with the least AIC, `chi2 + 2 k`.

    Returns the fitted losses (m, n) and the coefficients of `g` (m, MAX_ORDER + 1).
    """
    least_aic = np.full(len(y), np.inf)
    fitted, difference = np.empty_like(y), np.zeros((len(y), MAX_ORDER + 1))
    for model in models:
        coefficients = y @ model.solve.T
        values = coefficients @ model.design.T
        aic = ((y - values) ** 2).sum(axis=1) + 2.0 * model.design.shape[1]
        better = aic < least_aic
        least_aic[better], fitted[better] = aic[better], values[better]
        difference[better] = 0.0
        difference[better, : model.order + 1] = coefficients[better, -model.order - 1 :]
    return fitted, difference


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
