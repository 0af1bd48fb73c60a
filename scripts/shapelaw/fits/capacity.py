"""What the heads of a layer memorize: the most examples, the fewest heads, and the growth of the share with the heads.

A capacity is the most examples that a network memorizes to 99%, or the fewest heads that memorize 99% of T examples.
Along the heads, the share has a part that is linear in their number, if there is one, and an exponent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum

import lmfit
import numpy as np
import numpy.typing as npt
from scipy import stats  # type: ignore[import-untyped]

from shapelaw.fits.line import Fit, FitStatus, Floats, LineFit, fit_line, too_few_points
from shapelaw.fits.memorized import EQUAL, MEMORIZED, SATURATED, MemorizationCurve, standard_errors
from shapelaw.fits.noise import INTERVAL, Noise, chance_words
from shapelaw.fits.significance import isotonic

LEAST_CHANCE = 0.01
LEVEL = 0.68
ONE_SEED = "one seed: an interval from the misfit, which holds the truth less often than 68%"
SEED_NOISE, SCATTER, MISFIT = "seed noise", "scatter", "misfit (one seed)"
BENT = 0.05
POWER = 1.4  # of H: a test that would not tell this growth from a line has not shown a line


class CapacityStatus(StrEnum):
    """The outcome of a search for a capacity: found or bounded."""

    FOUND = "found"
    AT_LEAST = "at least"
    BELOW = "below"


@dataclass(frozen=True)
class Capacity:
    """`size` is T, or H, at 99%, interpolated; `low` and `high` bound an interval of at least 68% probability.

    `memorized` and `not_memorized` are the trained sizes on either side. The interval always spans both, since nothing
    is known of the curve between them; with one seed it ends there and leaves out seed noise. An end is NaN where it
    leaves the trained sizes. For "at least" and "below" `size` is the largest or the smallest trained size, a bound.
    """

    size: float
    low: float
    high: float
    memorized: float
    not_memorized: float
    status: CapacityStatus


def capacity(curve: MemorizationCurve, *, draws: int = 2000, seed: int = 0) -> Capacity:
    """T at which the mean share over seeds falls below 99% (`MEMORIZED`), linear in T between neighbours.

    The means are made non-increasing in T first (`isotonic`), so that noise leaves one crossing. The interval is a
    bootstrap over seeds: a draw takes whole seeds with replacement, for all T at once, since seeds may share data
    between T. Such draws of few seeds spread too little, so their deviations are widened by sqrt(S / (S - 1)) and by
    Student's quantile with S - 1 degrees of freedom over the normal one. Each draw gives the trained T on either side
    of the crossing: `low` is the 16% quantile of the lower ones, `high` the 84% quantile of the upper ones.

    On simulated seeds whose capacities differ by 6% (200 experiments each; T in even steps, doubling, five uneven ones)
    the interval held the truth in 94 to 100%: more than 68%, as nothing is known of the curve between two T.

    Raises:
        ValueError: the curve is not one along T.
    """
    if curve.along != "examples":
        raise ValueError(f"a capacity needs a curve along examples, not {curve.along}")
    return _size_at(curve.x, curve.shares, draws, seed)


def heads_needed(curve: MemorizationCurve) -> Capacity:
    """H from which the mean share of the curve's T over seeds reaches 99%, by the same rule as `capacity`.

    "at least": no trained H reaches the level; "below": every one does.

    Raises:
        ValueError: the curve is not one along H.
    """
    if curve.along != "heads":
        raise ValueError(f"the heads needed need a curve along heads, not {curve.along}")
    found = _size_at(-curve.x[::-1], curve.shares[::-1])
    bounds = {CapacityStatus.AT_LEAST: CapacityStatus.BELOW, CapacityStatus.BELOW: CapacityStatus.AT_LEAST}
    status = bounds.get(found.status, found.status)
    return Capacity(-found.size, -found.high, -found.low, -found.memorized, -found.not_memorized, status)


def _size_at(x: Floats, shares: Floats, draws: int = 2000, seed: int = 0) -> Capacity:
    """The x, of (n,), at which (n, s) shares, one column a seed and NaN where it is missing, fall below 99%."""
    there = np.isfinite(shares)
    seeds = there.sum(axis=1).astype(np.float64)
    mean: Floats = np.asarray(np.nanmean(shares, axis=1), dtype=np.float64)
    left = int(_reached(mean[None, :], seeds)[1][0])
    if left == len(x) - 1:
        return Capacity(float(x[-1]), np.nan, np.nan, float(x[-1]), np.nan, CapacityStatus.AT_LEAST)
    if left < 0:
        return Capacity(float(x[0]), np.nan, np.nan, np.nan, float(x[0]), CapacityStatus.BELOW)
    above, below = _reached(mean[None, :], seeds)[0][0, left : left + 2]
    point = float(x[left] + (x[left + 1] - x[left]) * (above - MEMORIZED) / (above - below))
    lefts = np.array([left]) if seeds.min() < 2 else _drawn(shares, mean, seeds, draws, seed)
    lowest, highest = (int(np.quantile(lefts, q, method="inverted_cdf")) for q in INTERVAL)
    low = float(x[min(lowest, left)]) if lowest >= 0 else np.nan
    high = float(x[max(highest, left) + 1]) if highest < len(x) - 1 else np.nan
    return Capacity(point, low, high, float(x[left]), float(x[left + 1]), CapacityStatus.FOUND)


def _drawn(shares: Floats, mean: Floats, seeds: Floats, draws: int, seed: int) -> Floats:
    """(draws,) the index of the last x that is memorized in each draw of seeds; -1 for none."""
    count, least = shares.shape[1], float(seeds.min())
    rng = np.random.default_rng(seed)
    times = rng.multinomial(count, np.full(count, 1.0 / count), size=draws).astype(np.float64)
    mass = times @ np.isfinite(shares).astype(np.float64).T
    total = times @ np.nan_to_num(shares).T
    drawn = np.where(mass > 0, total / np.maximum(mass, 1.0), mean)
    student = float(stats.t.ppf(INTERVAL[1], least - 1) / stats.norm.ppf(INTERVAL[1]))
    widened = mean + np.sqrt(least / (least - 1)) * student * (drawn - mean)
    return _reached(np.minimum(widened, 1.0), seeds)[1]


def _reached(shares: Floats, seeds: Floats) -> tuple[Floats, Floats]:
    """(m, n) shares made non-increasing, and (m,) the index of the last one of each row that reaches `MEMORIZED`."""
    falling = -isotonic(-shares, seeds)
    return falling, np.asarray((falling >= MEMORIZED - EQUAL).sum(axis=1) - 1)


@dataclass(frozen=True)
class Growth(Fit):
    """`share = c H^exponent`, with the exponent's standard error and its interval by Student's t.

    The interval is one of 68% where the error comes from repeated seeds. That of one seed comes from the misfit, held
    32 to 62% of the truths in simulations, and is called so. `errors` names the source of the error: `SEED_NOISE`,
    `SCATTER` where the points lie farther from the curve than that allows, or `MISFIT`. Numbers are NaN unless `status`
    is converged.
    """

    exponent: float
    err: float
    low: float
    high: float
    n_points: int
    errors: str
    status: FitStatus
    message: str


def exponents(curve: MemorizationCurve, used: npt.NDArray[np.bool_], guessed: float) -> tuple[float, float]:
    """The least and the largest exponent by four readings of a curve that no power of H need fit.

    Points have the weights of its line, or equal ones; the share is as it is, or what exceeds the `guessed` one.
    """
    above = replace(curve, shares=(curve.shares - guessed) / (1.0 - guessed))
    found = [fit_growth(one, used, weighted).exponent for one in (curve, above) for weighted in (True, False)]
    return min(found), max(found)


def fit_growth(curve: MemorizationCurve, used: npt.NDArray[np.bool_], weighted: bool = True) -> Growth:
    """Least squares over the `used` (n,) points of a curve along H, with the weights of its line or equal ones."""
    x, y, noise = curve.x[used], curve.share[used], curve.noise if weighted else None
    n_points = len(x)
    if n_points < 3:
        text = too_few_points(n_points, "an exponent", 3)
        return Growth.without_numbers(FitStatus.TOO_FEW_POINTS, n_points, text, errors="")
    err = standard_errors(curve)[used] if noise is not None else curve.seeds[used] ** -0.5
    last = float(x[-1])
    model = lmfit.Model(lambda x, level, exponent: level * (x / last) ** exponent)
    start = model.make_params(level=float(y[-1]), exponent=1.0)
    result = model.fit(y, start, x=x, weights=1.0 / err, scale_covar=False)
    found = result.params["exponent"]
    if not (result.success and math.isfinite(found.stderr or math.nan)):
        text = f"the minimiser failed: {result.message}"
        return Growth.without_numbers(FitStatus.FAILED, n_points, text, errors="")
    dof, chi2 = n_points - 2, float(result.chisqr)
    believed = noise is not None and noise.chance(chi2, dof) >= LEAST_CHANCE
    scale = 1.0 if believed else math.sqrt(chi2 / dof)
    exponent, sigma = float(found.value), scale * float(found.stderr)
    known = noise.dof if noise is not None and believed else dof
    reach = sigma * float(stats.t.ppf(0.5 + LEVEL / 2, known))
    errors = SEED_NOISE if believed else MISFIT if noise is None else SCATTER
    said = f"{n_points} points; " + (ONE_SEED if errors == MISFIT else f"the error comes from {errors}")
    interval = exponent - reach, exponent + reach
    return Growth(exponent, sigma, *interval, n_points, errors, FitStatus.CONVERGED, said)


@dataclass(frozen=True)
class LinearPart:
    """`share = a + b H` over the `used` (n,) points of a curve, where they are consistent with a line.

    `curvature_p` is the chance that noise alone makes a parabola so much better than the line (an F-test; NaN where it
    can't be made), `curvature` the parabola's coefficient of H². Where the chance is below 5% the line's status is
    "curved" and it has no slope; its R² is kept, and does not show a line. R² is the ordinary one, without weights, as
    in Mahdavi et al. 2024. `tells` is False where shares as
    H^`POWER` at the same points and with the same errors would pass for a line as well. `errors` names the source of
    the line's errors: "seed noise", "scatter" of the points around it beyond that, or, with one seed, the "misfit".
    """

    line: LineFit
    used: npt.NDArray[np.bool_]
    errors: str
    curvature_p: float
    curvature: float
    tells: bool


def linear_part(curve: MemorizationCurve) -> LinearPart:
    """The line through the non-saturated points of the share (n,) against the heads.

    The rule: by growing H, the line uses the points before the first one whose mean share over seeds is above
    `SATURATED`. It is fixed in advance and ignores how straight the points lie, so that the test of a bend means
    something. (Mahdavi et al. 2024, section 5.2, fit "the non-saturated part" and give no rule.) At 0.9 a curve that
    saturates softly is already bent a little.
    """
    above = np.flatnonzero(curve.share > SATURATED)
    used = np.arange(len(curve.x)) < (above[0] if above.size else len(curve.x))
    return line_through(curve, used)


def line_through(curve: MemorizationCurve, used: npt.NDArray[np.bool_]) -> LinearPart:
    """The line through the `used` (n,) points of a curve against the heads, if they are consistent with one.

    The points are weighted by seeds and noise. The line's errors come from the seeds' noise; without repeats, or where
    the points scatter more than it allows (p < 1%), from their scatter around the line.
    """
    x, y, noise = curve.x[used], curve.share[used], curve.noise
    err = standard_errors(curve)[used] if noise is not None else curve.seeds[used] ** -0.5
    line, errors = _line_of(x, y, err, noise)
    if line.usable:
        line = replace(line, r_squared=float(np.corrcoef(x, y)[0, 1] ** 2))
    chance, curvature, tells = _bend(x, y, err, noise)
    if line.usable and math.isnan(chance):
        text = f"{len(x)} points of one seed can't tell a line from a curve: that takes 4"
        line = _without_slope(line, FitStatus.TOO_FEW_POINTS, text)
    elif line.usable and chance < BENT:
        how = "faster" if curvature > 0 else "more slowly"
        line = _without_slope(
            line, FitStatus.CURVED, f"the share grows {how} than a line ({chance_words(chance)})"
        )
    return LinearPart(line, used, errors, chance, curvature, tells)


def _line_of(x: Floats, y: Floats, err: Floats, noise: Noise | None) -> tuple[LineFit, str]:
    if noise is None:
        line = fit_line(x, y, err, rescale_covariance=True)
        nan = math.nan  # without a noise estimate chi2 says nothing
        said = "one seed: the errors come from the points' scatter about the line"
        message = said if line.usable else line.message
        return replace(line, chi2=nan, chi2_reduced=nan, p_value=nan, message=message), MISFIT
    line = fit_line(x, y, err, sigma_dof=noise.dof)
    if not line.usable or line.p_value >= LEAST_CHANCE:
        return line, SEED_NOISE
    wider = fit_line(x, y, err, sigma_dof=noise.dof, rescale_covariance=True)
    text = f"chi2/dof = {line.chi2_reduced:.3g} with the seeds' noise: the errors come from the larger scatter instead"
    return replace(wider, message=text), SCATTER


def _bend(x: Floats, y: Floats, err: Floats, noise: Noise | None) -> tuple[float, float, bool]:
    """The chance that noise alone gives a parabola its gain over the line, the coefficient of x², and `tells`.

    The unit is the seed noise or, without repeats or where the points lie off the parabola too (p < 1%), the scatter
    about the parabola.
    """
    dof = len(x) - 3
    if dof < (0 if noise is not None else 1):
        return math.nan, math.nan, False
    powers = np.stack([np.ones_like(x), x, x**2], axis=1)
    line, parabola = (_least(powers[:, :k], y, err) for k in (2, 3))
    gain, curvature = line[1] - parabola[1], float(parabola[0][2])
    power = y[-1] * (x / x[-1]) ** POWER
    power_gain = _least(powers[:, :2], power, err)[1] - _least(powers, power, err)[1]
    if noise is not None and (dof == 0 or noise.chance(parabola[1], dof) >= LEAST_CHANCE):
        unit, known = 1.0, noise
    else:
        unit, known = dof / max(parabola[1], 1e-300), Noise(1.0, dof)
    return known.chance(gain * unit, 1), curvature, known.chance(power_gain * unit, 1) < BENT


def _least(design: Floats, y: Floats, err: Floats) -> tuple[Floats, float]:
    """Coefficients and chi2 of weighted least squares."""
    white, target = design / err[:, None], y / err
    coefficients: Floats = np.asarray(np.linalg.lstsq(white, target, rcond=None)[0], dtype=np.float64)
    return coefficients, float(((target - white @ coefficients) ** 2).sum())


def _without_slope(line: LineFit, status: FitStatus, message: str) -> LineFit:
    kept = {name: getattr(line, name) for name in ("chi2", "chi2_reduced", "p_value", "r_squared")}
    return LineFit.without_numbers(status, line.n_points, message, **kept)
