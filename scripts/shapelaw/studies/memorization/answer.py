"""Memorization: each study's answer in one line, from its tables."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from shapelaw.fits.line import FitStatus
from shapelaw.report.write import Answer, Table
from shapelaw.studies.memorization.study import ALONG_CONTEXT, ALONG_HEAD_DIM, ALONG_HEADS, SATURATION
from shapelaw.studies.memorization.tables import NO, OPEN, YES

QUANTITIES = {  # of the table `comparison`: the one that answers the study's question
    ALONG_HEADS: "p-value of a line in H",
    ALONG_CONTEXT: "largest fall of the share in n",
    ALONG_HEAD_DIM: "gain in share beyond d_h = n",
    SATURATION: "share of saturated heads",
}
CLAIMS = {
    ALONG_HEADS: "a line in the number of heads fits",
    ALONG_CONTEXT: "no fall of the share with the context is significant",
    ALONG_HEAD_DIM: "no gain beyond d_h = n is significant",
    SATURATION: "the majority of heads is saturated",
}
FITS = {ALONG_HEADS: "linear_part", ALONG_HEAD_DIM: "knee"}
PUBLISHED = {
    ALONG_HEADS: "a line below saturation, R\u00b2 of 0.98 and more (Mahdavi et al. 2024).",
    ALONG_CONTEXT: "it grows with the context (Mahdavi et al. 2024).",
    ALONG_HEAD_DIM: "a knee at d_h = n (Mahdavi et al. 2024).",
    SATURATION: "the majority of heads is, and almost every example has one that is not (Mahdavi et al. 2024).",
}


def answer(study: str, tables: Mapping[str, Table]) -> Answer:
    """In how many settings the paper's finding holds, fails and is open, with the clearest fit.

    Args:
        study: one of the four.
        tables: `comparison` of the study, and its fits.
    """
    rows = tables["comparison"].frame
    mine = rows[rows["quantity"] == QUANTITIES[study]]
    counted = {says: int((mine["agrees"] == says).sum()) for says in (YES, NO, OPEN)}
    decided = counted[YES] + counted[NO]
    if not decided:
        return Answer(f"No setting decides it: {_reason(mine)}.", False, PUBLISHED[study])
    still_open = f"; {counted[OPEN]} are open" if counted[OPEN] else ""
    said = f"{CLAIMS[study].capitalize()} in {counted[YES]} of {decided} settings that can tell{still_open}."
    return Answer(said + _best_fit(study, tables), True, PUBLISHED[study])


def _reason(rows: pd.DataFrame) -> str:
    if rows.empty or "note" not in rows:
        return "the runs have nothing to compare"
    return f"{rows['setting'].iloc[0]}: {rows['note'].iloc[0]}"


def _best_fit(study: str, tables: Mapping[str, Table]) -> str:
    """The line or the knee with the most points, with its interval."""
    if study not in FITS:
        return ""
    fits = tables[FITS[study]].frame
    fits = fits[fits["status"] == FitStatus.CONVERGED]
    if fits.empty:
        return ""
    row = fits.sort_values("n_points", ascending=False, kind="stable").iloc[0]
    if study == ALONG_HEADS:
        return (
            f" Share of T = {row['examples']:,} per head: {row['slope']:.3f} \u00b1 {row['slope_err']:.3f}."
        )
    return f" Knee at d_h = {row['knee']:.1f} ({row['low68']:.1f} to {row['high68']:.1f}), n = {row['context']:.0f}."
