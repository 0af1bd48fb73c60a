"""Losses that are smooth in size, and by them our own estimator of the width at which a deeper network becomes better.

Both loss curves are smooth in `x = log size`: the shallower is `f(x)`, the deeper `f(x) + g(x)`, with `f` and `g`
polynomials (Legendre) whose orders AIC picks, `g` at least a cubic: lower orders bias the crossing or, where they fit
by luck, make the interval too short. The fit is linear least squares, so refitting new noise, with orders picked anew,
costs a few matrix products for all draws at once. The noise is of seeds and of residuals together (`Scatter`), drawn
from its posterior, so that its uncertainty enters the draws. Where both depths or one of them were trained in two
batches, their offset is one more coefficient.

The crossing of a draw is the `x` that maximises the integral of `g` from the left: up to there the deeper network is
worse on balance, from there on better. With one change of sign that is the zero of `g`; with none it is an end of the
range; wiggles around zero still give one answer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import groupby, product
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.polynomial import legendre

from shapelaw.fits.batches import apart, contrasts, told_apart
from shapelaw.fits.curves import Curve, Side, Transition, TransitionStatus, no_transition
from shapelaw.fits.noise import INTERVAL, Floats, Noise, least, outlying
from shapelaw.specs.sizes import LEAST_SIZES, SAME_SIZE

# a lower order that fits by luck would make the errors too small
LEAST_ORDER, MAX_ORDER = 3, 6
# sizes farther apart than this factor leave a gap in which the curve is unknown
FAR = 4.0


def smooth_loss(curve: Curve, size: npt.ArrayLike, noise: Noise | None) -> tuple[Floats, Floats]:
    """Smoothed loss and its standard error at (m,) sizes, from seed noise and residuals together (`noise.Scatter`).

    NaN where the curve doesn't reach (see `reaches`), and everywhere with fewer than four sizes. Without a noise
    estimate there is no smoothing: the curve is the straight pieces of `Curve.loss_at`, its error NaN.
    """
    knots, x = curve.log_size, np.log(np.asarray(size, dtype=np.float64))
    reached = reaches(curve, x)
    if noise is None or not reached.any():
        loss, loss_err = curve.loss_at(size)
        return np.where(reached, loss, np.nan), np.where(reached, loss_err, np.nan)
    basis, highest = _basis(knots, knots), min(MAX_ORDER, len(knots) - 2)
    designs = [basis[:, : order + 1] for order in range(min(LEAST_ORDER, highest), highest + 1)]
    y = curve.loss / noise.std
    seeds = noise.runs_at(curve.width, curve.seeds)
    best, scatter = least(designs, y, seeds, noise.dof)
    err = scatter.std(seeds)
    solve = np.linalg.pinv(designs[best] / err[:, None])
    # (m, n): the smoothed loss is linear in the losses
    at = _basis(x, knots)[:, : len(solve)] @ solve
    loss, loss_err = noise.std * (at @ (y / err)), noise.std * np.sqrt((at**2).sum(axis=1))
    return np.where(reached, loss, np.nan), np.where(reached, loss_err, np.nan)


def reaches(curve: Curve, log_size: Floats) -> npt.NDArray[np.bool_]:
    """True for those of (m,) log sizes that a curve of four sizes or more covers; with fewer it covers none.

    A curve covers its range and 10% beyond, but not the inside of a gap: between neighbours more than a factor `FAR`
    apart nothing was measured.
    """
    knots = curve.log_size
    if len(knots) < LEAST_SIZES:
        return np.zeros(log_size.shape, dtype=np.bool_)
    right = np.clip(np.searchsorted(knots, log_size), 1, len(knots) - 1)
    nearest = np.minimum(np.abs(log_size - knots[right]), np.abs(log_size - knots[right - 1]))
    between = (log_size >= knots[0]) & (log_size <= knots[-1])
    close = knots[right] - knots[right - 1] <= np.log(FAR)
    return np.asarray((between & close) | (nearest <= SAME_SIZE))


def shared_sizes(shallow: Curve, deep: Curve) -> tuple[tuple[float, float], tuple[Floats, Floats]]:
    """Lowest and highest log size that both curves cover, and the log sizes of either there, with 10% of tolerance.

    The lowest is above the highest where they share none.
    """
    of_both = shallow.log_size, deep.log_size
    low, high = max(float(x[0]) for x in of_both), min(float(x[-1]) for x in of_both)
    first, second = (x[(x >= low - SAME_SIZE) & (x <= high + SAME_SIZE)] for x in of_both)
    return (low, high), (first, second)


GRID = 400
# draws that a band in a figure takes
BAND_DRAWS = 2000
# shares of the draws' and of the jackknife's errors: the larger of two noisy numbers is too large (docs/results/
# calibration.md has what holds with these, on tables that they were not picked on)
OF_DRAWS, OF_SHAPES = 0.75, 0.8
# draws of one product of matrices: few enough for a cache, and for BLAS to take one thread (on a busy machine a product
# that several threads share waits for the last of them)
OF_FITS, OF_CROSSINGS = 500, 64


@dataclass(frozen=True)
class CrossingDraws:
    """The fitted difference of two loss curves, deeper minus shallower, and the crossings of its draws.

    `log_size` (GRID,) spans the sizes that both curves cover; `difference` (GRID,) is the fit there, and `basis` (GRID,
    k) times one of the `coefficients` (n_draws, k) is a draw of it. `worse` (m,) are the shares of draws in which the
    deeper network is worse at the trained `sizes` (log, ascending). `crossing` and `crossings` (n_draws,) are log
    sizes, at an end of the range for draws without a crossing, the draws' ascending; `without` (n,) are those of the
    fits that leave out one shape each, empty where too few would be left. `noise_scale` is the typical distance of a
    single run from its curve, in units of the seed noise; `outliers` are the (depth, width, sigmas) of shapes more than
    4 sigma off; `influence` (n,) is by how much each shape's loss moves the crossing, in log size per error of that
    loss, the shallower depth's first; `coincide` are the columns of batches whose offset the fit can't tell from the
    depths' difference.
    """

    log_size: Floats
    difference: Floats
    basis: Floats
    coefficients: Floats
    sizes: Floats
    worse: Floats
    crossing: float
    crossings: Floats
    without: Floats
    noise_scale: float
    outliers: tuple[tuple[int, int, float], ...]
    influence: Floats
    coincide: tuple[str, ...] = ()

    def quantiles(self, *shares: float) -> Floats:
        """The log sizes below which these shares of the draws cross."""
        return np.interp(shares, np.linspace(0.0, 1.0, len(self.crossings)), self.crossings)

    def band(self) -> Floats:
        """(2, GRID) low and high difference of 68% of the draws."""
        return np.quantile(self.basis @ self.coefficients[:BAND_DRAWS].T, INTERVAL, axis=1)

    @property
    def err_of_shapes(self) -> float:
        """The jackknife's standard error of the crossing over shapes (Tukey 1958), which knows no noise of seeds."""
        n = len(self.without)
        return math.sqrt((n - 1) * float(np.var(self.without))) if n else 0.0

    def half_width(self, of_draws: float) -> float:
        """Half an interval from half that of the draws; both it and the jackknife's are too wide alone.

        Without a jackknife, of four sizes in common, the draws' stays whole. The jackknife's does where a shape is off
        its curve, since the draws don't know of what it does.
        """
        if not len(self.without):
            return of_draws
        return max(OF_DRAWS * of_draws, (1.0 if self.outliers else OF_SHAPES) * self.err_of_shapes)

    def correlation(self, deeper: CrossingDraws, shared: int) -> float:
        """That of two crossings whose pairs share a depth of so many shapes, the deeper of this and the shallower of
        the other."""
        one, other = self.influence, deeper.influence
        return float(one[-shared:] @ other[:shared] / (np.linalg.norm(one) * np.linalg.norm(other)))


