"""Rank of the embedding: the answer in one line, from the study's tables."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from shapelaw.fits.curves import SizeAxis
from shapelaw.fits.redundancy import interval_words
from shapelaw.report.write import Answer, Table


def answer(tables: Mapping[str, Table]) -> Answer:
    """The redundancy of the lowest rank, in the blocks' parameters, beside the published one.

    Args:
        tables: `redundancy` and `comparison` of the study.
    """
    found = tables["redundancy"].frame
    found = found[(found["size_axis"] == SizeAxis.BLOCK) & found["redundancy"].notna()]
    printed = tables["comparison"].frame
    printed = printed[printed["published"].notna()]
    published = ""
    if not printed.empty:
        first = printed.iloc[0]
        published = f"{first['published']:.0%} at {first['published_setting']}."
    if found.empty:
        return Answer(
            "No redundancy can be measured: no network of low rank can be compared.", False, published
        )
    row = found.sort_values("rank_over_width", kind="stable").iloc[0]
    interval = "" if pd.isna(row["low"]) else f" ({interval_words(row['low'], row['high'])})"
    return Answer(
        f"At rank {row['embedding_rank']:.0f}, {row['rank_over_width']:.2g} of the width, {row['redundancy']:.0%}"
        f"{interval} of the blocks' parameters are wasted (positions {row['positions']}; {row['status']}).",
        row["significant"] == "yes",
        published,
    )
