"""The tables of the study of the positional embedding's rank."""

from __future__ import annotations

import math

import pandas as pd

from shapelaw.studies.positional_rank.analysis import (
    FACTORED,
    PLAIN,
    POSITIONAL,
    VOCABULARY,
    PositionalAnalysis,
)
from shapelaw.studies.reference import published_json

YES, NO, OPEN = "yes", "no", "open"


def losses_table(analysis: PositionalAnalysis) -> pd.DataFrame:
    """One row for each network: its rank (empty: both plain), test loss, and its cost with the 95% interval."""
    networks, noise = analysis.networks, analysis.noise
    half = (math.nan if noise is None else noise.threshold()) * networks["cost_err"]
    table = networks.assign(cost_low=networks["cost"] - half, cost_high=networks["cost"] + half)
    of_others = ["cost", "cost_low", "cost_high"]
    table.loc[table["series"] == PLAIN, of_others] = math.nan  # against itself
    names = ["series", "rank", "total_params", "loss", "loss_std", "seeds", *of_others]
    return table[names].rename(columns={"loss": "test_loss"}).astype({"rank": "Int64"})


def needed_table(analysis: PositionalAnalysis) -> pd.DataFrame:
    """For each series the least rank whose cost can't be told from noise, and the largest whose cost can.

    `against` plain embeddings the cost of factoring is part of it, against one factored at full rank it is not.
    `unseen` is the least cost, in nats, that would have been significant at the rank that is enough.
    """
    rows = [
        (name, against, analysis.full_ranks[name], found.enough, found.too_small, found.unseen)
        for (name, against), found in analysis.needed.items()
    ]
    columns = ["series", "against", "full_rank", "enough", "too_small", "unseen"]
    return pd.DataFrame(rows, columns=columns).astype({"enough": "Int64", "too_small": "Int64"})


def equivalents_table(analysis: PositionalAnalysis) -> pd.DataFrame:
    """For each positional rank the vocabulary rank that costs as much, with its 68% interval."""
    most = analysis.full_ranks[VOCABULARY]
    rows = [
        {
            "positional_rank": one.positional_rank,
            "vocabulary_rank": one.rank,
            "low": one.low,
            "high": one.high,
            "over_full": one.rank / most,
            "worse": one.worse,
            "better": one.better,
            "status": one.status,
        }
        for one in analysis.equivalents
    ]
    columns = ["positional_rank", "vocabulary_rank", "low", "high", "over_full", "worse", "better", "status"]
    return pd.DataFrame(rows, columns=columns).astype({"worse": "Int64", "better": "Int64"})


def comparison_table(analysis: PositionalAnalysis) -> pd.DataFrame:
    """The paper's statements beside ours.

    `agrees`: for the rank from which nothing is lost, ours is at most theirs (no if theirs is too small here); for the
    equivalent of positional rank 1, the ranks that are significantly worse and better leave room for theirs, as shares
    of the full rank. Open where ours can't tell.
    """
    theirs = published_json("positional_rank_findings")
    rows = [_needed(analysis, int(theirs["nothing_lost_from_positional_rank"]))]
    low, high = theirs["positional_rank_1_costs_vocabulary_rank"]
    full, most = int(theirs["full_rank"]), analysis.full_ranks[VOCABULARY]
    for one in analysis.equivalents:
        if one.positional_rank == 1:
            agrees = OPEN
            if one.worse is not None or one.better is not None:
                above, below = (one.worse or 0) / most, (one.better or math.inf) / most
                agrees = YES if above <= high / full and low / full <= below else NO
            rows.append(
                {
                    "quantity": "vocabulary rank that costs as much as positional rank 1",
                    "setting": f"full rank {most}",
                    "ours": one.rank,
                    "low": one.low,
                    "high": one.high,
                    "status": one.status,
                    "published": f"{low} to {high} of {full}",
                    "agrees": agrees,
                }
            )
    return pd.DataFrame(rows)


def _needed(analysis: PositionalAnalysis, theirs: int) -> dict[str, object]:
    """The rank from which nothing is lost: above the largest that is too small, at most the one that is enough."""
    against = FACTORED if (POSITIONAL, FACTORED) in analysis.needed else PLAIN
    found, most = analysis.needed.get((POSITIONAL, against)), analysis.full_ranks[POSITIONAL]
    ours, low, status, agrees = math.nan, math.nan, "no noise estimate", OPEN
    if found is not None and found.too_small is None:
        ours, status = float(found.enough or most), "no rank is significantly worse"
    elif found is not None and found.too_small is not None:
        ours, low = float(found.enough or most), float(found.too_small)
        status = "measured" if found.enough is not None else "every rank is worse"
        agrees = NO if low >= theirs else YES if ours <= theirs else OPEN
    return {
        "quantity": "positional rank from which nothing is lost",
        "setting": f"full rank {most}, against {against}",
        "ours": ours,
        "low": low,
        "high": ours,
        "status": status,
        "published": f"{theirs}, within 2 standard deviations",
        "agrees": agrees,
    }
