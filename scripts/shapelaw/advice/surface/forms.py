"""The shapes that a surface is fitted to, and the forms of the loss as a smooth function of size and depth.

With x = log size and z = log depth, about their means: six forms replace the size N of a power law by an effective
one, log N_eff = x - q p(t), where t = z - z*(x) is the distance from the best depth and p the penalty. They differ in
z* and in p; the seventh is a polynomial of the second degree. Several are needed: one form alone is overconfident where
the truth is another, and what none of them can do shows in no residual that is smaller than the noise.

The eighth has no form: the polynomial plus a smooth random function (a Gaussian process). The function's size and reach
are integrated over, by the restricted likelihood, so a surface that the polynomial describes gets hardly any. A finite
sum of sines stands for the process (Solin and Särkkä 2020), so a draw of the surface is a set of coefficients like any
other form's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, partial
from itertools import product

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import special, stats  # type: ignore[import-untyped]

from shapelaw.advice.evidence.losses import penalty, power
from shapelaw.advice.evidence.separable import Columns, Separable, ridged
from shapelaw.advice.own_runs.budgets import budget_labels
from shapelaw.fits.inputs import TOKENS
from shapelaw.fits.line import Floats
from shapelaw.fits.noise import group_means
from shapelaw.fits.projection import standard_params
from shapelaw.specs.sizes import SIZE_COLUMNS, SizeAxis

LEAST_SHAPES = 8
# the least standard deviation of log depth among shapes of one size; with less, depth is a function of size
APART = 0.1
CONSTANT = 1e-6  # losses that span less than this share of them don't vary
LEFT = 1e-3  # the least share of a shape's own loss that the other shapes determine, where it is left out


class SurfaceStatus(StrEnum):
    """The trust that a surface, or its answer about one size, deserves."""

    CONVERGED = "converged"
    DEEPER = "at a bound: deeper than the shapes"
    SHALLOWER = "at a bound: shallower than the shapes"
    NOT_IDENTIFIABLE = "not identifiable"
    TOO_FEW = "too few shapes"
    EXTRAPOLATED = "extrapolated"


@dataclass(frozen=True)
class Shapes:
    """The trained shapes: (n,) depths, widths, sizes, mean losses over seeds, and numbers of seeds.

    `tokens` are those of each shape where losses have a level of their own at each number of them; else None.
    """

    depth: Floats
    width: Floats
    size: Floats
    loss: Floats
    seeds: Floats
    tokens: Floats | None = None

    @cached_property
    def levels(self) -> Floats:
        """(n, k) ones where a shape has the level of k numbers of tokens; the most frequent one has none."""
        if self.tokens is None:
            return np.zeros((len(self), 0))
        labels = budget_labels(pd.Series(self.tokens)).to_numpy()
        others = np.delete(np.unique(labels), np.bincount(labels).argmax())
        return np.asarray(labels[:, None] == others, dtype=np.float64)

    @property
    def middle_sizes(self) -> tuple[float, ...]:
        """Five sizes evenly spread in log size between the smallest and the largest shape."""
        return tuple(np.geomspace(self.size.min(), self.size.max(), 5).tolist())

    @property
    def x(self) -> Floats:
        return np.log(self.size)

    @property
    def z(self) -> Floats:
        return np.log(self.depth)

    def __len__(self) -> int:
        return len(self.depth)


def shapes_of(runs: pd.DataFrame, size: SizeAxis, ladder: bool = False) -> Shapes:
    """The shapes of checked runs (`depth, width, seed, loss` and the column of `size`, see `check_runs`).

    Args:
        runs: the runs.
        size: what equal size means.
        ladder: whether losses have a level at each number of tokens.
    """
    column = SIZE_COLUMNS[size]
    if column not in runs and size is SizeAxis.BLOCK:
        runs = runs.assign(**{column: standard_params(runs["depth"], runs["width"])})
    tokens = [TOKENS] if ladder else []
    means = group_means(runs, ["depth", "width"], also=[column, *tokens])
    columns = ("depth", "width", column, "loss", "seeds", *tokens)
    return Shapes(*(means[name].to_numpy(dtype=np.float64) for name in columns))


def why_no_surface(shapes: Shapes) -> tuple[SurfaceStatus, str] | None:
    """The status and the sentence of shapes that no surface can be fitted to; None if one can."""
    if len(shapes) < LEAST_SHAPES:
        text = f"{len(shapes)} shape{'' if len(shapes) == 1 else 's'}, and a surface needs {LEAST_SHAPES}"
        return SurfaceStatus.TOO_FEW, text
    if len(np.unique(shapes.depth)) < 3:
        text = "the shapes have fewer than three depths, and a best depth needs one on either side"
        return SurfaceStatus.NOT_IDENTIFIABLE, text
    if losses_constant(shapes.loss):
        return SurfaceStatus.NOT_IDENTIFIABLE, "the losses don't vary"
    order = 2 if np.ptp(shapes.x) > NARROW else 0
    powers = np.vander(shapes.x - shapes.x.mean(), order + 1)
    off = shapes.z - powers @ np.linalg.lstsq(powers, shapes.z, rcond=None)[0]
    if math.sqrt(float(off @ off) / max(len(shapes) - order - 1, 1)) < APART:
        text = (
            "all shapes lie on one line of log depth against log size, so that depth and size can't be told apart; "
            "train some sizes at other depths, half and twice as deep"
        )
        return SurfaceStatus.NOT_IDENTIFIABLE, text
    return None


def losses_constant(loss: npt.ArrayLike) -> bool:
    """True where (n,) losses span so little that they tell no shape from another."""
    losses = np.asarray(loss, dtype=np.float64)
    return bool(np.ptp(losses) < CONSTANT * np.abs(losses).max())


def spread_about_polynomial(shapes: Shapes) -> float:
    """Standard deviation of the losses about a polynomial of the second degree, in nats."""
    design = quadratic(Frame.of(shapes.x, shapes.z)).model.columns(np.zeros(0), shapes.x, shapes.z)
    design = np.hstack([design, shapes.levels])
    off = shapes.loss - design @ np.linalg.lstsq(design, shapes.loss, rcond=None)[0]
    return float(np.sqrt(off @ off / max(len(off) - design.shape[1], 1)))


# families: forms that share an assumption about the penalty share its weight before the data speak
SYMMETRIC, SKEWED, LEVEL, WALL = "symmetric", "skewed", "level", "one wall"
FLAT, POINTED, FREE = "flat", "pointed", "free"
FAMILIES = (SYMMETRIC, SKEWED, LEVEL, WALL, FLAT, POINTED, FREE)
# half of a valley's width in log depth, at k = 0: within it a flat one's penalty grows with the fourth power, and
# beyond it a pointed one's with the first
VALLEY = 0.4
NARROW = float(np.log(1.25))  # sizes that span less count as one size


@dataclass(frozen=True)
class Frame:
    """The middle and the spans of the shapes' log sizes and log depths."""

    x: float
    z: float
    x_span: float
    z_span: float

    @classmethod
    def of(cls, x: Floats, z: Floats) -> Frame:
        return cls(float(x.mean()), float(z.mean()), float(np.ptp(x)), float(np.ptp(z)))


