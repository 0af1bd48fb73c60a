"""The noise of the test loss: from seed to seed, and the scatter of networks about smooth loss curves.

Seed noise is one standard deviation, or one that follows the width, pooled over the repeated shapes. Where their
spreads say so, it is `std(width) = std_0 (width / width_0)^slope`: see `width_noise`. Log width describes our repeated
shapes better than the log of the size does.

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
import pandas as pd
from scipy import special  # type: ignore[import-untyped]

from shapelaw.errors import UserError

Floats = npt.NDArray[np.float64]
# slopes of log std with log width to try, and the standard deviation of their normal prior about 0 (one number for all
# widths): that of the slopes of our own tables, and a mean over `width` independent features has -1/2
SLOPES: Floats = np.linspace(-4.0, 4.0, 641)
PRIOR_STD = 0.75
# the chance, by the posterior, that the slope has the other sign, below which the seeds say that there is one
OTHER_SIGN = 0.025
# fewer degrees of freedom have one number: intervals with a slope were checked by simulation from here on
LEAST_DOF = 8
SIGNIFICANT = 0.05  # chances below it are told as significant
INTERVAL = (0.16, 0.84)  # quantiles of a 68% interval
LEAST_CHANCE = 0.001  # a smaller one is told as smaller
LESS = f"< {LEAST_CHANCE:g}"


@dataclass(frozen=True)
class Noise:
    """Standard deviation of one run's loss over seeds, and the degrees of freedom of its estimate.

    A network's own are `at` and `dof_at` its width; here the same for all widths.
    """

    std: float
    dof: float

    def at(self, width: npt.ArrayLike) -> Floats:
        """Standard deviations of one run's loss at (n,) widths."""
        return np.full(np.shape(width), self.std)

    def dof_at(self, width: npt.ArrayLike) -> Floats:
        """Degrees of freedom of `at` at (n,) widths."""
        return np.full(np.shape(width), self.dof)

    def runs_at(self, width: npt.ArrayLike, seeds: npt.ArrayLike) -> Floats:
        """The numbers of runs of the noise `std` whose mean is as noisy as that of `seeds` runs at (n,) widths."""
        return np.asarray(np.asarray(seeds, dtype=np.float64) * (self.std / self.at(width)) ** 2)

    def drawn_std(self, draws: int, rng: np.random.Generator) -> Floats:
        """(draws, 1) values that `std` can have, by what its degrees of freedom leave unknown."""
        std = np.full((draws, 1), self.std)
        if math.isfinite(self.dof):
            std *= np.sqrt(self.dof / rng.chisquare(self.dof, (draws, 1)))
        return std

    def drawn_tilts(self, width: npt.ArrayLike, draws: int, rng: np.random.Generator) -> Floats:
        """Factors of the variances at (n,) widths, drawn from what is unknown of the slope: (draws, n), or (1, 1)."""
        return np.ones((1, 1))

    @property
    def words(self) -> str:
        """`0.00771 per run, 28 degrees of freedom`."""
        known = "as given" if math.isinf(self.dof) else f"{self.dof:.0f} degrees of freedom"
        return f"{self.std:.3g} per run, {known}"

    def threshold(self) -> float:
        """The number of standard errors from which a difference is significant: Student's two-sided quantile."""
        return float(student_threshold(self.dof))

    def threshold_at(self, *widths: npt.ArrayLike) -> Floats:
        """`threshold` of differences of networks that have these (n,) widths, by the least known of their noises."""
        return student_threshold(np.min([self.dof_at(width) for width in widths], axis=0))

    def chance(self, chi2: float, dof: int) -> float:
        """The chance of a larger `chi2` of residuals with `dof` degrees of freedom, in units of this noise.

        By Fisher's F, since the noise is itself an estimate: chi2's own distribution rejects too many good fits.
        """
        chi2 = max(chi2, 0.0)  # rounding
        if math.isinf(self.dof):
            return float(special.chdtrc(dof, chi2))
        return float(special.fdtrc(dof, self.dof, chi2 / dof))


