"""Degree of the building block: the answer in one line, from the study's tables."""

from __future__ import annotations

from collections.abc import Mapping

from shapelaw.report.write import Answer, Table
from shapelaw.studies.block_degree.analysis import ALL_SEEDS

PUBLISHED = "3 is the best integer, by theory (Navon 2021)."
TARGETS = "R > 1"


def answer(tables: Mapping[str, Table]) -> Answer:
    """Every whole degree against 3 over all targets of R > 1, at the largest budget.

    Args:
        tables: `pooled` of the study.
    """
    found = tables["pooled"].frame
    found = found[(found["targets"] == TARGETS) & (found["rates_chosen_on"] == ALL_SEEDS)]
    found = found[found["p_value_holm"].notna()]
    if found.empty:
        return Answer("No degree can be compared with 3: that takes two seeds of both.", False, PUBLISHED)
    first = found.iloc[0]
    found = found[(found["width"] == first["width"]) & (found["matrices"] == first["matrices"])]
    said = "; ".join(
        f"{row['network']} {row['ratio']:.2f} times ({row['low95']:.2f} to {row['high95']:.2f}), {row['verdict']}"
        for row in found.to_dict("records")
    )
    return Answer(
        f"Loss over that of degree 3, {first['matrices']} matrices of {first['width']} x {first['width']}: {said}.",
        bool((found["p_value_holm"] < 0.05).any()),
        PUBLISHED,
    )