@dataclass(frozen=True)
class Form:
    """One form: its formula, its family, the model with its priors, the starts (s, k) and its parameters' names.

    `linear` counts the linear coefficients.
    """

    name: str
    formula: str
    family: str
    model: Separable
    starts: Floats
    parameters: tuple[str, ...]
    linear: int

    @property
    def free(self) -> int:
        return self.linear + len(self.parameters)


def surface_forms(frame: Frame) -> tuple[Form, ...]:
    """All forms but the smooth one, with priors that suit shapes of this frame."""
    line = ", log L* = c0 + c1 log N"
    square, skewed, two_sided = (
        partial(penalty, kind, most=12.0) for kind in ("square", "skewed", "two-sided")
    )
    return (
        _effective(frame, "symmetric", "t²" + line, SYMMETRIC, square),
        _effective(frame, "skewed", "2 (e^(k t) - k t - 1) / k²" + line, SKEWED, skewed),
        _effective(frame, "two-sided", "t² e^(k sign t)" + line, SKEWED, two_sided),
        _effective(frame, "level", "(e^(k t) - 1)² / k²" + line, LEVEL, _level),
        _effective(frame, "one wall", "e^(-w t) / w², w = e^k" + line, WALL, _one_wall),
        _effective(frame, "law", "t², N = 12 L* exp(2 a + 2 b L*)", SYMMETRIC, square, law=True),
        _effective(frame, "flat", "t⁴ / (t² + w²), w = 0.4 e^k" + line, FLAT, _flat),
        _effective(frame, "pointed", "2 w² log cosh(t / w), w = 0.4 e^k" + line, POINTED, _pointed),
        quadratic(frame),
    )