@dataclass(frozen=True)
class _Model:
    """One choice of orders for n losses that are divided by their noise.

    Attributes:
        fitted: (n, n) the projection on what the model can fit.
        rest: (n, n - k) an orthonormal basis of what it can't.
        solve: (MAX_ORDER + 1, n) the coefficients of the difference from the losses.
    """

    fitted: Floats
    rest: Floats
    solve: Floats


def draw_crossings(
    shallow: Curve, deep: Curve, noise: Noise, draws: int, rng: np.random.Generator
) -> CrossingDraws:
    """Fit both curves and draw their crossings in the range of sizes that both cover, with four or more in it."""
    span, common = shared_sizes(shallow, deep)
    x = np.concatenate([shallow.log_size, deep.log_size])
    y = np.concatenate([shallow.loss, deep.loss]) / noise.std
    widths = np.concatenate([shallow.width, deep.width])
    seeds = noise.runs_at(widths, np.concatenate([shallow.seeds, deep.seeds]))
    is_deep = np.arange(len(x)) >= len(shallow.size)
    n_common = min(map(len, common))
    batches, coincide = _batches(shallow, deep, _designs(x, is_deep, min(MAX_ORDER, n_common - 1)))
    designs = _designs(x, is_deep, min(MAX_ORDER, n_common - 1), batches)
    best, scatter = least([design for _, design in designs], y, seeds, noise.dof)
    err = scatter.std(seeds)
    models = _models(designs, err)
    coefficients, picked = _fit(models, y[None, :] / err)
    stds = scatter.draw(draws, rng, noise.drawn_tilts(widths, draws, rng))
    drawn = models[picked[0]].fitted @ (y / err) + stds / err * rng.standard_normal((draws, len(x)))
    drawn_coefficients, _ = _fit(models, drawn)
    blocks = _blocks(draws, OF_FITS)

    grid = np.linspace(*span, GRID)
    crossing = float(_crossing(coefficients, grid, x)[0])
    sizes = np.sort(np.clip(np.concatenate(common), *span))
    basis, at_sizes = noise.std * _basis(grid, x), _basis(sizes, x).T
    return CrossingDraws(
        log_size=grid,
        difference=basis @ coefficients[0],
        basis=basis,
        coefficients=drawn_coefficients,
        sizes=sizes,
        worse=sum(np.sum(drawn_coefficients[block] @ at_sizes > 0, axis=0) for block in blocks) / draws,
        crossing=crossing,
        crossings=np.sort(_crossing(drawn_coefficients, grid, x)),
        without=_crossings_without(x, y / err, err, is_deep, span, n_common - 1, batches),
        noise_scale=scatter.scale,
        outliers=tuple(
            ((deep if is_deep[at] else shallow).depth, int(widths[at]), pull)
            for at, pull in outlying(designs[best][1], y, seeds, noise.dof)
        ),
        influence=_influence(models[picked[0]], coefficients[0], crossing, x),
        coincide=coincide,
    )


