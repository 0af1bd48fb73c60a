"""Tables of separation ranks by degree of the block at equal budget, beside the note's d^(1/d).

The note on building blocks counts k matrices for a block of degree k, so a budget of B matrices makes B / k layers; it
takes the separation rank for k^(L d), the total degree k^L for its proxy, and finds k = e, of whole numbers k = 3.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import pandas as pd

from shapelaw.report.tables import NO, OPEN, YES
from shapelaw.studies.separation_rank.grids import Asked, DegreeSizes, matrices
from shapelaw.studies.separation_rank.measurements import Measured
from shapelaw.studies.separation_rank.tables import Measurements
from shapelaw.theory.rank_bounds import log3

GROUP = ["blocks", "width", "tokens", "heads", "budget"]
NOTE_BEST = 3


def degree_table(found: Measurements) -> pd.DataFrame:
    """One row for each budget and degree: as many equal blocks as the budget has room for, and their rank."""
    rows = []
    for one, sizes, result in _of(found, "degree_budget"):
        degree = sizes.degrees[0]
        exponent = sizes.width * (one.budget or 0) / matrices(sizes.blocks, degree)
        rows.append(_common(one, sizes, result) | {"degree": degree, "note_log3": exponent * log3(degree)})
    columns = [*GROUP, "degree", "depth", "unused", "parameters", "total_degree", "rank", "status"]
    table = pd.DataFrame(rows, columns=[*columns, "upper_bound", "log3_rank", "note_log3", "seconds"])
    return table.assign(largest=_largest(table))


def ranking_table(table: pd.DataFrame) -> pd.DataFrame:
    """One row for each budget: the degree of largest rank, of largest total degree, and the better of 2 and 3."""
    rows = []
    for group, mine in table.groupby(GROUP, sort=True):
        best = mine.loc[mine["largest"] == YES, "degree"]
        proxy = mine.loc[mine["total_degree"] == mine["total_degree"].max(), "degree"]
        rows.append(
            dict(zip(GROUP, group, strict=True))
            | {
                "largest_rank": _listed(best) if len(best) else OPEN,
                "largest_total_degree": _listed(proxy),
                "note": NOTE_BEST,
                "agrees_with_note": OPEN if not len(best) else YES if NOTE_BEST in set(best) else NO,
                "agrees_with_proxy": OPEN if not len(best) else YES if set(best) <= set(proxy) else NO,
                "of_2_and_3": _of_two_and_three(mine),
                "note_has_room_for": _listed([k for k in (2, 3) if not mine.loc[mine["degree"] == k, "unused"].any()
                                              and (mine["degree"] == k).any()]),
            }
        )  # fmt: skip
    columns = ["largest_rank", "largest_total_degree", "note", "agrees_with_note", "agrees_with_proxy"]
    return pd.DataFrame(rows, columns=[*GROUP, *columns, "of_2_and_3", "note_has_room_for"]).rename(
        columns={"note_has_room_for": "fill_the_budget"}
    )


def fractional_table(found: Measurements) -> pd.DataFrame:
    """One row for each budget and full sequence of degrees (no further block has room)."""
    rows = []
    for one, sizes, result in _of(found, "fractional_degree"):
        degrees = sizes.degrees
        rows.append(
            _common(one, sizes, result)
            | {
                "degrees": " ".join(map(str, degrees)),
                "mean_degree": sum(degrees) / len(degrees),
                "mixed": YES if len(set(degrees)) > 1 else NO,
            }
        )
    columns = [*GROUP, "degrees", "mean_degree", "mixed", "depth", "unused", "parameters", "total_degree"]
    table = pd.DataFrame(rows, columns=[*columns, "rank", "status", "upper_bound", "log3_rank", "seconds"])
    return table.assign(largest=_largest(table))


def _of(found: Measurements, name: str) -> list[tuple[Asked, DegreeSizes, Measured]]:
    return [
        (one, one.sizes, result)
        for one, result in found
        if one.table == name and isinstance(one.sizes, DegreeSizes)
    ]


def _common(one: Asked, sizes: DegreeSizes, result: Measured) -> dict[str, object]:
    used = sum(matrices(sizes.blocks, degree) for degree in sizes.degrees)
    return {
        "blocks": sizes.blocks,
        "width": sizes.width,
        "tokens": sizes.tokens,
        "heads": sizes.heads,
        "budget": one.budget,
        "depth": len(sizes.degrees),
        "unused": (one.budget or 0) - used,
        "parameters": used * sizes.width**2,
        "total_degree": math.prod(sizes.degrees),
        "rank": result.rank,
        "status": result.status,
        "upper_bound": result.bound,
        "log3_rank": log3(result.rank),
        "seconds": result.seconds,
    }


def _largest(table: pd.DataFrame) -> pd.Series:
    """For each row, yes where its rank is the largest of its budget, no where not, open where bounds overlap."""
    says = pd.Series(OPEN, index=table.index, dtype=object)
    for _, mine in table.groupby(GROUP):
        low = mine["rank"].astype(float)
        high = low.where(mine["status"] == "exact", mine["upper_bound"])
        for place in mine.index:
            others = mine.index != place
            if (high[place] < low[others]).any():
                says[place] = NO
            elif (low[place] >= high[others]).all():
                says[place] = YES
    return says


def _of_two_and_three(mine: pd.DataFrame) -> str:
    two, three = (mine[mine["degree"] == degree] for degree in (2, 3))
    if two.empty or three.empty:
        return "2 alone" if three.empty and not two.empty else "3 alone" if not three.empty else ""
    low = [float(one["rank"].iloc[0]) for one in (two, three)]
    high = [
        value if one["status"].iloc[0] == "exact" else float(one["upper_bound"].iloc[0])
        for value, one in zip(low, (two, three), strict=True)
    ]
    if low[1] > high[0]:
        return "3"
    if low[0] > high[1]:
        return "2"
    return "equal" if low == high and low[0] == low[1] else OPEN


def _listed(values: Iterable[int] | Sequence[int]) -> str:
    return ", ".join(str(value) for value in values)
