"""Costs of low ranks, the ranks that are enough, and the vocabulary rank that costs as much as a positional one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from shapelaw.errors import UserError
from shapelaw.fits.curves import SIZE_COLUMNS
from shapelaw.fits.inputs import RECIPE, refuse, refuse_mixed, require_columns, run_numbers, whole_or_empty
from shapelaw.fits.noise import Noise, group_means, group_noise
from shapelaw.fits.redundancy import Baseline, Needed, RedundancyStatus, needed_rank, redundancy

PLAIN, POSITIONAL, VOCABULARY = "plain", "positional", "vocabulary"
FACTORED = "factored at full rank"
_ONE = ("depth", "width", "vocab_size", "context_length")  # for all networks
_RANKS = {POSITIONAL: "positional_rank", VOCABULARY: "embedding_rank"}
_SIZES = tuple(SIZE_COLUMNS.values())
BELOW, ABOVE = "below the ranks trained", "costs less than every vocabulary rank"
_STATUS = {RedundancyStatus.AT_LEAST: BELOW, RedundancyStatus.AT_MOST: ABOVE}


@dataclass(frozen=True)
class Equivalent:
    """The vocabulary rank that costs as much as a positional rank.

    Attributes:
        positional_rank: the rank of the positional embedding, that of tokens being plain.
        rank: the vocabulary rank of equal loss; the bound where `status` is one.
        low, high: the 68% interval; 0 or infinite where it leaves the vocabulary ranks that were trained.
        worse, better: the largest vocabulary rank that is significantly worse, and the smallest that is significantly
            better, whatever the curve between them; None where there is none.
        status: measured; below the ranks trained (even the smallest costs less); costs less than every vocabulary rank.
    """

    positional_rank: int
    rank: float
    low: float
    high: float
    worse: int | None
    better: int | None
    status: str


@dataclass(frozen=True)
class PositionalAnalysis:
    """The networks and what was found of them.

    Attributes:
        networks: one row each: `series, rank` (NaN where both embeddings are plain), `width`, sizes, `loss`, `seeds`,
            `loss_std`, and `cost`, the loss less that of plain embeddings, with `cost_err` (NaN without noise).
        noise: noise of one run's loss over seeds, pooled; None where nothing is repeated.
        full_ranks: the full rank of each series' embedding.
        needed: for each series the rank that is enough, against plain embeddings and against the embedding that is
            factored at full rank, where there is one; empty without noise.
        equivalents: for each positional rank; empty with fewer than two vocabulary ranks, full one included.
    """

    networks: pd.DataFrame
    noise: Noise | None
    full_ranks: Mapping[str, int]
    needed: Mapping[tuple[str, str], Needed]
    equivalents: tuple[Equivalent, ...]

    def series(self, name: str) -> pd.DataFrame:
        """The networks of a series by growing rank."""
        return self.networks[self.networks["series"] == name].sort_values("rank")

    @property
    def plain(self) -> pd.Series:
        """The network with plain embeddings."""
        return self.series(PLAIN).iloc[0]

    def references(self, name: str) -> dict[str, pd.Series]:
        """The networks that lose no rank: with plain embeddings, and with this series' one factored at full rank."""
        mine = self.series(name)
        factored = mine[mine["rank"] == self.full_ranks[name]]
        return {PLAIN: self.plain} | ({FACTORED: factored.iloc[0]} if len(factored) else {})


def check_positional_runs(table: pd.DataFrame, source: str) -> pd.DataFrame:
    """The runs with `series`, `rank` and `loss`; an empty rank is a plain embedding.

    Raises:
        UserError: a column is missing, a value is wrong, the runs differ in more than ranks, or a run has two rows.
    """
    ranked = list(_RANKS.values())
    require_columns(table, [*_ONE, "seed", *ranked, "test_loss", *_SIZES], source)
    runs = run_numbers(table, _ONE, ["test_loss", *_SIZES], source)
    refuse_mixed(table, ["depth", "width", *RECIPE], source)
    for name, entries in (("positional_rank", "context_length"), ("embedding_rank", "vocab_size")):
        runs[name] = whole_or_empty(table, name, source, "for a plain embedding")
        most = runs[["width", entries]].min(axis=1)
        refuse(
            runs, (runs[name] > most).fillna(False), source, f"{name} must not be above width or {entries}"
        )
    both = runs["positional_rank"].notna() & runs["embedding_rank"].notna()
    refuse(runs, both, source, "one of embedding_rank and positional_rank must be empty (plain)")
    refuse(
        runs, runs.duplicated([*ranked, "seed"], keep=False), source, "a run (ranks, seed) must have one row"
    )
    positional, vocabulary = runs["positional_rank"].notna(), runs["embedding_rank"].notna()
    return runs.assign(
        series=np.select([positional, vocabulary], [POSITIONAL, VOCABULARY], PLAIN),
        rank=runs["positional_rank"].fillna(runs["embedding_rank"]).astype("float64"),
        loss=runs["test_loss"],
    )


