"""Degree of attention: the answer in one line, from the study's tables."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from shapelaw.report.write import Answer, Table

REFERENCE, SOFTMAX = "degree 3", "softmax"
PUBLISHED = "degree 3 is the best integer by theory (Navon 2021)."
COMPARED = ("better", "worse", "no significant difference")


def answer(tables: Mapping[str, Table]) -> Answer:
    """How each attention stands against degree 3, at the largest network.

    Args:
        tables: `differences` of the study.
    """
    found = tables["differences"].frame
    found = found[(found["against"] == REFERENCE) & found["verdict"].isin(COMPARED)]
    if found.empty:
        return Answer(
            "No degree can be compared with degree 3: that takes two seeds of both.", False, PUBLISHED
        )
    largest = found.iloc[int((found["depth"] * found["width"] ** 2).to_numpy().argmax())]
    depth, width = largest["depth"], largest["width"]
    there = found[(found["depth"] == depth) & (found["width"] == width)]
    said = "; ".join(_difference(row) for _, row in there.iterrows())
    return Answer(
        f"Against degree 3, at depth {depth}, width {width}: {said}.",
        bool(there["verdict"].isin(COMPARED[:2]).any()),
        PUBLISHED,
    )


def _difference(row: pd.Series) -> str:
    interval = f"{row['low95']:+.3f} to {row['high95']:+.3f}"
    return f"{row['attention']} {row['difference']:+.3f} nats ({interval}), {row['verdict']}"