def _influence(model: _Model, coefficients: Floats, crossing: float, x: Floats) -> Floats:
    """(n,) by how much a crossing moves with each whitened loss: minus the difference's move there, by its slope."""
    step = 1e-3  # of log size
    below, at, above = _basis(np.array([crossing - step, crossing, crossing + step]), x)
    return np.asarray(-(at @ model.solve) * (2 * step) / ((above - below) @ coefficients))


def _batches(
    shallow: Curve, deep: Curve, designs: list[tuple[int, Floats]]
) -> tuple[Floats, tuple[str, ...]]:
    """The columns (n, b) of the batches whose offset can be fitted beside `designs`, and the names of the others."""
    pair, (_, least_design) = (shallow.batches, deep.batches), designs[0]
    shares = contrasts(pair)
    fitted, others = told_apart(shares, least_design, spare=1)
    columns = np.column_stack([np.empty((len(least_design), 0)), *(shares[name] for name in fitted)])
    return columns, (*apart(pair[:1], pair[1:]), *others)


def _basis(at: Floats, x: Floats) -> Floats:
    """(m, MAX_ORDER + 1) Legendre polynomials at (m,) log sizes, on a scale on which those of the curves span [-1, 1].

    Args:
        x: the log sizes of the curves.
    """
    low, high = float(x.min()), float(x.max())
    return np.asarray(legendre.legvander((2.0 * at - low - high) / (high - low), MAX_ORDER), dtype=np.float64)


