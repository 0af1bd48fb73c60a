"""The tables of the study of the embedding's rank."""

from __future__ import annotations

import pandas as pd

from shapelaw.fits.curves import SIZE_LABELS, SizeAxis
from shapelaw.report.tables import yes_or_no
from shapelaw.studies.embedding_rank.analysis import POSITIONS, EmbeddingAnalysis
from shapelaw.studies.reference import published_json

PUBLISHED_RANK, PUBLISHED_WIDTH = 16, 680
_FINDING = "rank 16 of width 680 (about 70M) matches a network smaller by"


def losses_table(analysis: EmbeddingAnalysis) -> pd.DataFrame:
    """One row for each network: its ranks (empty: full), sizes, and mean test loss in nats per token."""
    names = ["series", "width", "embedding_rank", "positional_rank"]
    sizes = ["block_params", "total_params", "step_flops"]
    table = analysis.networks[[*names, *sizes, "loss", "loss_std", "seeds"]]
    ranks = {"embedding_rank": "Int64", "positional_rank": "Int64"}
    return table.astype(ranks).rename(columns={"loss": "test_loss"})


def redundancy_table(analysis: EmbeddingAnalysis) -> pd.DataFrame:
    """One row for each factored network and size axis: the redundancy with its 68% interval."""
    rows = []
    for one in analysis.found:
        rank, found = int(one.row["embedding_rank"]), one.redundancy
        rows.append(
            {
                "embedding_rank": rank,
                "rank_over_width": rank / one.row["width"],
                "positions": POSITIONS[bool(pd.notna(one.row["positional_rank"]))],
                "size_axis": one.axis.value,
                "redundancy": found.value,
                "low": found.low,
                "high": found.high,
                "p_value": found.p_value,
                "status": found.status.value,
                "significant": yes_or_no(found.significant),
            }
        )
    return pd.DataFrame(rows)


def needed_table(analysis: EmbeddingAnalysis) -> pd.DataFrame:
    """The least rank whose cost can't be told apart from noise, and the largest whose cost can.

    `unseen` is the least cost, in nats, that would have been significant at the rank that is enough.
    """
    rows = [(words, found.enough, found.too_small, found.unseen) for words, found in analysis.needed.items()]
    table = pd.DataFrame(rows, columns=["positions", "enough", "too_small", "unseen"])
    return table.astype({"enough": "Int64", "too_small": "Int64"})


def comparison_table(analysis: EmbeddingAnalysis) -> pd.DataFrame:
    """The paper's statement beside ours at the nearest r / d: r / d = 16 / 680 wastes 25% of about 70M parameters.

    `agrees`: the 68% interval holds the published number, or a bound lies on its side; open without an interval.
    """
    share, theirs = (
        PUBLISHED_RANK / PUBLISHED_WIDTH,
        float(published_json("vocabulary_findings")["redundancy"][_FINDING]),
    )
    rows = []
    for axis in SizeAxis:
        mine = [one for one in analysis.found if one.axis is axis and pd.notna(one.row["positional_rank"])]
        if not mine:
            continue
        one = min(mine, key=lambda one: abs(one.row["embedding_rank"] / one.row["width"] - share))
        found = one.redundancy
        rows.append(
            {
                "quantity": f"redundancy in {SIZE_LABELS[axis]}",
                "setting": f"r = {int(one.row['embedding_rank'])} of d = {int(one.row['width'])}",
                "ours": found.value,
                "low": found.low,
                "high": found.high,
                "status": found.status.value,
                "published": theirs,
                "published_setting": "r = 16 of d = 680",
                "agrees": yes_or_no(found.agrees_with(theirs)),
            }
        )
    return pd.DataFrame(rows)
