"""Least squares of models that are linear in some parameters, for many data sets at once (variable projection).

A model `y = columns(theta) @ c` has few non-linear parameters theta; for each theta the best linear coefficients c
follow from a small linear solve, so only theta is searched (Golub and Pereyra 1973; the Jacobian is Kaufman's, 1975).
The steps are Levenberg and Marquardt's. A normal prior of each theta keeps in reach what the data say nothing of.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from shapelaw.fits.line import Floats

# theta (..., k), x (p,), z (p,) -> columns (..., p, m)
Columns = Callable[[Floats, Floats, Floats], Floats]
STEP = 1e-6  # of finite differences, in standard deviations of the prior
ENOUGH = 1e-4  # a smaller gain in chi2 ends the search
STUCK = 1e8  # damping at which no step helps any more
RIDGE = 1e-12  # of a Gram matrix, in units of its diagonal


@dataclass(frozen=True)
class Separable:
    """A model of k non-linear parameters with normal priors (mean, std), and the columns of its linear ones."""

    columns: Columns
    mean: Floats
    std: Floats

    def values(self, theta: Floats, coefficients: Floats, x: Floats, z: Floats) -> Floats:
        """(..., p) values at (p,) points of (..., k) and (..., m) parameters."""
        values: Floats = np.einsum("...pm,...m->...p", self.columns(theta, x, z), coefficients)
        return values


@dataclass(frozen=True)
class Solved:
    """For b data sets: theta (b, k), coefficients (b, m), and the cost (b,), chi2 plus the prior's share."""

    theta: Floats
    coefficients: Floats
    cost: Floats


def solve(
    model: Separable, x: Floats, z: Floats, y: Floats, err: Floats, start: Floats, steps: int = 30
) -> Solved:
    """Fit `y` (b, n) at points (n,) with standard errors (b, n), each data set from its own start (b, k)."""
    theta, active = start.copy(), np.arange(len(y))
    state = _project(model, x, z, y, err, theta)
    coefficients, cost = state.coefficients.copy(), state.cost.copy()
    damping = np.full(len(y), 1e-2)
    for _ in range(steps if theta.shape[1] else 0):
        step = _step(model, x, z, err[active], theta[active], state, damping[active])
        trial = theta[active] + step
        tried = _project(model, x, z, y[active], err[active], trial)
        better = tried.cost <= cost[active]
        gain = np.where(better, cost[active] - tried.cost, np.inf)
        moved = active[better]
        theta[moved], coefficients[moved] = trial[better], tried.coefficients[better]
        cost[moved] = tried.cost[better]
        damping[active] *= np.where(better, 0.2, 6.0)
        going = (gain > ENOUGH) & (damping[active] < STUCK)
        state = _State(*(_where(better, new, old)[going] for new, old in zip(tried, state, strict=True)))
        active = active[going]
        if not len(active):
            break
    return Solved(theta, coefficients, cost)


def best_fit(
    model: Separable, x: Floats, z: Floats, y: Floats, err: Floats | float, starts: Floats, steps: int = 30
) -> tuple[Floats, Floats]:
    """The theta (k,) and coefficients (m,) of the best fit to one data set (n,) from several starts (s, k)."""
    several = np.broadcast_to(y, (len(starts), len(y)))
    found = solve(model, x, z, several, np.broadcast_to(err, several.shape), starts, steps)
    best = int(found.cost.argmin())
    return found.theta[best], found.coefficients[best]


def sensitivities(model: Separable, x: Floats, z: Floats, theta: Floats, coefficients: Floats) -> Floats:
    """The (n, k + m) derivatives of the values by all parameters of one fit, the linear ones first."""
    columns = model.columns(theta, x, z)
    parts = [columns]
    for j, std in enumerate(model.std):
        moved = theta.copy()
        moved[j] += STEP * std
        change = (model.columns(moved, x, z) - columns) @ coefficients
        parts.append((change / (STEP * std))[:, None])
    return np.concatenate(parts, axis=1)


def ridged(gram: Floats) -> Floats:
    """A Gram matrix (k, k) with a trace of ridge, so that it can be inverted where columns depend on each other.

    Those of the second degree in log size and log depth do so in a grid of two widths.
    """
    return gram + np.diag(RIDGE * np.diag(gram) + 1e-300)


class _State(NamedTuple):
    """Whitened columns (b, n, m), the inverse of their Gram matrix, coefficients, residuals (b, n) and cost (b,)."""

    columns: Floats
    inverse: Floats
    coefficients: Floats
    residual: Floats
    cost: Floats


def _project(model: Separable, x: Floats, z: Floats, y: Floats, err: Floats, theta: Floats) -> _State:
    white = model.columns(theta, x, z) / err[:, :, None]
    gram = np.einsum("bnm,bnl->bml", white, white)
    scale = np.sqrt(np.einsum("bmm->bm", gram)) + 1e-100
    # columns of one length, and a trace of ridge: parallel columns stay harmless, and one that is zero
    unit = gram / (scale[:, :, None] * scale[:, None, :]) + 1e-11 * np.eye(gram.shape[1])
    inverse = np.linalg.inv(unit) / (scale[:, :, None] * scale[:, None, :])
    target = y / err
    coefficients = _through(inverse, white, target)
    residual = target - np.einsum("bnm,bm->bn", white, coefficients)
    prior = (((theta - model.mean) / model.std) ** 2).sum(axis=1)
    return _State(white, inverse, coefficients, residual, (residual**2).sum(axis=1) + prior)


def _step(
    model: Separable, x: Floats, z: Floats, err: Floats, theta: Floats, state: _State, damping: Floats
) -> Floats:
    count, k = theta.shape
    jacobian = np.empty((count, len(x), k))
    for j, std in enumerate(model.std):
        moved = theta.copy()
        moved[:, j] += STEP * std
        change = (model.columns(moved, x, z) / err[:, :, None] - state.columns) / (STEP * std)
        along = np.einsum("bnm,bm->bn", change, state.coefficients)
        inside = _through(state.inverse, state.columns, along)
        jacobian[:, :, j] = -(along - np.einsum("bnm,bm->bn", state.columns, inside))
    gradient = np.einsum("bnk,bn->bk", jacobian, state.residual) + (theta - model.mean) / model.std**2
    curvature = np.einsum("bnk,bnl->bkl", jacobian, jacobian) + np.diag(model.std**-2.0)
    diagonal = np.einsum("bkk->bk", curvature)[:, :, None] * np.eye(k)
    step = -np.linalg.solve(curvature + damping[:, None, None] * diagonal, gradient[:, :, None])[:, :, 0]
    return np.clip(step, -2.0 * model.std, 2.0 * model.std)


def _through(inverse: Floats, columns: Floats, values: Floats) -> Floats:
    """(b, m) coefficients of columns (b, n, m) in values (b, n), by the (b, m, m) inverse of their Gram matrix."""
    return np.asarray((inverse @ (columns.mT @ values[:, :, None]))[:, :, 0])


def _where(chosen: npt.NDArray[np.bool_], first: Floats, second: Floats) -> Floats:
    return np.where(chosen.reshape(-1, *[1] * (first.ndim - 1)), first, second)