def _crossings_without(
    x: Floats,
    y: Floats,
    err: Floats,
    is_deep: npt.NDArray[np.bool_],
    span: tuple[float, float],
    n_common: int,
    batches: Floats,
) -> Floats:
    """The crossings (n,) by the other shapes of each of n, whose losses `y` are divided by their noise `err`.

    Each fit picks its orders anew and ends where its shapes do; the noise stays that of all. Empty where fewer than
    four sizes in common are left.
    """
    if n_common < LEAST_SIZES:
        return np.empty(0)
    coefficients = _fit_without(_models(_designs(x, is_deep, min(MAX_ORDER, n_common - 1), batches), err), y)
    crossings = np.empty(len(x))
    for at in range(len(x)):
        others = np.arange(len(x)) != at
        shallow, deep = x[others & ~is_deep], x[others & is_deep]
        low, high = max(span[0], shallow[0], deep[0]), min(span[1], shallow[-1], deep[-1])
        crossings[at : at + 1] = _crossing(coefficients[at : at + 1], np.linspace(low, high, GRID), x)
    return crossings


def _designs(
    x: Floats, is_deep: npt.NDArray[np.bool_], max_order: int, batches: Floats | None = None
) -> list[tuple[int, Floats]]:
    """Order of `g` and design (n, k) for all pairs of orders, that of `g` from 3 to the order of `f`.

    All orders stay below `max_order`, so that neither curve is interpolated. The columns of `batches` come first, and
    those of `g` last; an order that describes a batch as well is left out.
    """
    basis = _basis(x, x)
    first = np.empty((len(x), 0)) if batches is None else batches
    designs = [
        (order, np.hstack([first, basis[:, : shared + 1], basis[:, : order + 1] * is_deep[:, None]]))
        for order in range(min(LEAST_ORDER, max_order - 1), max_order)
        for shared in range(order, max_order + 1)
        if first.shape[1] + shared + order + 2 < len(x)
    ]
    if not first.shape[1]:
        return designs
    return [(order, design) for order, design in designs if np.linalg.matrix_rank(design) == design.shape[1]]


def _models(designs: list[tuple[int, Floats]], err: Floats) -> list[_Model]:
    """The models of `_designs` for losses of noise `err` (n,)."""
    models = []
    for order, design in designs:
        white = design / err[:, None]
        k = white.shape[1]
        basis, _ = np.linalg.qr(white, mode="complete")
        solve = np.zeros((MAX_ORDER + 1, len(white)))
        solve[: order + 1] = np.linalg.pinv(white)[-order - 1 :]
        models.append(_Model(basis[:, :k] @ basis[:, :k].T, basis[:, k:], solve))
    return models


def _fit(models: list[_Model], y: Floats) -> tuple[Floats, npt.NDArray[np.intp]]:
    """Fit (m, n) whitened losses by each model and keep, row by row, the one with the least AIC.

    AIC is `chi2 + 2 k`, and here less `2 n`.

    Returns the coefficients of `g` (m, MAX_ORDER + 1) and the index (m,) of the model.
    """
    coefficients, picked = np.empty((len(y), MAX_ORDER + 1)), np.empty(len(y), dtype=np.intp)
    for block in _blocks(len(y), OF_FITS):
        residuals = [y[block] @ model.rest for model in models]
        aic = [np.einsum("mn,mn->m", left, left) - 2.0 * left.shape[1] for left in residuals]
        picked[block] = np.argmin(aic, axis=0)
        for index in np.unique(picked[block]):
            rows = block.start + np.flatnonzero(picked[block] == index)
            coefficients[rows] = y[rows] @ models[index].solve.T
    return coefficients, picked


def _blocks(count: int, size: int) -> list[slice]:
    """The parts of `count` rows, of `size` each."""
    return [slice(begin, min(begin + size, count)) for begin in range(0, count, size)]


def _fit_without(models: list[_Model], y: Floats) -> Floats:
    """The coefficients (n, MAX_ORDER + 1) of `_fit` to all of n whitened losses `y` but one, for each in turn.

    A loss that lies on the curve through the others is as good as left out (Cook and Weisberg 1982, section 2.2).
    """
    aic, coefficients = [], []
    for model in models:
        residual, left = model.rest @ (model.rest.T @ y), np.square(model.rest).sum(axis=1)
        alone = left < 1e-9  # the only shape of a batch: its loss says nothing but the offset
        off = np.where(alone, 0.0, residual / np.where(alone, 1.0, left))
        aic.append(residual @ residual - residual * off - 2.0 * model.rest.shape[1])
        coefficients.append(((model.solve @ y)[:, None] - model.solve * off).T)
    picked: Floats = np.asarray(coefficients)[np.argmin(aic, axis=0), np.arange(len(y))]
    return picked