def quadratic(frame: Frame) -> Form:
    """The polynomial of the second degree in log size and log depth; without log size where the sizes are one."""
    columns = partial(_powers, frame)
    count = columns(np.zeros(0), np.zeros(1), np.zeros(1)).shape[-1]
    return _linear("quadratic", "second degree in log N and log L", SYMMETRIC, columns, count)


def _linear(name: str, formula: str, family: str, columns: Columns, count: int) -> Form:
    """A form without other parameters than its coefficients."""
    empty = np.zeros(0)
    return Form(name, formula, family, Separable(columns, empty, empty), np.zeros((1, 0)), (), count)


Lost = Callable[[Floats, Floats], Floats]  # a penalty of distances t and k


def _effective(frame: Frame, name: str, lost: str, family: str, penalty: Lost, law: bool = False) -> Form:
    formula = f"E + A N_eff^-alpha, log N_eff = log N - q {lost}"
    bent = family in (SKEWED, LEVEL, WALL, FLAT, POINTED)
    # alpha, log q, then z* at the middle size and its slope (or, of the law, log(b L*) there), then k
    mean = np.array([0.2, np.log(0.3), frame.z, 0.0 if law else 0.3, *([0.0] if bent else [])])
    std = np.array([0.25, 1.5, 1.5 * frame.z_span, 1.0 if law else 0.5, *([1.0] if bent else [])])
    moves = product((-0.6, 0.0, 0.6), (-1.0, 1.0), (-0.7, 0.7) if bent else (0.0,))
    starts = [mean] + [
        mean + np.array([0.0, sharp, depth * frame.z_span, 0.0, skew])[: len(mean)]
        for depth, sharp, skew in moves
    ]
    best = _law_depth if law else _line_depth

    def columns(theta: Floats, x: Floats, z: Floats) -> Floats:
        alpha, log_q, middle, slope = (theta[..., j, None] for j in range(4))
        from_middle = x - frame.x
        skew = theta[..., 4, None] if bent else np.zeros_like(alpha)
        lost = penalty(z - best(from_middle, middle, slope), skew)
        powers = power(alpha, from_middle - np.exp(log_q) * lost)
        return np.stack([np.ones_like(powers), powers], axis=-1)

    fourth = "log(b L*)" if law else "c1"
    names = ("alpha", "log q", "log L*", fourth, *(("k",) if bent else ()))
    return Form(name, formula, family, Separable(columns, mean, std), np.array(starts), names, 2)


def _line_depth(from_middle: Floats, middle: Floats, slope: Floats) -> Floats:
    return middle + slope * from_middle


def _law_depth(from_middle: Floats, middle: Floats, log_growth: Floats) -> Floats:
    """Solve log N = log 12 + log L + 2 a + 2 b L for log L: with r from the middle size, s + 2g (e^s - 1) = r."""
    growth = 2.0 * np.exp(np.clip(log_growth, -6.0, 4.0))
    s = np.where(
        from_middle > 0, np.log1p(np.maximum(from_middle, 0.0) / (growth + 1.0)), from_middle / (growth + 1.0)
    )
    for _ in range(8):
        risen = growth * np.exp(s)
        s = s - (s + risen - growth - from_middle) / (1.0 + risen)
    return middle + s


def _level(t: Floats, bend: Floats) -> Floats:
    """A wall on one side, where too shallow (k < 0) or too deep loses ever more, and a level on the other."""
    k = np.where(np.abs(bend) < 1e-4, 1e-4, bend)
    return np.asarray((np.expm1(np.clip(k * t, -30.0, 6.0)) / k) ** 2)


def _one_wall(t: Floats, bend: Floats) -> Floats:
    """A network can only be too shallow: no depth is best."""
    wall = np.exp(np.clip(bend, -3.0, 3.0))
    return np.asarray(np.exp(np.clip(-wall * t, -30.0, 12.0)) / wall**2)


def _flat(t: Floats, bend: Floats) -> Floats:
    return t**4 / (t**2 + _valley(bend) ** 2)


def _pointed(t: Floats, bend: Floats) -> Floats:
    """Near t² and far off like |t|; log cosh as a sum that doesn't overflow."""
    wide = _valley(bend)
    far = np.abs(t) / wide
    return np.asarray(2.0 * wide**2 * (far + np.log1p(np.exp(-2.0 * far)) - np.log(2.0)))


def _valley(bend: Floats) -> Floats:
    return np.asarray(VALLEY * np.exp(np.clip(bend, -5.0, 5.0)))


