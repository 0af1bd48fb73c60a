"""The surface without a form: a polynomial of the second degree plus a smooth random function (a Gaussian process).

The function's size and reach are integrated over, by the restricted likelihood, so a surface that the polynomial
describes gets hardly any. A finite sum of sines stands for the process (Solin and Särkkä 2020), so a draw of the
surface is a set of coefficients like any other form's.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import special, stats  # type: ignore[import-untyped]

from shapelaw.fits.line import Floats
from shapelaw.fits.separable import Separable
from shapelaw.fits.surface_forms import FREE, Form, Frame, quadratic

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


def fit_smooth(frame: Frame, x: Floats, z: Floats, y: Floats, seeds: Floats, dof: float) -> Smooth:
    """Fit mean losses `y` (n,) in units of the noise, known with `dof` degrees of freedom (0: from residuals alone)."""
    polynomial = quadratic(frame)
    empty = np.zeros(0)
    design, waves = polynomial.model.columns(empty, x, z), _waves(frame, x, z)
    deviations = DEVIATIONS if dof > 0 else DEVIATIONS[:1]
    settings = tuple(
        _setting(design, waves, y, seeds, dof, amplitude, reach, deviation)
        for reach in REACHES
        for amplitude in (AMPLITUDES if reach == REACHES[0] else AMPLITUDES[1:])
        for deviation in deviations
    )
    log_weight = np.array([one.log_weight for one in settings])
    left_out = np.array([one.left_out for one in settings])
    density = special.logsumexp(left_out + (log_weight - special.logsumexp(log_weight))[:, None], axis=0)
    form = Form(
        "smooth",
        "second degree in log N and log L, plus a smooth random function",
        FREE,
        Separable(partial(_columns, frame), empty, empty),
        np.zeros((1, 0)),
        (),
        design.shape[1],
    )
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
    design: Floats,
    waves: Floats,
    y: Floats,
    seeds: Floats,
    dof: float,
    amplitude: float,
    reach: float,
    deviation: float,
) -> _Setting:
    n, k = design.shape
    prior_std: Floats = amplitude * np.sqrt(_spectrum(reach))
    noise = np.sqrt(1.0 / seeds + deviation**2)
    covariance = (waves * prior_std**2) @ waves.T + np.diag(noise**2)
    inverse: Floats = np.asarray(np.linalg.inv(covariance), dtype=np.float64)
    information = design.T @ inverse @ design
    solve: Floats = np.asarray(np.linalg.solve(information, design.T @ inverse), dtype=np.float64)
    # the covariance's inverse once the polynomial is free: what a left-out loss is predicted with
    free = inverse - inverse @ design @ solve
    chi2, precision = float(y @ free @ y), np.diag(free)
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