def _crossing(coefficients: Floats, grid: Floats, x: Floats) -> Floats:
    """The log sizes (m,) that maximise the integral from the left of differences; see the module's docstring.

    Args:
        coefficients: (m, MAX_ORDER + 1), on the scale of the log sizes `x` of the curves.
        grid: (GRID,) equally spaced log sizes.
    """
    basis = _basis(grid, x)
    integral = np.zeros_like(basis)
    integral[1:] = np.cumsum((basis[1:] + basis[:-1]) / 2.0, axis=0)
    blocks = _blocks(len(coefficients), OF_CROSSINGS)
    peak = np.concatenate([(coefficients[block] @ integral.T).argmax(axis=1) for block in blocks])
    crossing: Floats = grid[peak]
    row = np.flatnonzero((peak > 0) & (peak < len(grid) - 1))

    def difference(place: npt.NDArray[np.intp]) -> Floats:
        return np.asarray(np.einsum("mk,mk->m", coefficients[row], basis[place]))

    left = np.where(difference(peak[row]) >= 0, peak[row], peak[row] - 1)
    before, after = difference(left), difference(left + 1)
    crossing[row] = grid[left] + (grid[1] - grid[0]) * before / (before - after)
    return crossing


BOOTSTRAP = "bootstrap"
# a status hangs on shares near 2.5%, which so many draws know to a fourteenth
DRAWS = 20_000
# a share of draws below this counts as "none"
RARE = 0.025
# shares of draws on which a status hangs: those that contradict a sign, lie beyond an end of the interval, don't cross
LIMITS = (RARE, INTERVAL[0], 2 * RARE)
HANGS_ON = ("2.5% contradict a sign", "68% lie within half of the sizes", "5% don't cross")
# a share within so many standard errors of its limit decides nothing; with two, draws at a limit decide in 1 of 20
DOUBTFUL = 3.0
# the least error of a bound, as a share of its width
LEAST_BOUND_ERR = 0.01


def bootstrap_crossing(
    shallow: Curve, deep: Curve, noise: Noise | None, *, draws: int, seed: int
) -> tuple[Transition, CrossingDraws | None]:
    """The crossing of two loss curves with the 68% interval of its bootstrap distribution (`_interval`).

    `width_err` is half the interval, all in widths of the shallower network. A crossing is reported if the deeper
    network is significantly worse on its left, significantly better on its right and nowhere significantly the other
    way round; if at least 95% of the draws cross within the sizes that both depths cover; and if each depth has at
    least two sizes on either side. Otherwise the status says what is known, and "undecided" where other draws could
    say something else. The draws are None where no curves were fitted (no noise, or fewer than 4 sizes in common).
    """
    if noise is None:
        return no_transition(shallow, deep, BOOTSTRAP, TransitionStatus.NO_NOISE), None
    span, common = shared_sizes(shallow, deep)
    n_common = min(map(len, common))
    if n_common < LEAST_SIZES or span[0] >= span[1]:
        return no_transition(shallow, deep, BOOTSTRAP, TransitionStatus.TOO_FEW_SIZES), None

    found = draw_crossings(shallow, deep, noise, draws, np.random.default_rng(seed))
    inner = (max(x[1] for x in common), min(x[-2] for x in common))
    status, side, doubts = decided(found, inner)
    known: dict[str, Any] = {
        "noise_scale": found.noise_scale,
        "caution": "; ".join(doubts + _cautions(shallow, deep, noise, found, n_common)),
    }
    if inner[0] < inner[1]:
        known["reportable_low"], known["reportable_high"] = (float(w) for w in shallow.width_at(inner))
    if status is TransitionStatus.CROSSING:
        width, low, high = (float(w) for w in shallow.width_at([found.crossing, *_interval(found)]))
        known |= {"width": width, "width_err": (high - low) / 2, "width_low": low, "width_high": high}
    elif side is not None:
        bound, bound_err = _bound(shallow, found, side)
        known |= {"bound": bound, "bound_err": bound_err, "side": side}
    return replace(no_transition(shallow, deep, BOOTSTRAP, status), **known), found


def _interval(found: CrossingDraws) -> tuple[float, float]:
    """Low and high log size of the crossing with a chance of 68%."""
    low, high = found.quantiles(*INTERVAL)
    middle, half = (low + high) / 2, found.half_width(float(high - low) / 2)
    return float(middle - half), float(middle + half)


