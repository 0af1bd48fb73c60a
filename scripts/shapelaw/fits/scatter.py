"""The scatter of networks about smooth loss curves: seed noise, and a shape's own deviation, common to its seeds.

The mean loss of a shape with n seeds varies about its curve with variance `sigma^2 (1/n + t^2)`: seed noise averages
out, a shape's own deviation (its heads, a learning rate that suits it less) does not. Repeated seeds determine sigma,
the residuals of the curves determine both. With a flat prior of log sigma, sigma is integrated out, which leaves the
restricted likelihood of t (Harville 1974) times a half-Cauchy prior of scale 1 (Gelman 2006): a few residuals can't
exclude scatter, so they don't.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from shapelaw.fits.line import Floats

# the values of t to try; shapes of published grids reach t = 10 and more
GRID_OF_T: Floats = np.concatenate([[0.0], np.geomspace(0.05, 50.0, 60)])
OUTLYING = 4.0


@dataclass(frozen=True)
class Scatter:
    """The posterior `weight` (m,) of `GRID_OF_T`, and for each t that of sigma^2: `sigma2 dof / chi2(dof)`.

    Everything is in units of the seed noise. `seeds` (n,) are the shapes' numbers of seeds, or of the runs of that
    noise that are as noisy (`Noise.runs_at`). `aicc`, Akaike's criterion with its correction for few points, compares
    models of the same shapes.
    """

    seeds: Floats
    weight: Floats
    sigma2: Floats
    dof: float
    aicc: float

    def std(self, seeds: npt.ArrayLike) -> Floats:
        """Standard deviation, about its curve, of the mean loss of a shape with this many seeds, at the median t."""
        at = min(int(np.searchsorted(np.cumsum(self.weight), 0.5)), len(GRID_OF_T) - 1)
        variance = self.sigma2[at] * (1.0 / np.asarray(seeds, dtype=np.float64) + GRID_OF_T[at] ** 2)
        return np.asarray(np.sqrt(variance), dtype=np.float64)

    @property
    def scale(self) -> float:
        """Standard deviation of a single run's loss about its curve, at the median t."""
        return float(self.std(1.0))

    def draw(self, draws: int, rng: np.random.Generator, tilts: Floats | float = 1.0) -> Floats:
        """(draws, n) standard deviations of the shapes' mean losses about their curves, drawn from the posterior.

        Args:
            tilts: factors of the variance of seeds (`Noise.drawn_tilts`).
        """
        at = rng.choice(len(GRID_OF_T), size=draws, p=self.weight)
        sigma2 = self.sigma2[at]
        if math.isfinite(self.dof):
            sigma2 = sigma2 * self.dof / rng.chisquare(self.dof, draws)
        variance: Floats = tilts / self.seeds + GRID_OF_T[at, None] ** 2
        return np.sqrt(sigma2[:, None] * variance)


def scatter_about(design: Floats, y: Floats, seeds: Floats, dof: float) -> Scatter:
    """The scatter of mean losses `y` (n,), in units of the seed noise, about a linear model `design` (n, k), k < n.

    `dof` is the degrees of freedom of the seed noise, infinite if the noise is known.
    """
    n, k = design.shape
    variance = 1.0 / seeds + GRID_OF_T[:, None] ** 2  # (m, n)
    white, target = design / np.sqrt(variance)[:, :, None], y / np.sqrt(variance)
    q, r = np.linalg.qr(white)
    along = np.einsum("mnk,mn->mk", q, target)
    chi2 = np.maximum((target**2).sum(axis=1) - (along**2).sum(axis=1), 0.0)
    log_variance = np.log(variance).sum(axis=1)
    log_design = 2.0 * np.log(np.abs(np.diagonal(r, axis1=1, axis2=2))).sum(axis=1)
    if math.isinf(dof):
        sigma2, restricted, likelihood = np.ones_like(chi2), chi2, chi2
    else:
        sigma2 = (dof + chi2) / (dof + n - k)
        restricted = (dof + n - k) * np.log(dof + chi2)
        likelihood = (dof + n) * np.log((dof + chi2) / (dof + n))
    log_posterior = -0.5 * (log_variance + log_design + restricted) - np.log1p(GRID_OF_T**2)
    weight = np.exp(log_posterior - log_posterior.max()) * np.gradient(GRID_OF_T)
    aicc = float((log_variance + likelihood).min()) + 2.0 * (k + 1) * n / max(n - k - 2, 0.5)
    return Scatter(seeds, weight / weight.sum(), sigma2, dof + n - k, aicc)


def outlying(design: Floats, y: Floats, seeds: Floats, dof: float) -> list[tuple[int, float]]:
    """The points more than 4 sigma off the curve through the others, with their distance in sigma; largest first.

    Sigma contains the scatter of the others and the error of their curve. Only the three largest residuals are tested.
    """
    n, k = design.shape
    if n - k < 3:
        return []
    white = design * np.sqrt(seeds)[:, None]
    hat = white @ np.linalg.pinv(white)
    residual = (y * np.sqrt(seeds)) @ (np.eye(n) - hat)
    size = np.abs(residual) / np.sqrt(np.maximum(1.0 - np.diag(hat), 1e-9))
    found = []
    for at in np.argsort(size)[:-4:-1]:
        others = np.arange(n) != at
        scatter = scatter_about(design[others], y[others], seeds[others], dof)
        err = scatter.std(seeds[others])
        solve = np.linalg.pinv(design[others] / err[:, None])
        along = design[at] @ solve
        pull = float(
            (y[at] - along @ (y[others] / err)) / np.hypot(scatter.std(seeds[at]), np.linalg.norm(along))
        )
        if abs(pull) > OUTLYING:
            found.append((int(at), pull))
    return sorted(found, key=lambda pair: -abs(pair[1]))


def least(candidates: Sequence[Floats], y: Floats, seeds: Floats, dof: float) -> tuple[int, Scatter]:
    """The index of the design with the least `aicc`, and the scatter about it."""
    scatters = [scatter_about(design, y, seeds, dof) for design in candidates]
    best = min(range(len(scatters)), key=lambda index: scatters[index].aicc)
    return best, scatters[best]
