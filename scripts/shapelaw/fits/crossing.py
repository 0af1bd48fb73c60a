"""The width at which the deeper of two networks becomes better: our own estimator, and the paper's rule.

Both loss curves are smooth in `x = log size`: the shallower is `f(x)`, the deeper `f(x) + g(x)`, with `f` and `g`
polynomials (Legendre) whose orders AIC picks, `g` at least a cubic: lower orders bias the crossing or, where they fit
by luck, make the interval too short. The fit is linear least squares, so refitting new noise, with orders picked anew,
costs a few matrix products for all draws at once. The noise is of seeds and of residuals together (`Scatter`), drawn
from its posterior, so that its uncertainty enters the draws.

The crossing of a draw is the `x` that maximises the integral of `g` from the left: up to there the deeper network is
worse on balance, from there on better. With one change of sign that is the zero of `g`; with none it is an end of the
range; wiggles around zero still give one answer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
import numpy.typing as npt
from numpy.polynomial import legendre

from shapelaw.fits.curves import (
    Curve,
    Side,
    Transition,
    TransitionStatus,
    no_transition,
    shared_range,
    sizes_in,
)
from shapelaw.fits.line import Floats
from shapelaw.fits.noise import Noise, least, outlying
from shapelaw.specs.sizes import LEAST_SIZES, SAME_SIZE

# a lower order that fits by luck would make the errors too small
LEAST_ORDER, MAX_ORDER = 3, 6
KNOTS = 4
# sizes farther apart than this factor leave a gap in which the curve is unknown
FAR = 4.0


def unit(x: npt.ArrayLike, knots: Floats) -> Floats:
    """`x` on the scale on which `knots` span [-1, 1]."""
    low, high = float(knots.min()), float(knots.max())
    return (2.0 * np.asarray(x, dtype=np.float64) - low - high) / (high - low)


def smooth_loss(curve: Curve, size: npt.ArrayLike, noise: Noise | None) -> tuple[Floats, Floats]:
    """Smoothed loss and its standard error at (m,) sizes, from seed noise and residuals together (`scatter.py`).

    NaN where the curve doesn't reach (see `reaches`), and everywhere with fewer than four sizes. Without a noise
    estimate there is no smoothing: the curve is the straight pieces of `Curve.loss_at`, its error NaN.
    """
    knots, x = curve.log_size, np.log(np.asarray(size, dtype=np.float64))
    reached = reaches(curve, x)
    if noise is None or not reached.any():
        loss, loss_err = curve.loss_at(size)
        return np.where(reached, loss, np.nan), np.where(reached, loss_err, np.nan)
    basis: Floats = np.asarray(legendre.legvander(unit(knots, knots), MAX_ORDER), dtype=np.float64)
    highest = min(MAX_ORDER, len(knots) - 2)
    designs: list[Floats] = [basis[:, : order + 1] for order in range(min(LEAST_ORDER, highest), highest + 1)]
    y = curve.loss / noise.std
    seeds = noise.runs_at(curve.width, curve.seeds)
    best, scatter = least(designs, y, seeds, noise.dof)
    err = scatter.std(seeds)
    solve = np.linalg.pinv(designs[best] / err[:, None])
    # (m, n): the smoothed loss is linear in the losses
    at = legendre.legvander(unit(x, knots), designs[best].shape[1] - 1) @ solve
    loss, loss_err = noise.std * (at @ (y / err)), noise.std * np.sqrt((at**2).sum(axis=1))
    return np.where(reached, loss, np.nan), np.where(reached, loss_err, np.nan)


def reaches(curve: Curve, log_size: Floats) -> npt.NDArray[np.bool_]:
    """True for those of (m,) log sizes that a curve of four sizes or more covers; with fewer it covers none.

    A curve covers its range and 10% beyond, but not the inside of a gap: between neighbours more than a factor `FAR`
    apart nothing was measured.
    """
    knots = curve.log_size
    if len(knots) < KNOTS:
        return np.zeros(log_size.shape, dtype=np.bool_)
    right = np.clip(np.searchsorted(knots, log_size), 1, len(knots) - 1)
    nearest = np.minimum(np.abs(log_size - knots[right]), np.abs(log_size - knots[right - 1]))
    between = (log_size >= knots[0]) & (log_size <= knots[-1])
    close = knots[right] - knots[right - 1] <= np.log(FAR)
    return np.asarray((between & close) | (nearest <= SAME_SIZE))


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


BOOTSTRAP = "bootstrap"
# a share of draws below this counts as "none"
RARE = 0.025
# the least error of a bound, as a share of its width
LEAST_BOUND_ERR = 0.01


def bootstrap_crossing(
    shallow: Curve, deep: Curve, noise: Noise | None, *, draws: int = 2000, seed: int = 0
) -> tuple[Transition, CrossingDraws | None]:
    """The crossing of two loss curves with the 68% interval of its bootstrap distribution.

    `width_err` is half the interval, all in widths of the shallower network. A crossing is reported if the deeper
    network is significantly worse on its left, significantly better on its right and nowhere significantly the other
    way round; if at least 95% of the draws cross within the sizes that both depths cover; and if each depth has at
    least two sizes on either side. Otherwise the status says what is known. The draws are None where no curves were
    fitted (no noise, or fewer than 4 sizes in common).
    """
    if noise is None:
        return no_transition(shallow, deep, BOOTSTRAP, TransitionStatus.NO_NOISE), None
    span = shared_range(shallow, deep)
    sizes = [sizes_in(curve, *span) for curve in (shallow, deep)]
    n_common = min(len(x) for x in sizes)
    if n_common < LEAST_SIZES or span[0] >= span[1]:
        return no_transition(shallow, deep, BOOTSTRAP, TransitionStatus.TOO_FEW_SIZES), None

    found = draw_crossings(shallow, deep, noise, span, n_common, draws, np.random.default_rng(seed))
    inner = (max(x[1] for x in sizes), min(x[-2] for x in sizes))
    status, side = _verdict(found, np.clip(np.concatenate(sizes), *span), inner)
    transition = replace(
        no_transition(shallow, deep, BOOTSTRAP, status),
        noise_scale=found.noise_scale,
        caution="; ".join(_cautions(shallow, deep, noise, found, n_common)),
    )
    if inner[0] < inner[1]:
        low, high = (float(w) for w in shallow.width_at(inner))
        transition = replace(transition, reportable_low=low, reportable_high=high)
    if status is TransitionStatus.CROSSING:
        quantiles = np.quantile(found.crossings, INTERVAL)
        width, low, high = (float(w) for w in shallow.width_at([found.crossing, *quantiles]))
        err = (high - low) / 2
        transition = replace(transition, width=width, width_err=err, width_low=low, width_high=high)
    elif side is not None:
        bound, bound_err = _bound(shallow, found, side)
        transition = replace(transition, bound=bound, bound_err=bound_err, side=side)
    return transition, found


def _verdict(
    found: CrossingDraws, sizes: Floats, inner: tuple[float, float]
) -> tuple[TransitionStatus, Side | None]:
    """Status and side from the significant signs of the difference at the trained `sizes` (log, any order)."""
    at = np.searchsorted(found.log_size, np.sort(sizes)).clip(0, len(found.log_size) - 1)
    signs = found.signs[at]
    changes = [int(sign) for sign, _ in groupby(signs[signs != 0])]
    if len(changes) > 2:
        return TransitionStatus.SEVERAL, None
    if changes == [-1, 1]:
        return TransitionStatus.REVERSED, None
    if changes == [1]:
        everywhere = bool((signs == 1).all())
        return TransitionStatus.SHALLOWER_BETTER if everywhere else TransitionStatus.AT_EDGE, Side.ABOVE
    if changes == [-1]:
        if (signs == -1).all():
            return TransitionStatus.DEEPER_BETTER, Side.BELOW
        # better at small sizes and then worse: larger sizes are open
        return (
            (TransitionStatus.AT_EDGE, Side.BELOW) if signs[-1] == -1 else (TransitionStatus.TOO_NOISY, None)
        )
    if not changes:
        return TransitionStatus.TOO_NOISY, None
    low, high = np.quantile(found.crossings, INTERVAL)
    if high - low > (found.log_size[-1] - found.log_size[0]) / 2:
        return TransitionStatus.TOO_NOISY, None
    inside = inner[0] <= found.crossing <= inner[1] and found.share_below + found.share_above < 2 * RARE
    return (TransitionStatus.CROSSING, None) if inside else (TransitionStatus.AT_EDGE, Side.AT)


def _bound(shallow: Curve, found: CrossingDraws, side: Side) -> tuple[float, float]:
    """The width beyond which 84% of the draws cross, and its distance to that of 97.5%; or the crossing's own."""
    if side is Side.AT:
        low, high = shallow.width_at(np.quantile(found.crossings, INTERVAL))
        bound, err = float(shallow.width_at(found.crossing)), float(high - low) / 2
    else:
        likely = (0.16, 0.025) if side is Side.ABOVE else (0.84, 0.975)
        at, further = shallow.width_at(np.quantile(found.crossings, likely))
        bound, err = float(at), abs(float(further - at))
    return bound, max(err, LEAST_BOUND_ERR * bound)