def decided(
    found: CrossingDraws, inner: tuple[float, float]
) -> tuple[TransitionStatus, Side | None, list[str]]:
    """Status, side and doubts of all verdicts with each limit as it is and moved by the error of the share.

    The side is the one that all allow: a bound holds for a crossing too.
    """
    verdicts = {moved: _verdict(found, inner, moved) for moved in product((-1, 0, 1), repeat=len(LIMITS))}
    as_drawn = verdicts[0, 0, 0]
    bounds = {side for _, side in verdicts.values()} - {Side.AT}
    side = None if len(bounds) > 1 else next(iter(bounds), Side.AT)
    statuses = sorted({f'"{one}"' for one, _ in verdicts.values()})
    if len(statuses) == 1:
        return as_drawn[0], side, []
    # alone, or with the others where none does it alone
    deciding = [
        words
        for place, words in enumerate(HANGS_ON)
        if any(verdicts[tuple(by * (at == place) for at in range(3))] != as_drawn for by in (-1, 1))
    ]
    unknown = " and ".join(deciding or HANGS_ON)
    doubt = f"{len(found.crossings):,} draws don't tell whether {unknown}, so {' or '.join(statuses)}"
    return TransitionStatus.UNDECIDED, side, [doubt]


def _verdict(
    found: CrossingDraws, inner: tuple[float, float], moved: tuple[int, ...]
) -> tuple[TransitionStatus, Side | None]:
    """Status and side from the significant signs of the difference at the trained sizes.

    Args:
        moved: by how many of their errors the `LIMITS` are moved.
    """
    of_sign, of_end, of_none = (
        max(limit + by * DOUBTFUL * math.sqrt(limit * (1 - limit) / len(found.crossings)), 0.0)
        for limit, by in zip(LIMITS, moved, strict=True)
    )
    signs = (found.worse >= 1 - of_sign).astype(int) - (found.worse <= of_sign)
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
    low, high = found.quantiles(of_end, 1 - of_end)
    if max(high - low, 2 * found.err_of_shapes) > (found.log_size[-1] - found.log_size[0]) / 2:
        return TransitionStatus.TOO_NOISY, None
    # draws in which one of the two is better over the whole range
    beyond = np.mean(found.crossings <= found.log_size[0]) + np.mean(found.crossings >= found.log_size[-1])
    inside = inner[0] <= found.crossing <= inner[1] and beyond <= of_none
    return TransitionStatus.CROSSING if inside else TransitionStatus.AT_EDGE, Side.AT


def _bound(shallow: Curve, found: CrossingDraws, side: Side) -> tuple[float, float]:
    """The width beyond which 84% of the draws cross, and its distance to that of 97.5%; or the crossing's own."""
    if side is Side.AT:
        low, high = shallow.width_at(_interval(found))
        bound, err = float(shallow.width_at(found.crossing)), float(high - low) / 2
    else:
        likely = (0.16, 0.025) if side is Side.ABOVE else (0.84, 0.975)
        at, further = shallow.width_at(found.quantiles(*likely))
        bound, err = float(at), abs(float(further - at))
    return bound, max(err, LEAST_BOUND_ERR * bound)


def _cautions(shallow: Curve, deep: Curve, noise: Noise, found: CrossingDraws, n_common: int) -> list[str]:
    """The reasons to doubt an interval, each in a few words."""
    cautions = [
        f"L{depth}-d{width} lies {pull:+.1f} sigma off its curve" for depth, width, pull in found.outliers
    ]
    cautions += [f"{name} coincides with the depths" for name in found.coincide]
    if n_common == LEAST_SIZES:
        cautions.append(f"only {LEAST_SIZES} sizes in common")
    repeated = np.concatenate([curve.log_size[curve.seeds > 1] for curve in (shallow, deep)])
    middle = float(found.log_size[[0, -1]].mean())
    if np.isfinite(noise.dof) and not repeated.size:
        cautions.append("neither depth has repeated seeds")
    elif np.isfinite(noise.dof) and (repeated.max() < middle or repeated.min() > middle):
        cautions.append(f"seeds are repeated at {'small' if repeated.max() < middle else 'large'} sizes only")
    return cautions
