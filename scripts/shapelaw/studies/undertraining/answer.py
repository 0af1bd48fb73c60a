"""Learning rate and steps: the answer in one line, from the study's tables."""

from __future__ import annotations

from collections.abc import Mapping

from shapelaw.report.write import Answer, Table
from shapelaw.studies.grid.cells import Best

SIGNIFICANT = 0.05


def answer(tables: Mapping[str, Table]) -> Answer:
    """The factor by which the transition moves with the steps, at the best rates where they are known.

    Args:
        tables: `ratios` of the study.
    """
    ratios = tables["ratios"].frame
    measured = ratios[ratios["p_equal"].notna()]
    if measured.empty:
        why = ratios["status"].iloc[0] if len(ratios) else "there is one number of steps only"
        return Answer(f"No transition can be compared between numbers of steps: {why}.", False)
    best = measured[measured["learning_rate"] == Best.RATES]
    row = (measured if best.empty else best).iloc[0]
    rate = "the best rates" if row["learning_rate"] == Best.RATES else f"rate {row['learning_rate']}"
    moved = row["p_equal"] < SIGNIFICANT
    said = "moves" if moved else "does not move significantly:"
    return Answer(
        f"From {row['few_steps']:,} to {row['many_steps']:,} steps, at {rate}, the width where depth "
        f"{row['deeper_depth']} overtakes {row['depth']} {said} by a factor of {row['ratio']:.2f} "
        f"({row['ratio_low']:.2f} to {row['ratio_high']:.2f}).",
        bool(moved),
    )
