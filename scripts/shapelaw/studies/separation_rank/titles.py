"""The titles of the rank figures: what each panel found, from the numbers that it draws."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from textwrap import fill

import numpy as np
import pandas as pd

from shapelaw.studies.separation_rank.tables import EXACT

CLOSE = 1e-9
UNKNOWN = "Can't tell: some ranks are lower bounds"


def closed_form_title(measured: Iterable[tuple[float, float]]) -> str:
    """How many of (log3 of a rank, log3 of its closed form) are equal."""
    pairs = np.array(list(measured))
    equal = int((np.abs(pairs[:, 0] - pairs[:, 1]) < CLOSE).sum())
    many = "all" if equal == len(pairs) else f"{equal} of"
    return f"{many} {len(pairs)} ranks equal the closed form"


def growth_title(name: str, mine: pd.DataFrame, across: str, symbol: str) -> str:
    """The rank at both ends of a line."""
    ends = mine.sort_values(across).iloc[[0, -1]]
    said = (f"{row['rank']:,} at {symbol} = {row[across]}" for row in ends.to_dict("records"))
    return f"{name}:\nrank {' and '.join(said)}"


def flat_title(mine: pd.DataFrame) -> str:
    """Whether the rank of each embedding rank is the same at every width."""
    if (mine["status"] != EXACT).any():
        return UNKNOWN
    flat = (mine.groupby("embedding_rank")["rank"].nunique() == 1).all()
    return f"Width beyond r {'adds nothing' if flat else 'still adds'}"


def positions_title(mine: pd.DataFrame) -> str:
    """The embedding ranks at which positions raise the rank."""
    if (mine["status"] != EXACT).any():
        return UNKNOWN
    ordered = mine.sort_values("positional_rank").groupby("embedding_rank")["rank"]
    grown = ordered.last() > ordered.first()
    raised = [str(rank) for rank in grown.index[grown]]
    return f"Positions raise the rank at r = {', '.join(raised)}" if raised else "Positions raise no rank"


def residual_title(residual: pd.DataFrame) -> str:
    """How many ranks residual connections change."""
    changed = int((residual["rank"] != residual["rank_residual"]).sum())
    return f"Residual connections change {changed or 'none'} of {len(residual)} ranks"


def best_degree_title(by_budget: Mapping[int, pd.DataFrame], letters: int) -> str:
    """The degree of the largest rank at each budget: `best k: 3 at B = 6, 12; 2 at B = 8`."""
    best: list[tuple[str, int]] = []
    for budget, rows in by_budget.items():
        largest = rows["log3_rank"].max()
        first = rows[rows["log3_rank"] > largest - CLOSE]
        known = (rows["status"] == EXACT).all()
        degrees = " and ".join(f"{degree}" for degree in first["degree"]) if known else "can't tell"
        best.append((degrees, budget))
    ordered = groupby(sorted(best), key=lambda pair: pair[0])
    said = (f"{degrees} at B = {', '.join(str(budget) for _, budget in group)}" for degrees, group in ordered)
    return fill(f"best k: {'; '.join(said)}".replace(" = ", "\u00a0=\u00a0"), letters)
