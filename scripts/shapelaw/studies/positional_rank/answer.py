"""Rank of the positional embedding: the answer in one line, from the study's tables."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from shapelaw.report.write import Answer, Table

SERIES = "positional"


def answer(tables: Mapping[str, Table]) -> Answer:
    """The rank from which nothing is lost, with the largest rank that is too small.

    Args:
        tables: `needed` and `comparison` of the study.
    """
    needed, printed = tables["needed"].frame, tables["comparison"].frame
    published = f"{printed['published'].iloc[0]} ({printed['quantity'].iloc[0]})." if len(printed) else ""
    mine = needed[needed["series"] == SERIES]
    if mine.empty:
        return Answer("No positional rank can be compared.", False, published)
    row = mine.iloc[0]
    unseen = "" if pd.isna(row["unseen"]) else f"; a cost below {row['unseen']:.2g} nats would not be seen"
    if pd.isna(row["too_small"]):
        return Answer(f"No rank tried is significantly worse than full rank{unseen}.", False, published)
    if pd.isna(row["enough"]):
        return Answer(
            f"More than {row['too_small']:.0f}: every rank tried is significantly worse than full rank.",
            True,
            published,
        )
    return Answer(
        f"{row['enough']:.0f} is enough, {row['too_small']:.0f} too small, of {row['full_rank']:.0f}{unseen}.",
        True,
        published,
    )
