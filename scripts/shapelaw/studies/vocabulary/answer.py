"""The vocabulary: the answer in one line, from the study's tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from shapelaw.fits.line import FitStatus
from shapelaw.fits.noise import chance_words
from shapelaw.report.write import Answer, Table

SIGNIFICANT = 0.05
CLEAR_GAIN = 6.6  # of chi2 over a model with as many parameters: a factor of 27 in likelihood
PUBLISHED = "a width beyond min(V, r) adds little, so depth pays earlier (b near 1; Wies et al. 2021)."
MIXED = "; embeddings of one matrix and of two factors, which train differently, are taken together"


def answer(tables: Mapping[str, Table]) -> Answer:
    """How the transition follows min(V, r), by the model that fits; else why nothing can be said.

    It is that of embeddings of one matrix where those have enough transitions, else that of all series.

    Args:
        tables: `relation` and `transitions` of the study.
    """
    rows = {(row["of"], row["model"]): row for row in tables["relation"].frame.to_dict("records")}
    alone = rows.get(("one matrix", "power"))
    of = "all" if alone is None or pd.isna(alone["b"]) else "one matrix"
    power, level = rows[of, "power"], rows[of, "level"]
    note = MIXED if of == "all" and alone is not None else ""
    if pd.isna(power["b"]):
        return Answer(
            f"How the transition follows min(V, r) can't be fitted: {power['message']}.", False, PUBLISHED
        )
    if power["status"] == FitStatus.CURVED:
        return _without_a_power(power, level, note)
    decided = power["p_none"] < SIGNIFICANT or power["p_proportional"] < SIGNIFICANT
    said = "" if decided else "; neither b = 0 nor b = 1 is excluded"
    value = f"{power['b']:.2f} \u00b1 {power['b_err']:.2f}"
    return Answer(
        f"The width where depth pays goes as min(V, r)^b with b = {value}{said}{note}.",
        bool(decided),
        PUBLISHED,
    )


def _without_a_power(power: Mapping[Any, Any], level: Mapping[Any, Any], note: str) -> Answer:
    """The answer where the transitions lie on no power of min(V, r)."""
    wrong = f"The width where depth pays follows no power of min(V, r) ({chance_words(power['p_fit'])})"
    better = level["status"] == FitStatus.CONVERGED and power["chi2"] - level["chi2"] >= CLEAR_GAIN
    if not better:
        return Answer(
            f"{wrong}; a level beyond some width does not explain it either{note}.", False, PUBLISHED
        )
    return Answer(
        f"The width where depth pays is {level['ratio']:.2f} \u00b1 {level['ratio_err']:.2f} of min(V, r) up to width "
        f"{level['flat_width']:.0f} \u00b1 {level['flat_width_err']:.0f}, and the same beyond; no power of min(V, r) "
        f"fits ({chance_words(power['p_fit'])}){note}.",
        True,
        PUBLISHED,
    )