def _cautions(shallow: Curve, deep: Curve, noise: Noise, found: CrossingDraws, n_common: int) -> list[str]:
    """The reasons to doubt an interval, each in a few words."""
    cautions = [
        f"L{depth}-d{width} lies {pull:+.1f} sigma off its curve" for depth, width, pull in found.outliers
    ]
    if n_common == LEAST_SIZES:
        cautions.append(f"only {LEAST_SIZES} sizes in common")
    repeated = np.concatenate([curve.log_size[curve.seeds > 1] for curve in (shallow, deep)])
    middle = float(found.log_size[[0, -1]].mean())
    if np.isfinite(noise.dof) and not repeated.size:
        cautions.append("neither depth has repeated seeds")
    elif np.isfinite(noise.dof) and (repeated.max() < middle or repeated.min() > middle):
        cautions.append(f"seeds are repeated at {'small' if repeated.max() < middle else 'large'} sizes only")
    return cautions


@dataclass(frozen=True)
class Gaps:
    """Two depths compared at the (n,) growing sizes of the shallower that the deeper reaches.

    Attributes:
        width: of the shallower network.
        deeper_width: of the trained network of the deeper depth that is nearest in size.
        loss: of the shallower network.
        deeper_loss: of the deeper depth at the same size, on the line in log size through its two neighbours.
        err: standard error of `loss - deeper_loss` by the noise between seeds alone; NaN without a noise estimate.
    """

    width: Floats
    deeper_width: Floats
    loss: Floats
    deeper_loss: Floats
    err: Floats

    @property
    def deeper_by(self) -> Floats:
        """(n,) by how much the deeper network is better, in the loss's unit."""
        return self.loss - self.deeper_loss

    @property
    def z(self) -> Floats:
        """(n,) `deeper_by` in standard errors."""
        return self.deeper_by / self.err

    def better(self, noise: Noise | None, confidence: float = 0.95) -> npt.NDArray[np.int64]:
        """(n,) 1 where the deeper network is significantly better, -1 where the shallower is, else 0."""
        threshold = (
            np.inf
            if noise is None
            else noise.threshold_at(self.width, self.deeper_width, confidence=confidence)
        )
        return np.where(np.abs(self.z) > threshold, np.sign(self.z), 0).astype(np.int64)