def student_threshold(dof: npt.ArrayLike) -> Floats:
    """Student's two-sided 95% quantiles for (n,) degrees of freedom, the normal ones where these are infinite."""
    return np.asarray(special.stdtrit(dof, 0.975), dtype=np.float64)


@dataclass(frozen=True)
class WidthNoise(Noise):
    """Noise whose standard deviation is `middle_std (width / middle)^slope`.

    `std` is the single number that pooling gives. `dof` is that of `middle_std`, and `slope_err` the standard error of
    the slope, so other widths have fewer (`dof_at`). Beyond the repeated widths, `lowest` to `highest`, the noise grows
    as the line does, but never falls further: nobody has seen it.
    """

    slope: float
    slope_err: float
    middle: float
    middle_std: float
    lowest: float
    highest: float

    def at(self, width: npt.ArrayLike) -> Floats:
        """Standard deviations of one run's loss at (n,) widths."""
        given = np.asarray(width, dtype=np.float64)
        seen = np.clip(given, self.lowest, self.highest)
        relative = np.maximum(self._away(given) * self.slope, self._away(seen) * self.slope)
        return np.asarray(self.middle_std * np.exp(relative))

    def dof_at(self, width: npt.ArrayLike) -> Floats:
        """Degrees of freedom of `at`: `2 / dof_at` is the variance of its log variance, with that of the slope."""
        return np.asarray(1.0 / (1.0 / self.dof + 2.0 * (self.slope_err * self._away(width)) ** 2))

    def drawn_tilts(self, width: npt.ArrayLike, draws: int, rng: np.random.Generator) -> Floats:
        """Factors (draws, n) of the variances at (n,) widths, drawn from what is unknown of the slope."""
        off = self.slope_err * rng.standard_normal((draws, 1))
        return np.asarray(np.exp(2.0 * off * self._away(width)))

    @property
    def words(self) -> str:
        """`0.00771 per run, 27 degrees of freedom, by width from 0.0151 at 32 to 0.00348 at 256`."""
        ends = (self.lowest, self.highest)
        first, last = (f"{float(self.at(width)):.3g} at {width:.0f}" for width in ends)
        return f"{super().words}, by width from {first} to {last}"

    def _away(self, width: npt.ArrayLike) -> Floats:
        return np.asarray(np.log(np.asarray(width, dtype=np.float64) / self.middle))


def width_noise(width: Floats, std: Floats, dof: Floats) -> WidthNoise | None:
    """The noise by width of (n,) repeated shapes, whose runs have standard deviations `std` with `dof` each.

    Each `dof std^2 / variance` is chi-squared with `dof` degrees of freedom, and `log variance` a line in log width.
    The level has a flat prior and is integrated out; the slope has a normal one about 0 with `PRIOR_STD`. None where
    its posterior does not tell its sign (`OTHER_SIGN`), or seeds are few (`LEAST_DOF`): then they don't show more than
    one number.
    """
    total, x = float(dof.sum()), np.log(width)
    if total < LEAST_DOF:
        return None
    middle = float(dof @ x) / total
    squares = (dof * std**2) @ np.exp(-2.0 * SLOPES * (x - middle)[:, None])
    log_posterior = -0.5 * total * np.log(squares) - 0.5 * (SLOPES / PRIOR_STD) ** 2
    weight: Floats = special.softmax(log_posterior)
    if min(float(weight[SLOPES <= 0].sum()), float(weight[SLOPES >= 0].sum())) > OTHER_SIGN:
        return None
    slope = float(weight @ SLOPES)
    slope_err = math.sqrt(float(weight @ (SLOPES - slope) ** 2))
    # the share of a parameter that the seeds, not the prior, determine
    fitted = max(1.0 - (slope_err / PRIOR_STD) ** 2, 0.0)
    left = dof * std**2 * np.exp(-2.0 * slope * (x - middle))
    return WidthNoise(
        std=math.sqrt(float(dof @ std**2) / total),
        dof=total - fitted,
        slope=slope,
        slope_err=slope_err,
        middle=math.exp(middle),
        middle_std=math.sqrt(float(left.sum()) / (total - fitted)),
        lowest=float(width.min()),
        highest=float(width.max()),
    )


