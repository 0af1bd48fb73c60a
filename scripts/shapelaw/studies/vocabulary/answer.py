"""The vocabulary: the answer in one line, from the study's tables."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from shapelaw.report.write import Answer, Table

SIGNIFICANT = 0.05
PUBLISHED = "a width beyond min(V, r) adds little, so depth pays earlier (b near 1; Wies et al. 2021)."


def answer(tables: Mapping[str, Table]) -> Answer:
    """The exponent with which the transition follows min(V, r); else why there is none.

    Args:
        tables: `relation` and `transitions` of the study.
    """
    row = tables["relation"].frame.iloc[0]
    if pd.isna(row["b"]):
        return Answer(
            f"How the transition follows min(V, r) can't be fitted: {row['message']}.", False, PUBLISHED
        )
    decided = row["p_none"] < SIGNIFICANT or row["p_proportional"] < SIGNIFICANT
    said = "" if decided else "; neither b = 0 nor b = 1 is excluded"
    return Answer(
        f"The width where depth pays goes as min(V, r)^b with b = {row['b']:.2f} \u00b1 {row['b_err']:.2f}{said}.",
        bool(decided),
        PUBLISHED,
    )