def _powers(frame: Frame, theta: Floats, x: Floats, z: Floats) -> Floats:
    x, z = x - frame.x, z - frame.z
    powers = [np.ones_like(z), z, z**2]
    if frame.x_span > NARROW:
        powers += [x, x**2, x * z]
    columns = np.stack(powers, axis=-1)
    return np.broadcast_to(columns, theta.shape[:-1] + columns.shape)


WAVES = 8  # a direction
BOX = 1.5  # half of the side of the square on which the sines stand, in spans of the shapes
REACHES = (0.4, 0.7, 1.2)  # length scales, in spans of the shapes
# standard deviations of the function, in units of the noise, with a half-Cauchy prior of this scale
AMPLITUDES = np.concatenate([[0.0], np.geomspace(0.1, 100.0, 12)])
USUAL = 3.0
# a shape's own deviation beside the seed noise, as in scatter.py, coarser
DEVIATIONS = np.array([0.0, 0.5, 1.0, 2.0, 4.0, 8.0])


@dataclass(frozen=True)
class _Setting:
    """One choice of reach, amplitude and deviation: its weight, and what its draws need. Losses are in noise units."""

    log_weight: float
    deviation: float  # of a shape, common to its seeds
    prior_std: Floats  # (w,) of the sines' coefficients
    noise: Floats  # (n,) standard deviations of the mean losses, for sigma2 = 1
    inverse: Floats  # (n, n), of the losses' covariance, for sigma2 = 1
    solve: Floats  # (m, n): the polynomial's coefficients from the losses
    sigma2: float
    left_out: Floats  # (n,) log densities of the losses that were left out
    left_out_error: Floats  # (n,)


@dataclass(frozen=True)
class Smooth:
    """The smooth form, fitted. `log_density` (n,) of each left-out loss, in noise units; `dof` of its noise."""

    form: Form
    settings: tuple[_Setting, ...]
    y: Floats
    design: Floats
    waves: Floats
    dof: float
    log_density: Floats

    @property
    def weight(self) -> Floats:
        """The posterior weights of the settings."""
        weight: Floats = special.softmax([one.log_weight for one in self.settings])
        return weight

    def scatter(self) -> float:
        """The typical distance of one run from the surface, in noise units."""
        variance = [one.sigma2 * (1.0 + one.deviation**2) for one in self.settings]
        return float(np.sqrt(self.weight @ np.array(variance)))

    def left_out_error(self) -> float:
        """The root mean square error of the losses of left-out shapes, in noise units."""
        errors = self.weight @ np.array([one.left_out_error for one in self.settings])
        return float(np.sqrt(np.mean(errors**2)))


def fit_smooth(
    frame: Frame, x: Floats, z: Floats, y: Floats, seeds: Floats, dof: float, levels: Floats
) -> Smooth:
    """Fit mean losses `y` (n,) in units of the noise, known with `dof` degrees of freedom (0: from residuals alone).

    The coefficients of `levels` (n, k), columns of their own, follow those of the polynomial.
    """
    polynomial = quadratic(frame)
    design = np.hstack([polynomial.model.columns(np.zeros(0), x, z), levels])
    waves = _waves(frame, x, z)
    deviations = DEVIATIONS if dof > 0 else DEVIATIONS[:1]
    settings = tuple(
        _setting(design, waves, y, seeds, dof, (amplitude, reach, deviation))
        for reach in REACHES
        for amplitude in (AMPLITUDES if reach == REACHES[0] else AMPLITUDES[1:])
        for deviation in deviations
    )
    log_weight = np.array([one.log_weight for one in settings])
    left_out = np.array([one.left_out for one in settings])
    density = special.logsumexp(left_out + (log_weight - special.logsumexp(log_weight))[:, None], axis=0)
    formula = f"{polynomial.formula}, plus a smooth random function"
    form = _linear("smooth", formula, FREE, partial(_columns, frame), polynomial.linear)
    return Smooth(form, settings, y, design, waves, dof + len(y) - design.shape[1], density)


