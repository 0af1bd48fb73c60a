"""Loss as a smooth function of size and depth, through shapes that lie anywhere: the average of several forms.

Each form (`surface_forms.py`) is fitted to all shapes; its weight is its share of the predictive density of the left-
out shapes, over Bayesian bootstraps of the shapes (pseudo-BMA+: Yao et al. 2018). The uncertainty is a parametric
bootstrap: new losses are drawn about the form's fit, with the noise of seeds and of the residuals together
(`noise.Scatter`), and fitted again; each form contributes draws in proportion to its weight.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
from scipy import stats  # type: ignore[import-untyped]

from shapelaw.advice.evidence.losses import lowest, power
from shapelaw.advice.evidence.separable import Separable, best_fit, ridged, sensitivities, solve
from shapelaw.advice.surface import forms
from shapelaw.advice.surface.forms import Form, Frame, Shapes, SurfaceStatus
from shapelaw.fits.line import Floats
from shapelaw.fits.noise import Noise, scatter_about
from shapelaw.fits.projection import predictive_weights

# chance of so large a gain by depth where depth changes nothing, above which no best depth is told
TOLD = 0.05
DROWNED = 8.0  # residuals of so many times the seed noise replace it
PERMUTED = 999  # times that depths are permuted
OVERLAP = 0.1  # of the shapes that both halves have
EXPONENT = np.array([0.2]), np.array([0.25])  # mean and standard deviation of a power law's exponent
SPARE = 2  # shapes that a form needs beyond its parameters


@dataclass(frozen=True)
class FittedForm:
    """A form's best parameters theta (k,) and coefficients (m,), its draws (d, k) and (d, m), and its weight.

    `left_out` is the root mean square error of the losses of left-out shapes, by the leverage of each; `scatter` the
    typical distance of a run from the surface. `levels` (k,) are those of `Shapes.levels`. `halves`: theta (2, k) and
    coefficients (2, m) of the fits to the shallower and to the deeper half of the shapes (`halves_of`), where there are
    such.
    """

    form: Form
    theta: Floats
    coefficients: Floats
    log_density: float
    left_out: float
    scatter: float
    levels: Floats
    halves: tuple[Floats, Floats] | None = None
    weight: float = 0.0
    drawn_theta: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    drawn_coefficients: Floats = field(default_factory=lambda: np.zeros((0, 0)))

    @property
    def covariance(self) -> Floats | None:
        """The (k, k) covariance of theta over the draws; None with fewer than ten."""
        if len(self.drawn_theta) < 10 or not len(self.theta):
            return None
        return np.atleast_2d(np.cov(self.drawn_theta, rowvar=False))

    def places(self, x: Floats, z: Floats) -> Floats:
        """(1 or 3,) the best of (p,) log depths `z` of log sizes `x`: by all shapes, and by each half where there are
        halves.
        """
        theta, coefficients = self.theta[None], self.coefficients[None]
        if self.halves is not None:
            theta = np.concatenate([theta, self.halves[0]])
            coefficients = np.concatenate([coefficients, self.halves[1]])
        return lowest(self.form.model.values(theta, coefficients, x, z), z)[0]


@dataclass(frozen=True)
class Surface:
    """The forms fitted to the shapes by falling weight; none unless `status` is converged. `message` says why.

    `chance` is that of the shapes' losses following their depths so well by noise alone: see `told`.
    """

    shapes: Shapes
    noise: Noise | None
    status: SurfaceStatus
    message: str
    forms: tuple[FittedForm, ...] = ()
    chance: float = 1.0

    @property
    def told(self) -> bool:
        """True where depth changes the loss significantly, without which every best depth is one of the noise."""
        return self.chance < TOLD

    @property
    def usable(self) -> bool:
        return self.status is SurfaceStatus.CONVERGED

    @property
    def why_untold(self) -> str:
        """Why nothing is told of depths; empty where something is."""
        if not self.usable:
            return f"{self.status}: {self.message}"
        return "" if self.told else "depth makes no difference beyond the noise"

    @property
    def scatter(self) -> float:
        """Typical distance of one run from the surface, in nats: the average over forms."""
        return sum(one.weight * one.scatter for one in self.forms) if self.forms else math.nan

    @property
    def left_out(self) -> float:
        """Root mean square error of the losses of left-out shapes: the average over forms, in nats."""
        return sum(one.weight * one.left_out for one in self.forms) if self.forms else math.nan

    @property
    def draws(self) -> int:
        return sum(len(one.drawn_theta) for one in self.forms)

    @property
    def at_one_level(self) -> Floats:
        """(n,) losses of the shapes, had all of them the most frequent number of tokens."""
        levels = sum(one.weight * one.levels for one in self.forms)
        return np.asarray(self.shapes.loss - self.shapes.levels @ levels)

    def losses(self, x: Floats, z: Floats, moves: Floats | float = 0.0) -> Floats:
        """(draws, p) losses at (p,) points, form after form; (draws,) `moves` of the surface are in log depth."""
        moved = np.broadcast_to(moves, self.draws)
        found = np.empty((self.draws, len(x)))
        first = 0
        for one in self.forms:
            mine = moved[first : first + len(one.drawn_theta)]
            for move in np.unique(mine):
                rows = np.flatnonzero(mine == move)
                drawn = one.drawn_theta[rows], one.drawn_coefficients[rows]
                found[first + rows] = one.form.model.values(*drawn, x, z - move)
            first += len(mine)
        return found

    def fitted(self, x: Floats, z: Floats) -> Floats:
        """(p,) losses at (p,) points: the weighted mean of the forms."""
        parts = [one.weight * one.form.model.values(one.theta, one.coefficients, x, z) for one in self.forms]
        return np.asarray(sum(parts), dtype=np.float64)

    def moves(self, x: Floats, z: Floats) -> Floats | None:
        """(2,) by how much the best of (p,) log depths moves where a half of the shapes is alone: the forms' mean.

        None where no form has halves.
        """
        halved = [form for form in self.forms if form.halves is not None]
        if not halved:
            return None
        at = np.stack([form.places(x, z) for form in halved])
        return np.average(at[:, 1:] - at[:, :1], axis=0, weights=[form.weight for form in halved])


def halves_of(shapes: Shapes) -> npt.NDArray[np.bool_] | None:
    """(2, n) the shapes that are shallow, and those that are deep for their size; `OVERLAP` of all are in both.

    None where one of them has fewer than three depths, with which no best depth can be told.
    """
    deep = shapes.z - _usual_depth(shapes)
    low, high = np.quantile(deep, (0.5 - OVERLAP / 2.0, 0.5 + OVERLAP / 2.0))
    halves = np.stack([deep <= high + 1e-9, deep >= low - 1e-9])
    return halves if min(len(np.unique(shapes.depth[half])) for half in halves) >= 3 else None


def _usual_depth(shapes: Shapes) -> Floats:
    """(n,) the log depth that shapes of this size have: a line in the log size, or the mean of one size."""
    degree = 1 if np.ptp(shapes.x) > forms.NARROW else 0
    return np.asarray(np.polyval(np.polyfit(shapes.x, shapes.z, degree), shapes.x))


def fit_surface(shapes: Shapes, noise: Noise | None, *, draws: int = 1000, seed: int = 0) -> Surface:
    """Fit all forms that the number of shapes allows, weigh them, and draw `draws` surfaces in all.

    Without a noise estimate the residuals are the noise. The status is "too few shapes" with fewer than
    `LEAST_SHAPES` shapes, and "not identifiable" where the depth is a function of the size.
    """
    refused = forms.why_no_surface(shapes)
    if refused is not None:
        return Surface(shapes, noise, *refused)
    frame = Frame.of(shapes.x, shapes.z)
    unit, dof = _unit(shapes, noise)
    halves = halves_of(shapes)
    fits = [
        _fit(form, shapes, unit, dof, halves)
        for form in forms.surface_forms(frame)
        if len(shapes) >= form.free + shapes.levels.shape[1] + SPARE
    ]
    fits.append(_fit_smooth(frame, shapes, unit, dof))
    families = [one.fitted.form.family for one in fits]  # they start with equal shares
    start = [1.0 / (len(forms.FAMILIES) * families.count(family)) for family in families]
    weights = predictive_weights(np.array([one.log_density for one in fits]), np.array(start))
    rng = np.random.default_rng(seed)
    done = []
    for one, weight, count in zip(fits, weights, _shares(weights, draws), strict=True):
        theta, coefficients = one.draw(int(count), rng)
        weighted = replace(one.fitted, weight=float(weight))
        done.append(replace(weighted, drawn_theta=theta, drawn_coefficients=coefficients))
    message = f"{len(shapes)} shapes, {len(done)} forms"
    by_weight = tuple(sorted(done, key=lambda one: -one.weight))
    chance = chance_without_depth(shapes, noise)
    return Surface(shapes, noise, SurfaceStatus.CONVERGED, message, by_weight, chance)


@dataclass(frozen=True)
class _Fit:
    """A form's best fit before it has a weight and draws.

    `log_density` (n,) is that of each left-out loss, and `draw` gives so many theta and coefficients.
    """

    fitted: FittedForm
    log_density: Floats
    draw: Callable[[int, np.random.Generator], tuple[Floats, Floats]]


def _unit(shapes: Shapes, noise: Noise | None) -> tuple[float, float]:
    """The unit of the noise and the degrees of freedom of its estimate.

    These are 0 where the noise comes from residuals alone: with no seeds repeated, or with residuals so far above the
    seeds' noise that it says nothing.
    """
    residual = max(forms.spread_about_polynomial(shapes), 1e-9)
    if noise is None or residual > DROWNED * noise.std:
        return residual, 0.0
    return noise.std, noise.dof


def _fit(form: Form, shapes: Shapes, unit: float, dof: float, halves: npt.NDArray[np.bool_] | None) -> _Fit:
    x, z, y = shapes.x, shapes.z, shapes.loss
    model = _with_levels(form.model, shapes.levels)
    err = np.full(len(y), unit) / np.sqrt(shapes.seeds)
    start = form.starts
    for _ in range(3):  # the noise follows from the residuals, and the residuals from the noise
        theta, coefficients = best_fit(model, x, z, y, err, start)
        design = sensitivities(model, x, z, theta, coefficients)
        fitted = model.values(theta, coefficients, x, z)
        off = y - fitted
        noise = scatter_about(_independent(design), off / unit, shapes.seeds, dof)
        err, start = np.maximum(noise.std(shapes.seeds) * unit, 1e-9), theta[None, :]
    white = design / err[:, None]
    prior = np.zeros(design.shape[1])
    prior[form.linear + shapes.levels.shape[1] :] = model.std**-2.0
    hat = np.einsum("nk,nk->n", white, np.linalg.solve(ridged(white.T @ white) + np.diag(prior), white.T).T)
    left = np.maximum(1.0 - hat, forms.LEFT)
    density = stats.t.logpdf(off / err / left, max(noise.dof, 1.0), scale=left**-0.5) - np.log(err)
    of_halves = None
    if halves is not None:
        half_err = np.where(halves, err, np.inf)
        found = solve(model, x, z, np.broadcast_to(y, halves.shape), half_err, np.tile(theta, (2, 1)))
        of_halves = found.theta, found.coefficients[:, : form.linear]
    error = float(np.sqrt(np.mean((off / left) ** 2)))
    scatter, linear = noise.scale * unit, form.linear
    # a form that predicts left-out shapes worse than it fits is wider: with 12 shapes its own residuals are too small
    wider = math.sqrt(max(error / scatter, 1.0))

    def draw(count: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        errors = np.maximum(wider * unit * noise.draw(count, rng), 1e-9)
        losses = fitted + errors * rng.standard_normal((count, len(shapes)))
        found = solve(model, x, z, losses, errors, np.tile(theta, (count, 1)), steps=15)
        return found.theta, found.coefficients[:, :linear]

    quality = float(density.sum()), error, scatter
    best = FittedForm(form, theta, coefficients[:linear], *quality, coefficients[linear:], of_halves)
    return _Fit(best, density, draw)


def _fit_smooth(frame: Frame, shapes: Shapes, unit: float, dof: float) -> _Fit:
    smooth = forms.fit_smooth(frame, shapes.x, shapes.z, shapes.loss / unit, shapes.seeds, dof, shapes.levels)
    own = slice(smooth.form.linear, smooth.design.shape[1])  # coefficients of levels
    coefficients, density = unit * forms.mean_smooth(smooth), smooth.log_density - math.log(unit)

    def draw(count: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        drawn = unit * forms.draw_smooth(smooth, count, rng)
        return np.zeros((count, 0)), np.delete(drawn, own, axis=1)

    total = float(smooth.log_density.sum()) - len(shapes) * math.log(unit)
    quality = total, unit * smooth.left_out_error(), unit * smooth.scatter()
    mean = np.delete(coefficients, own)
    return _Fit(FittedForm(smooth.form, np.zeros(0), mean, *quality, coefficients[own]), density, draw)


def _with_levels(model: Separable, levels: Floats) -> Separable:
    """A model of the losses at the shapes themselves, with (n, k) columns of levels as its last ones."""

    def columns(theta: Floats, x: Floats, z: Floats) -> Floats:
        own = model.columns(theta, x, z)
        return np.concatenate([own, np.broadcast_to(levels, (*own.shape[:-1], levels.shape[1]))], axis=-1)

    return replace(model, columns=columns) if levels.size else model


def chance_without_depth(shapes: Shapes, noise: Noise | None) -> float:
    """The share of permuted depths that explain the losses as well: a test of terms of log depth.

    They stand beside a power law of the size alone, fitted without depth, and its slope, and are a penalty's first
    ones: slope times z, z² and x z. What is permuted among the shapes is how far each is above or below the usual depth
    of its size, so that neither what the scatter of the losses is like nor a law that bends otherwise makes it small.
    """
    frame = Frame.of(shapes.x, shapes.z)
    x, z, y = shapes.x - frame.x, shapes.z - frame.z, shapes.loss
    err = 1.0 / np.sqrt(shapes.seeds)
    sized = frame.x_span > forms.NARROW
    alpha = _exponent(x, y, _unit(shapes, noise)[0] * err, shapes.levels)
    slope = np.exp(-np.clip(alpha * x, -30.0, 30.0))
    law = power(np.asarray(alpha), x)
    size = [np.ones_like(x), law, x * slope, x**2 * slope] if sized else [np.ones_like(x)]
    basis = _independent(np.column_stack([*size, shapes.levels]) / err[:, None])
    target = y / err - basis @ (basis.T @ (y / err))
    usual = _usual_depth(shapes) - frame.z
    order = np.argsort(np.random.default_rng(0).random((PERMUTED, len(z))), axis=1)
    depths = np.concatenate([z[None], usual + (z - usual)[order]])
    depth = np.stack([slope * depths, slope * depths**2, *([slope * x * depths] if sized else [])], axis=2)
    depth = depth / err[:, None]
    depth = depth - basis @ (basis.T @ depth)
    bases, counted = _bases(depth)
    explained = (counted * (target @ bases) ** 2).sum(axis=1)
    return float(np.mean(explained >= explained[0] * (1.0 - 1e-9)))


def _exponent(x: Floats, y: Floats, err: Floats, levels: Floats) -> float:
    """The exponent of the power law of (n,) log sizes alone that fits (n,) losses best, beside (n, k) levels."""
    law = Separable(
        lambda theta, x, _: np.stack([np.ones_like(x + theta), power(theta, x)], axis=-1), *EXPONENT
    )
    starts = np.array([[0.05], [0.2], [0.5]])
    theta, _ = best_fit(_with_levels(law, levels), x, x, y, err, starts)
    return float(theta[0])


def _independent(design: Floats) -> Floats:
    """An orthonormal basis of the columns: parameters that change nothing, or the same, count once or not at all."""
    basis, counted = _bases(design)
    return np.asarray(basis[:, counted])


def _bases(designs: Floats) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """(..., n, m) orthonormal bases of the columns of designs, and which (..., m) of theirs count."""
    length = np.maximum(np.linalg.norm(designs, axis=-2, keepdims=True), 1e-300)
    basis, size, _ = np.linalg.svd(designs / length, full_matrices=False)
    return np.asarray(basis), np.asarray(size > 1e-7 * size[..., :1])


def _shares(weights: Floats, draws: int) -> npt.NDArray[np.int64]:
    """Whole numbers of draws in proportion to the weights, `draws` in all."""
    ends = np.round(np.cumsum(weights / weights.sum()) * draws).astype(np.int64)
    return np.diff(ends, prepend=0)