def chance_words(p: float) -> str:
    """A chance in words: `p = 0.047`, or `p < 0.001`, below which the tails of the noise are nobody's knowledge."""
    return f"p {LESS}" if p < LEAST_CHANCE else f"p = {p:.2g}"


def noise_sentence(noise: Noise | None) -> str:
    """The noise between seeds in a sentence, for a study whose intervals come from it."""
    if noise is None:
        return "Seed noise: no network has two seeds, so nothing has an interval."
    return f"Seed noise: {noise.words}."


def group_means(runs: pd.DataFrame, by: Sequence[str], also: Sequence[str] = ()) -> pd.DataFrame:
    """One row per group: `by`, `loss` (mean over seeds), `seeds`, `loss_std` (NaN with one seed), and `also`.

    Args:
        runs: one row per run, with `loss` and `seed`; missing values in `by` are a group of their own.
        also: columns that are the same for all runs of a group.
    """
    # by codes: pandas' own means and deviations of ten groups take four times as long
    codes = runs.groupby(list(by), sort=True, dropna=False).ngroup().to_numpy()
    _, first, seeds = np.unique(codes, return_index=True, return_counts=True)
    loss = runs["loss"].to_numpy(dtype=np.float64)
    mean = np.bincount(codes, loss) / seeds
    squares = np.bincount(codes, (loss - mean[codes]) ** 2)
    std = np.sqrt(squares / np.where(seeds > 1, seeds - 1.0, math.nan))
    means = runs[[*by]].iloc[first].reset_index(drop=True).assign(loss=mean, seeds=seeds, loss_std=std)
    return means.assign(**{name: runs[name].to_numpy()[first] for name in also})


def group_noise(
    means: pd.DataFrame,
    remedy: str = "Check that the seed reaches the training.",
    *,
    by_width: bool = True,
) -> Noise | None:
    """The pooled standard deviation `sqrt(sum (n_i - 1) s_i^2 / sum (n_i - 1))`; None if no group has two seeds.

    Args:
        means: the result of `group_means`.
        remedy: what to do where the seeds changed nothing.
        by_width: the noise follows the groups' `width`, where there is one and the seeds show it (`width_noise`).

    Raises:
        UserError: repeated seeds have exactly equal losses, so the seed changed nothing.
    """
    repeated = means[means["seeds"] > 1]
    dof = int((repeated["seeds"] - 1).sum())
    if dof == 0:
        return None
    variance = float(((repeated["seeds"] - 1) * repeated["loss_std"] ** 2).sum()) / dof
    if variance <= 0:
        raise UserError(
            f"The repeated seeds of the runs have exactly equal losses, so they measure no noise. {remedy}"
        )
    if by_width and "width" in repeated:
        columns = (repeated[name].to_numpy(dtype=np.float64) for name in ("width", "loss_std", "seeds"))
        width, std, seeds = columns
        following = width_noise(width, std, seeds - 1.0)
        if following is not None:
            return following
    return Noise(math.sqrt(variance), float(dof))


def seed_table(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per shape: `depth, width, seeds, loss_mean, loss_std` (NaN with one seed), by depth, then width.

    `runs` has the columns `depth, width, seed, loss`.
    """
    means = group_means(runs, ["depth", "width"]).rename(columns={"loss": "loss_mean"})
    return means[["depth", "width", "seeds", "loss_mean", "loss_std"]]


def pooled_noise(*runs: pd.DataFrame, by_width: bool = True) -> Noise | None:
    """The noise pooled over the repeated shapes of tables of `depth, width, seed, loss`; None with no repeated shape.

    It follows the width where the seeds show it, unless `by_width` is False.

    Raises:
        UserError: repeated seeds have exactly equal losses, so the seed changed nothing.
    """
    remedy = "Check that the seed reaches the training, or give the noise with --noise."
    means = pd.concat([seed_table(one) for one in runs], ignore_index=True)
    return group_noise(means, remedy, by_width=by_width)


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
