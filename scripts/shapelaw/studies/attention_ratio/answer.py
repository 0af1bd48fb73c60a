"""Attention wider than the network: the answer in one line, from the study's tables."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from shapelaw.fits.curves import SizeAxis
from shapelaw.fits.redundancy import interval_words
from shapelaw.report.plots import short_number
from shapelaw.report.write import Answer, Table


def answer(tables: Mapping[str, Table]) -> Answer:
    """The redundancy of the widest attention at the largest size, in the blocks' parameters.

    Args:
        tables: `redundancy` and `comparison` of the study.
    """
    found = tables["redundancy"].frame
    found = found[(found["size_axis"] == SizeAxis.BLOCK) & found["redundancy"].notna()]
    printed = tables["comparison"].frame
    shares = pd.to_numeric(printed["published"], errors="coerce").dropna()
    published = f"{shares.iloc[0]:.0%} ({printed.loc[shares.index[0], 'quantity']})." if len(shares) else ""
    if found.empty:
        return Answer("No redundancy can be measured: no wide network can be compared.", False, published)
    row = found.sort_values(["ratio", "size"], ascending=False, kind="stable").iloc[0]
    interval = "" if pd.isna(row["low"]) else f" ({interval_words(row['low'], row['high'])})"
    return Answer(
        f"At H d_a / d = {row['ratio']:g} and {short_number(row['size'])} parameters in the blocks, "
        f"{row['redundancy']:.0%}{interval} of them are wasted ({row['status']}).",
        row["significant"] == "yes",
        published,
    )
