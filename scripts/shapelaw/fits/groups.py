"""Runs that differ only in their seed: their mean loss, and the noise pooled over all such groups."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from shapelaw.errors import UserError
from shapelaw.fits.noise import Noise


def group_means(runs: pd.DataFrame, by: Sequence[str], also: Sequence[str] = ()) -> pd.DataFrame:
    """One row per group: `by`, `loss` (mean over seeds), `seeds`, `loss_std` (NaN with one seed), and `also`.

    Args:
        runs: one row per run, with `loss` and `seed`; missing values in `by` are a group of their own.
        also: columns that are the same for all runs of a group.
    """
    grouped = runs.groupby(list(by), as_index=False, sort=True, dropna=False)
    kept = {name: (name, "first") for name in also}
    return grouped.agg(loss=("loss", "mean"), seeds=("seed", "size"), loss_std=("loss", "std"), **kept)


def group_noise(means: pd.DataFrame) -> Noise | None:
    """The pooled standard deviation `sqrt(sum (n_i - 1) s_i^2 / sum (n_i - 1))`; None if no group has two seeds.

    Args:
        means: the result of `group_means`.

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
            "The repeated seeds of the runs have exactly equal losses, so they measure no noise; check that the seed "
            "reaches the training."
        )
    return Noise(math.sqrt(variance), float(dof))
