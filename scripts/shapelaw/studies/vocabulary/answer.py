"""The vocabulary: the answer in one line, from the study's tables."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from shapelaw.report.write import Answer, Table

SIGNIFICANT = 0.05
WRONG = 0.01  # a model whose points have a smaller chance does not fit
PUBLISHED = "a width beyond min(V, r) adds little, so depth pays earlier (b near 1; Wies et al. 2021)."


def answer(tables: Mapping[str, Table]) -> Answer:
    """How the transition follows min(V, r), by the model that fits; else why nothing can be said.

    Args:
        tables: `relation` and `transitions` of the study.
    """
    rows = tables["relation"].frame
    models = rows[rows["of"] == "all"].set_index("model")
    power, level = models.loc["power"], models.loc["level"]
    if pd.isna(power["b"]):
        return Answer(
            f"How the transition follows min(V, r) can't be fitted: {power['message']}.", False, PUBLISHED
        )
    if power["p_fit"] < WRONG:
        return _beside_a_power(power, level)
    decided = power["p_none"] < SIGNIFICANT or power["p_proportional"] < SIGNIFICANT
    said = "" if decided else "; neither b = 0 nor b = 1 is excluded"
    return Answer(
        f"The width where depth pays goes as min(V, r)^b with b = {power['b']:.2f} \u00b1 {power['b_err']:.2f}{said}.",
        bool(decided),
        PUBLISHED,
    )


def _beside_a_power(power: pd.Series, level: pd.Series) -> Answer:
    """The answer where no power of min(V, r) goes through the transitions."""
    chances = f"p = {power['p_fit']:.1g}"
    if level["p_fit"] < WRONG or pd.isna(level["flat_width"]) or pd.isna(level["ratio"]):
        return Answer(
            f"The width where depth pays follows no power of min(V, r) ({chances}), nor is it in proportion up to a "
            f"width and flat beyond (p = {level['p_fit']:.1g}).",
            False,
            PUBLISHED,
        )
    return Answer(
        f"The width where depth pays is {level['ratio']:.2f} \u00b1 {level['ratio_err']:.2f} of min(V, r) up to width "
        f"{level['flat_width']:.0f} \u00b1 {level['flat_width_err']:.0f}, and flat beyond (a power of min(V, r) does "
        f"not fit, {chances}).",
        True,
        PUBLISHED,
    )
