"""The noise of the test loss from seed to seed: one standard deviation, pooled over the repeated shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
from scipy import stats  # type: ignore[import-untyped]

from shapelaw.errors import UserError


@dataclass(frozen=True)
class Noise:
    """Standard deviation of one run's loss over seeds, and the degrees of freedom of its estimate."""

    std: float
    dof: float

    def threshold(self, confidence: float = 0.95) -> float:
        """The number of standard errors from which a difference is significant: Student's two-sided quantile."""
        quantile = stats.norm.ppf if math.isinf(self.dof) else lambda p: stats.t.ppf(p, self.dof)
        return float(quantile(0.5 + confidence / 2.0))

    def chance(self, chi2: float, dof: int) -> float:
        """The chance of a larger `chi2` of residuals with `dof` degrees of freedom, in units of this noise.

        By Fisher's F, since the noise is itself an estimate: chi2's own distribution rejects too many good fits.
        """
        if math.isinf(self.dof):
            return float(stats.chi2.sf(chi2, dof))
        return float(stats.f.sf(chi2 / dof, dof, self.dof))


def noise_sentence(noise: Noise | None) -> str:
    """The noise between seeds in a sentence, for a study whose intervals come from it."""
    if noise is None:
        return "Seed noise: no network has two seeds, so nothing has an interval."
    return f"Seed noise: {noise.std:.3g} per run, {noise.dof:.0f} degrees of freedom."


def group_means(runs: pd.DataFrame, by: Sequence[str], also: Sequence[str] = ()) -> pd.DataFrame:
    """One row per group: `by`, `loss` (mean over seeds), `seeds`, `loss_std` (NaN with one seed), and `also`.

    Args:
        runs: one row per run, with `loss` and `seed`; missing values in `by` are a group of their own.
        also: columns that are the same for all runs of a group.
    """
    grouped = runs.groupby(list(by), as_index=False, sort=True, dropna=False)
    kept = {name: (name, "first") for name in also}
    return grouped.agg(loss=("loss", "mean"), seeds=("seed", "size"), loss_std=("loss", "std"), **kept)


def group_noise(
    means: pd.DataFrame, remedy: str = "Check that the seed reaches the training."
) -> Noise | None:
    """The pooled standard deviation `sqrt(sum (n_i - 1) s_i^2 / sum (n_i - 1))`; None if no group has two seeds.

    Args:
        means: the result of `group_means`.
        remedy: what to do where the seeds changed nothing.

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
    return Noise(math.sqrt(variance), float(dof))


def seed_table(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per shape: `depth, width, seeds, loss_mean, loss_std` (NaN with one seed), by depth, then width.

    `runs` has the columns `depth, width, seed, loss`.
    """
    means = group_means(runs, ["depth", "width"]).rename(columns={"loss": "loss_mean"})
    return means[["depth", "width", "seeds", "loss_mean", "loss_std"]]


def pooled_noise(*runs: pd.DataFrame) -> Noise | None:
    """The noise pooled over the repeated shapes of tables of `depth, width, seed, loss`; None with no repeated shape.

    Raises:
        UserError: repeated seeds have exactly equal losses, so the seed changed nothing.
    """
    remedy = "Check that the seed reaches the training, or give the noise with --noise."
    return group_noise(pd.concat([seed_table(one) for one in runs], ignore_index=True), remedy)
