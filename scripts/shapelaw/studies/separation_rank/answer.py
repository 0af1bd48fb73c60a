"""Separation ranks: the answer in one line, from the study's tables."""

from __future__ import annotations

from collections.abc import Mapping

from shapelaw.report.write import Answer, Table


def answer(tables: Mapping[str, Table]) -> Answer:
    """How often the theorems' bounds hold for exact ranks; the theory that they test is the published side.

    Args:
        tables: `theorems` and `ranks` of the study.
    """
    theorems, ranks = tables["theorems"].frame, tables["ranks"].frame
    holds, violated, unclear = (int(theorems[name].sum()) for name in ("holds", "violated", "open"))
    exact = int((ranks["status"] == "exact").sum())
    beyond = (
        f" {unclear} are open, where a rank could not be computed or the bound is out of reach."
        if unclear
        else ""
    )
    said = "No bound is violated" if not violated else f"{violated} bounds are violated"
    return Answer(
        f"{said}: {holds} hold, for {exact} exact ranks out of {len(ranks)} networks.{beyond}",
        bool(violated or holds),
        "the theorems of Levine et al. 2020 and Wies et al. 2021.",
    )
