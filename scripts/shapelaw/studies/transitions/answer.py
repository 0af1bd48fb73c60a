"""Depth or width: the answer in one line, from the study's tables."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd

from shapelaw.fits.crossing import BOOTSTRAP
from shapelaw.fits.curves import TransitionStatus
from shapelaw.fits.line import FitStatus
from shapelaw.report.plots import short_number
from shapelaw.report.write import Answer, Table

SHOWN = 3  # crossings in one line
NO_ONE_BETTER = {
    TransitionStatus.SHALLOWER_BETTER: "the shallower network is better at every size tried",
    TransitionStatus.DEEPER_BETTER: "the deeper network is better at every size tried",
}


def answer(tables: Mapping[str, Table]) -> Answer:
    """The widths at which depths are overtaken and the law through them; else why there is none.

    Args:
        tables: `transitions`, `fit` and `comparison` of the study.
    """
    fit, transitions = tables["fit"].frame.iloc[0], tables["transitions"].frame
    mine = transitions[transitions["method"] == fit["method"]]
    if mine.empty:
        mine = transitions[transitions["method"] == BOOTSTRAP]
    found = mine[mine["status"] == TransitionStatus.CROSSING].to_dict("records")
    law = ""
    if fit["status"] == FitStatus.CONVERGED:
        values = [f"{name} = {fit[name]:.4g} \u00b1 {fit[f'{name}_err']:.2g}" for name in ("a", "b")]
        law = f" Law: log d = a + b L, {', '.join(values)}."
    comparison = tables["comparison"].frame
    published = _published_law(comparison)
    if found:
        sentence = "; ".join(_overtaken(row) for row in found[:SHOWN])
        more = f"; and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        lines = _published_widths(comparison, found[:SHOWN])
        return Answer(f"{sentence}{more}.{law}", True, f"{lines}{published}")
    return Answer(_why_none(mine), False, published)


def _overtaken(row: Mapping[Hashable, Any]) -> str:
    interval = "" if pd.isna(row["width_low"]) else f" ({row['width_low']:.0f} to {row['width_high']:.0f})"
    deeper = "a deeper one" if pd.isna(row["deeper_depth"]) else f"depth {row['deeper_depth']:.0f}"
    return f"{deeper} overtakes depth {row['depth']:.0f} at width {row['width']:.0f}{interval}".capitalize()


def _published_law(comparison: pd.DataFrame) -> str:
    known = comparison.set_index("quantity")["published"]
    return f"log d = {known['a']:.3f} + {known['b']:.4f} L (Levine et al. 2020)."


def _published_widths(comparison: pd.DataFrame, found: list[dict[Hashable, Any]]) -> str:
    """The published widths at the depths that were found."""
    names = comparison["quantity"].str.extract(r"^transition width at depth (\d+)")[0]
    known = dict(zip(names, comparison["published"], strict=True))
    said = [
        f"width {known[depth]:.0f} at depth {depth}"
        for depth in (f"{row['depth']:.0f}" for row in found)
        if depth in known and not pd.isna(known[depth])
    ]
    return f"{', '.join(said)}; " if said else ""


def _why_none(mine: pd.DataFrame) -> str:
    if mine.empty:
        return "No two depths can be compared."
    row = mine.iloc[0]
    pair = f"depth {row['depth']:.0f} against {row['deeper_depth']:.0f}"
    bound = row.get("bound")
    limit = (
        ""
        if bound is None or pd.isna(bound) or pd.isna(row["side"])
        else f", so a crossing would lie {row['side']} width {short_number(float(bound))}"
    )
    status = str(row["status"])
    why = NO_ONE_BETTER.get(TransitionStatus(status), status) if status in set(TransitionStatus) else status
    return f"No depth overtakes another among these sizes; {pair}: {why}{limit}."