def draw_smooth(smooth: Smooth, draws: int, rng: np.random.Generator) -> Floats:
    """(draws, m) coefficients from the posterior, by Matheron's rule: draw the prior and the noise, then correct."""
    chosen = rng.choice(len(smooth.settings), size=draws, p=smooth.weight)
    n, polynomials = smooth.design.shape
    drawn = np.empty((draws, polynomials + smooth.waves.shape[1]))
    for index in np.unique(chosen):
        one, rows = smooth.settings[index], np.flatnonzero(chosen == index)
        spread = 1.0 if np.isinf(smooth.dof) else smooth.dof / rng.chisquare(smooth.dof, len(rows))
        sigma = np.sqrt(one.sigma2 * spread * np.ones(len(rows)))[:, None]
        waves = sigma * one.prior_std * rng.standard_normal((len(rows), len(one.prior_std)))
        noise = sigma * one.noise * rng.standard_normal((len(rows), n))
        off = smooth.y - waves @ smooth.waves.T - noise
        polynomial = off @ one.solve.T
        correction = (off - polynomial @ smooth.design.T) @ one.inverse @ smooth.waves * one.prior_std**2
        drawn[rows] = np.concatenate([polynomial, waves + correction], axis=1)
    return drawn


def mean_smooth(smooth: Smooth) -> Floats:
    """(m,) coefficients of the posterior mean."""
    parts = []
    for one in smooth.settings:
        polynomial = one.solve @ smooth.y
        waves = one.prior_std**2 * (smooth.waves.T @ (one.inverse @ (smooth.y - smooth.design @ polynomial)))
        parts.append(np.concatenate([polynomial, waves]))
    mean: Floats = smooth.weight @ np.array(parts)
    return mean


def _setting(
    design: Floats, waves: Floats, y: Floats, seeds: Floats, dof: float, choice: tuple[float, float, float]
) -> _Setting:
    """A setting by its choice of amplitude, reach and deviation."""
    (n, k), (amplitude, reach, deviation) = design.shape, choice
    prior_std: Floats = amplitude * np.sqrt(_spectrum(reach))
    noise = np.sqrt(1.0 / seeds + deviation**2)
    covariance = (waves * prior_std**2) @ waves.T + np.diag(noise**2)
    inverse: Floats = np.asarray(np.linalg.inv(covariance), dtype=np.float64)
    information = ridged(design.T @ inverse @ design)
    solve: Floats = np.asarray(np.linalg.solve(information, design.T @ inverse), dtype=np.float64)
    # the covariance's inverse once the polynomial is free: what a left-out loss is predicted with
    free = inverse - inverse @ design @ solve
    # losses on the polynomial itself leave rounding, of either sign
    chi2 = max(float(y @ free @ y), 1e-9)
    precision = np.maximum(np.diag(free), LEFT * np.diag(inverse))
    known = np.isinf(dof)
    sigma2 = 1.0 if known else (dof + chi2) / (dof + n - k)
    likelihood = chi2 if known else (dof + n - k) * np.log(dof + chi2)
    log_weight = -0.5 * (np.linalg.slogdet(covariance)[1] + np.linalg.slogdet(information)[1] + likelihood)
    log_weight += np.log(max(amplitude, AMPLITUDES[1])) - np.log1p((amplitude / USUAL) ** 2)
    log_weight -= np.log1p(deviation**2)
    errors = (free @ y) / precision
    left_out = stats.t.logpdf(errors, dof + n - k, scale=np.sqrt(sigma2 / precision))
    return _Setting(float(log_weight), deviation, prior_std, noise, inverse, solve, sigma2, left_out, errors)


def _columns(frame: Frame, theta: Floats, x: Floats, z: Floats) -> Floats:
    columns = np.concatenate(
        [quadratic(frame).model.columns(np.zeros(0), x, z), _waves(frame, x, z)], axis=-1
    )
    return np.broadcast_to(columns, theta.shape[:-1] + columns.shape)


def _waves(frame: Frame, x: Floats, z: Floats) -> Floats:
    """(p, WAVES²) products of sines of log size and of log depth; zero at the sides of the box and beyond."""
    along = []
    for values, middle, span in ((x, frame.x, frame.x_span), (z, frame.z, frame.z_span)):
        place = np.clip((values - middle) / max(span, 1e-9), -BOX, BOX)
        along.append(np.sin(np.outer(place + BOX, _frequencies())) / np.sqrt(BOX))
    products: Floats = (along[0][:, :, None] * along[1][:, None, :]).reshape(len(x), -1)
    return products


def _frequencies() -> Floats:
    return np.asarray(np.pi * np.arange(1, WAVES + 1) / (2.0 * BOX), dtype=np.float64)


def _spectrum(reach: float) -> Floats:
    """(WAVES²,) prior variances of the products, for a squared-exponential process of unit variance."""
    squared = _frequencies()[:, None] ** 2 + _frequencies()[None, :] ** 2
    return np.asarray(2.0 * np.pi * reach**2 * np.exp(-0.5 * reach**2 * squared)).ravel()
