"""The corollaries of the depth-width paper beside measured ranks, as rows of the table of theorems."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pandas as pd

from shapelaw.report.tables import NO, OPEN, YES
from shapelaw.studies.separation_rank.tables import AFTER, BEFORE, GAP, PROVED, verdict
from shapelaw.theory.corollaries import least_width, published_realizing_width
from shapelaw.theory.rank_bounds import log3

_FIRST = ("depth-width, corollary 1", "at least", "(d' + 1)^C(L') >= the rank of L, d")
_SECOND = ("depth-width, corollary 2", "exists", "L' < L, d' = 3^L' of higher rank")


def corollaries_table(ranks: pd.DataFrame) -> pd.DataFrame:
    """One row for each corollary, with the columns of the table of theorems, from exact ranks of networks of one head.

    Corollary 1, for each network before its threshold and each smaller depth: no network narrower than it says can have
    the rank, by the dimensions of the spaces of functions. Its distance is log3 of the width that is needed over the
    width that the corollary asks for.

    Corollary 2, for each network past its threshold: a shallower one of at most the width 3^L' that was measured to
    have the higher rank. It is open where none has: the corollary says that one exists. Its distance is the `b` of the
    shallowest one that was found.
    """
    rows = []
    for (theorem, kind, formula), proof, found in (
        (_FIRST, PROVED, _of_first(ranks)),
        (_SECOND, GAP, _of_second(ranks)),  # its proof takes theorem 2's upper bound
    ):
        says = pd.DataFrame(list(found), columns=["holds", "distance"])
        rows.append(
            {
                "theorem": theorem,
                "kind": kind,
                "formula": formula,
                "networks": len(says),
                "holds": int((says["holds"] == YES).sum()),
                "violated": int((says["holds"] == NO).sum()),
                "open": int((says["holds"] == OPEN).sum()),
                "least_distance": says["distance"].min(),
                "largest_distance": says["distance"].max(),
                "verdict": verdict(bool((says["holds"] == NO).any()), proof)
                if len(says)
                else "none in reach",
            }
        )
    return pd.DataFrame(rows)


def _of_first(ranks: pd.DataFrame) -> Iterator[tuple[str, float]]:
    for deep in _plain(ranks[ranks["threshold"] == BEFORE]).to_dict("records"):
        for depth in range(1, int(deep["depth"])):
            asked = published_realizing_width(deep["depth"], deep["width"], depth)
            needed = log3(least_width(deep["rank"], depth, deep["tokens"]) + 1)
            yield (YES if needed >= asked else NO), needed - asked


def _of_second(ranks: pd.DataFrame) -> Iterator[tuple[str, float]]:
    plain = _plain(ranks)
    for deep in plain[(plain["threshold"] == AFTER) & (plain["depth"] > 1)].to_dict("records"):
        others = plain[(plain["depth"] < deep["depth"]) & (plain["tokens"] == deep["tokens"])]
        others = others[(others["rank"] > deep["rank"]) & (others["width"] <= 3 ** others["depth"])]
        if others.empty:
            yield OPEN, math.nan
        else:
            yield YES, float(others["depth"].min()) - log3(deep["width"])


def _plain(ranks: pd.DataFrame) -> pd.DataFrame:
    """The exact ranks of networks with one head and full embedding rank, without positions and residual connections."""
    full = (ranks["embedding_rank"] == ranks["width"]) & (ranks["attention_dim"] == ranks["width"])
    alone = (ranks["heads"] == 1) & (ranks["positional_rank"] == 0) & ~ranks["residual"]
    return ranks[full & alone & (ranks["status"] == "exact")]
