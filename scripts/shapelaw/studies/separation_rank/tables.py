"""The tables on linearized attention's separation ranks: each beside its closed form, and every theorem's bound."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict

import pandas as pd

from shapelaw.report.tables import NO, OPEN, YES
from shapelaw.studies.separation_rank.grids import Asked, AttentionSizes
from shapelaw.studies.separation_rank.measurements import Measured
from shapelaw.theory.linear_attention import LinearAttention
from shapelaw.theory.rank_bounds import log3, published_bounds
from shapelaw.theory.rank_formulas import closed_form

PROVED, GAP = "proved", "gap"
BEFORE, AT, AFTER = "before", "at", "after"
SIZES = tuple(AttentionSizes.__dataclass_fields__)
Measurements = Sequence[tuple[Asked, Measured]]
_SLACK = 1e-9  # tolerance of a comparison of logarithms


def attention_of(found: Measurements) -> list[tuple[LinearAttention, Measured]]:
    """The networks of linearized attention with all sizes filled in, and their measurements."""
    return [
        (LinearAttention(**asdict(one.sizes)), result)
        for one, result in found
        if isinstance(one.sizes, AttentionSizes)
    ]


def ranks_table(found: Measurements) -> pd.DataFrame:
    """One row for each network: its rank, whether that is exact, the closed form, and the graded upper bound."""
    rows = []
    for network, result in attention_of(found):
        form = closed_form(network)
        rows.append(
            sizes_of(network)
            | {
                "threshold": threshold_side(network),
                "rank": result.rank,
                "status": result.status,
                "log3_rank": log3(result.rank),
                "closed_form": form.rank if form else None,
                "formula": form.formula if form else "",
                "follows": _follows(result, form.rank if form else None),
                "upper_bound": result.bound,
                "is_bound": YES if result.rank == result.upper_bound else NO if result.exact else OPEN,
                "failure_probability": result.failure_probability,
                "seconds": result.seconds,
            }
        )
    return pd.DataFrame(rows).astype({"closed_form": "Int64"})


def sizes_of(network: LinearAttention) -> dict[str, object]:
    """The columns that identify a network, with defaults as numbers."""
    return {
        "depth": network.depth,
        "width": network.width,
        "tokens": network.tokens,
        "heads": network.heads,
        "attention_dim": network.head_dim,
        "embedding_rank": network.rank,
        "positional_rank": network.positional_rank,
        "residual": network.residual,
    }


def threshold_side(network: LinearAttention) -> str:
    """The side of the depth threshold log3(d) on which L lies: before, at or after."""
    power = 3**network.depth
    return BEFORE if power < network.width else AFTER if power > network.width else AT


def bounds_table(found: Measurements) -> pd.DataFrame:
    """One row for each network and theorem that applies to it: log3 of the bound, and whether it holds."""
    rows = []
    for network, result in attention_of(found):
        low, high = log3(result.rank), log3(result.most)
        for bound in published_bounds(network):
            if bound.lower:
                holds = YES if low >= bound.log3 - _SLACK else NO if high < bound.log3 - _SLACK else OPEN
                distance = low - bound.log3
            else:
                holds = YES if high <= bound.log3 + _SLACK else NO if low > bound.log3 + _SLACK else OPEN
                distance = bound.log3 - low
            rows.append(
                {
                    "theorem": bound.source,
                    "kind": "at least" if bound.lower else "at most",
                    "formula": bound.formula,
                    **sizes_of(network),
                    "rank": result.rank,
                    "status": result.status,
                    "log3_rank": low,
                    "log3_bound": bound.log3,
                    "distance": distance,
                    "holds": holds,
                    "proof": PROVED if bound.is_proved else GAP,
                }
            )
    columns = ["theorem", "kind", "formula", *SIZES, "rank", "status", "log3_rank", "log3_bound"]
    return pd.DataFrame(rows, columns=[*columns, "distance", "holds", "proof"])


def theorems_table(bounds: pd.DataFrame) -> pd.DataFrame:
    """One row a theorem: how many networks it was held against, and how near and far it was, in powers of 3.

    That no network in reach violates a bound whose proof has a gap doesn't confirm it.
    """
    rows = []
    names = ["theorem", "kind", "formula", "proof"]
    for (theorem, kind, formula, proof), mine in bounds.groupby(names, sort=True):
        exact = mine[mine["status"] == "exact"]
        rows.append(
            {
                "theorem": theorem,
                "kind": kind,
                "formula": formula,
                "networks": len(mine),
                "holds": int((mine["holds"] == YES).sum()),
                "violated": int((mine["holds"] == NO).sum()),
                "open": int((mine["holds"] == OPEN).sum()),
                "least_distance": exact["distance"].min(),
                "largest_distance": exact["distance"].max(),
                "verdict": verdict(bool((mine["holds"] == NO).any()), str(proof)),
            }
        )
    columns = ["theorem", "kind", "formula", "networks", "holds", "violated", "open"]
    return pd.DataFrame(rows, columns=[*columns, "least_distance", "largest_distance", "verdict"])


def verdict(violated: bool, proof: str) -> str:
    """The verdict of measured ranks on a theorem."""
    if violated:
        return "violated"
    return "not violated in reach; its proof has a gap" if proof == GAP else "holds in reach"


def residual_table(ranks: pd.DataFrame) -> pd.DataFrame:
    """One row for each network that was measured with and without residual connections."""
    others = [name for name in SIZES if name != "residual"]
    plain, with_residual = ranks[~ranks["residual"]], ranks[ranks["residual"]]
    both = plain.merge(with_residual, on=others, suffixes=("", "_residual"))
    same = both["rank"] == both["rank_residual"]  # also of lower bounds, which status marks
    both["equal"] = same.map({True: YES, False: NO})
    return both[[*others, "rank", "status", "rank_residual", "status_residual", "equal"]]


def _follows(result: Measured, form: int | None) -> str:
    if form is None or math.isnan(form):
        return ""
    if result.exact:
        return YES if result.rank == form else NO
    return NO if result.rank > form else OPEN