def analyse_runs(runs: pd.DataFrame) -> PositionalAnalysis:
    """Costs, needed ranks and equivalents.

    Args:
        runs: of `check_positional_runs`.

    Raises:
        UserError: no network has plain embeddings, or none a factored positional embedding.
    """
    networks = group_means(runs, ["series", "rank", "width"], _SIZES)
    if not {PLAIN, POSITIONAL} <= set(networks["series"]):
        raise UserError(
            "The runs need a network with plain embeddings (both ranks empty), and one with a positional rank."
        )
    noise = group_noise(networks)
    plain = networks[networks["series"] == PLAIN].iloc[0]
    std = math.nan if noise is None else noise.std
    networks = networks.assign(
        cost=networks["loss"] - plain["loss"],
        cost_err=std * np.sqrt(1 / networks["seeds"] + 1 / plain["seeds"]),
    )
    first = runs.iloc[0]
    ranks = {
        POSITIONAL: int(min(first["width"], first["context_length"])),
        VOCABULARY: int(min(first["width"], first["vocab_size"])),
    }
    found = PositionalAnalysis(networks, noise, ranks, {}, ())
    needed = {} if noise is None else _needed(found, noise)
    return PositionalAnalysis(networks, noise, ranks, needed, _equivalents(found))


def _needed(analysis: PositionalAnalysis, noise: Noise) -> dict[tuple[str, str], Needed]:
    needed = {}
    for name in (POSITIONAL, VOCABULARY):
        mine = analysis.series(name)
        if mine.empty:
            continue
        for against, one in analysis.references(name).items():
            compared = mine[mine["rank"] < analysis.full_ranks[name]] if against == FACTORED else mine
            if not compared.empty:
                ranks = [int(rank) for rank in compared["rank"]]
                reference = float(one["loss"]), float(one["seeds"])
                losses, seeds = compared["loss"], compared["seeds"]
                needed[name, against] = needed_rank(ranks, losses, seeds, reference, noise)
    return needed


def _equivalents(analysis: PositionalAnalysis) -> tuple[Equivalent, ...]:
    """By monotone interpolation of the vocabulary series in log rank.

    Where no token embedding is factored at full rank, plain embeddings end the series.
    """
    mine, most = analysis.series(VOCABULARY), analysis.full_ranks[VOCABULARY]
    if mine.empty:
        return ()
    if most not in set(mine["rank"]):
        mine = pd.concat([mine, analysis.plain.to_frame().T.assign(rank=float(most))])
    curve = Baseline(*(mine[name].to_numpy(np.float64) for name in ("rank", "loss", "seeds")))
    found = []
    for place, (_, row) in enumerate(analysis.series(POSITIONAL).iterrows()):
        # 1 - rank of equal loss / full rank, which is a redundancy in ranks
        loss, seeds = float(row["loss"]), float(row["seeds"])
        shares = redundancy(curve, most, loss, seeds, analysis.noise, place)
        rank, low, high = (most * (1 - share) for share in (shares.value, shares.high, shares.low))
        status = _STATUS.get(shares.status, shares.status.value)
        worse, better = _neighbours(curve, loss, seeds, analysis.noise)
        found.append(Equivalent(int(row["rank"]), rank, low, high, worse, better, status))
    return tuple(found)


def _neighbours(
    curve: Baseline, loss: float, seeds: float, noise: Noise | None
) -> tuple[int | None, int | None]:
    """The largest rank that is significantly worse than a loss, and the smallest that is significantly better."""
    if noise is None:
        return None, None
    err = noise.threshold() * noise.std * np.sqrt(1 / curve.seeds + 1 / seeds)
    worse, better = curve.size[curve.loss - loss > err], curve.size[loss - curve.loss > err]
    return int(worse.max()) if len(worse) else None, int(better.min()) if len(better) else None