def gaps_of(shallow: Curve, deep: Curve) -> Gaps:
    """The gaps of two depths at equal size; sizes count as equal within 10%, as everywhere (`Curve.loss_at`)."""
    deep_loss, deep_err = deep.loss_at(shallow.size)
    inside = np.isfinite(deep_loss)
    nearest = np.abs(deep.log_size - shallow.log_size[inside, None]).argmin(axis=1)
    return Gaps(
        shallow.width[inside],
        deep.width[nearest],
        shallow.loss[inside],
        deep_loss[inside],
        np.hypot(shallow.loss_err[inside], deep_err[inside]),
    )


PAPER_RULE = "paper rule"
MIN_SIZES = 3
# standard errors below which two losses count as equal
ALIKE = 1.0


def paper_rule(shallow: Curve, deep: Curve, noise: Noise | None, *, confidence: float = 0.95) -> Transition:
    """Levine et al. 2020, section 5.2.2: the mean of two widths of the shallower network.

    The right one is the first size at which the shallower network is significantly worse than the deeper one
    (interpolated at that size, a two-sided test at `confidence` on the pooled seed noise). The left one is the last
    size before it at which the two are alike or the shallower is better: it is worse by less than `ALIKE` standard
    errors. Sizes between the two are neither, so the two need not be neighbours: four of the five published brackets
    enclose trained widths. The error is half their distance, as the paper's table 4a has it (its text says the
    distance).

    No transition is reported when a bracketing size is the first or the last of the comparison, since nothing
    beyond it confirms that side (at the edge), or when a larger size contradicts it significantly (too noisy).
    """
    if noise is None:
        return no_transition(shallow, deep, PAPER_RULE, TransitionStatus.NO_NOISE)
    gaps = gaps_of(shallow, deep)
    if len(gaps.width) < MIN_SIZES:
        return no_transition(shallow, deep, PAPER_RULE, TransitionStatus.TOO_FEW_SIZES)

    better = gaps.better(noise, confidence)
    right = int(np.argmax(better > 0))
    alike = np.flatnonzero(gaps.z[:right] < ALIKE)

    status = _status(better, alike)
    if status is not TransitionStatus.CROSSING:
        return no_transition(shallow, deep, PAPER_RULE, status)
    low, high = float(gaps.width[alike[-1]]), float(gaps.width[right])
    return Transition(
        shallow.depth,
        deep.depth,
        (low + high) / 2,
        (high - low) / 2,
        low,
        high,
        PAPER_RULE,
        TransitionStatus.CROSSING,
    )


def _status(better: npt.NDArray[np.int64], alike: npt.NDArray[np.intp]) -> TransitionStatus:
    """The status from `Gaps.better` at n >= 3 sizes; `alike`: those before the first where the deeper is better."""
    shallow_worse, deep_worse = better > 0, better < 0
    if not shallow_worse.any():
        if deep_worse[-1]:
            return TransitionStatus.SHALLOWER_BETTER
        return TransitionStatus.AT_EDGE if deep_worse.any() else TransitionStatus.TOO_NOISY
    first = int(np.argmax(shallow_worse))
    if deep_worse[first:].any():
        return TransitionStatus.TOO_NOISY
    if first == 0:
        return TransitionStatus.DEEPER_BETTER
    if not alike.size or alike[-1] == 0 or first == len(shallow_worse) - 1:
        return TransitionStatus.AT_EDGE
    return TransitionStatus.CROSSING
