"""Today's decoder: the answer in one line, from the study's tables."""

from __future__ import annotations

from collections.abc import Mapping

from shapelaw.fits.curves import TransitionStatus
from shapelaw.report.write import Answer, Table

SIGNIFICANT = 0.05
SHOWN = 3  # ratios in one line


def answer(tables: Mapping[str, Table]) -> Answer:
    """The factors by which the transition moves from one block, rate or budget to another.

    Args:
        tables: `ratios` and `transitions` of the study.
    """
    ratios, transitions = tables["ratios"].frame, tables["transitions"].frame
    measured = ratios[ratios["p_equal"].notna()].sort_values("p_equal", kind="stable")
    crossings = int((transitions["status"] == TransitionStatus.CROSSING).sum())
    if measured.empty:
        return Answer(
            f"No two transitions can be compared: {crossings} of {len(transitions)} are crossings.", False
        )
    said = "; ".join(
        f"from {row['one']} to {row['other']} ({row['at']}) by {row['ratio']:.2f} ({row['ratio_low']:.2f} to "
        f"{row['ratio_high']:.2f})"
        for row in measured.head(SHOWN).to_dict("records")
    )
    moved = int((measured["p_equal"] < SIGNIFICANT).sum())
    return Answer(
        f"The transition moves significantly in {moved} of {len(measured)} comparisons: {said}.", bool(moved)
    )
