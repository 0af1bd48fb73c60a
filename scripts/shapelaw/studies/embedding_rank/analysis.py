"""Redundancies with intervals, and the rank that is enough, from runs of full and low rank."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from shapelaw.errors import UserError
from shapelaw.fits.curves import SIZE_COLUMNS, SizeAxis
from shapelaw.fits.inputs import RECIPE, refuse, refuse_mixed, require_columns, run_numbers, whole_or_empty
from shapelaw.fits.noise import Noise, group_means, group_noise
from shapelaw.fits.redundancy import Baseline, Needed, Redundancy, needed_rank, redundancy

FULL, LOW = "full rank", "low rank"
POSITIONS = {True: "of that rank too", False: "of full rank"}
_COLUMNS = ("depth", "width", "seed", "test_loss", "embedding_rank", "positional_rank")
_SIZES = tuple(SIZE_COLUMNS.values())


@dataclass(frozen=True)
class Found:
    """The redundancy of one network on one size axis."""

    row: pd.Series
    axis: SizeAxis
    redundancy: Redundancy


@dataclass(frozen=True)
class EmbeddingAnalysis:
    """The networks and their redundancies.

    Attributes:
        networks: one row each: `series, width, embedding_rank, positional_rank`, sizes, `loss`, `seeds`, `loss_std`.
        noise: noise of one run's loss over seeds, pooled; None where nothing is repeated.
        found: for each factored network and each size axis.
        needed: the rank that is enough, by what the positions are; empty without noise or a full-rank network of that
            width.
    """

    networks: pd.DataFrame
    noise: Noise | None
    found: tuple[Found, ...]
    needed: dict[str, Needed]


def check_rank_runs(table: pd.DataFrame, source: str) -> pd.DataFrame:
    """The runs with `series` and `loss`; an empty rank is full.

    Raises:
        UserError: a column is missing, a value is wrong, runs differ in more than ranks and width, or one has two rows.
    """
    require_columns(table, [*_COLUMNS, *_SIZES], source)
    runs = run_numbers(table, ["depth", "width"], ["test_loss", *_SIZES], source)
    for name in ("embedding_rank", "positional_rank"):
        runs[name] = whole_or_empty(table, name, source, "for full rank")
    refuse_mixed(table, ["depth", *RECIPE], source)
    key = ["width", "embedding_rank", "positional_rank", "seed"]
    refuse(runs, runs.duplicated(key, keep=False), source, "a run (width, ranks, seed) must have one row")
    full = runs["embedding_rank"].isna()
    refuse(
        runs,
        full & runs["positional_rank"].notna(),
        source,
        "a network with full token embeddings has full positions here; study positional_rank is for those",
    )
    return runs.assign(series=np.where(full, FULL, LOW), loss=runs["test_loss"])


def analyse_runs(runs: pd.DataFrame) -> EmbeddingAnalysis:
    """Redundancy of every factored network on every size axis, and the rank that is enough.

    Args:
        runs: of `check_rank_runs`.

    Raises:
        UserError: fewer than two widths have full rank, or no network is factored.
    """
    networks = group_means(runs, ["series", "width", "embedding_rank", "positional_rank"], _SIZES)
    full, low = networks[networks["series"] == FULL], networks[networks["series"] == LOW]
    if len(full) < 2 or low.empty:
        raise UserError(
            "The runs need two widths of full rank, and a network of low rank to compare with them."
        )
    # one number: the draws of a redundancy have one noise for all widths
    noise, found = group_noise(networks, by_width=False), []
    for axis, column in SIZE_COLUMNS.items():
        baseline = Baseline(
            *(full.sort_values(column)[name].to_numpy(np.float64) for name in (column, "loss", "seeds"))
        )
        for place, (_, row) in enumerate(low.iterrows()):
            measured = redundancy(
                baseline, float(row[column]), float(row["loss"]), float(row["seeds"]), noise, place
            )
            found.append(Found(row, axis, measured))
    return EmbeddingAnalysis(
        networks, noise, tuple(found), {} if noise is None else _needed(full, low, noise)
    )


def _needed(full: pd.DataFrame, low: pd.DataFrame, noise: Noise) -> dict[str, Needed]:
    needed = {}
    for factored, words in POSITIONS.items():
        mine = low[low["positional_rank"].notna() == factored].sort_values("embedding_rank")
        same = full[full["width"].isin(mine["width"])]
        if not mine.empty and len(same) == 1:
            reference = float(same["loss"].iloc[0]), float(same["seeds"].iloc[0])
            ranks = [int(rank) for rank in mine["embedding_rank"]]
            needed[words] = needed_rank(ranks, mine["loss"], mine["seeds"], reference, noise)
    return needed
