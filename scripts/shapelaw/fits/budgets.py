"""Runs of several token budgets in one table: one at a time, since losses at different ones can't be compared."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from shapelaw.errors import UserError
from shapelaw.fits.projection import standard_params

SAME = 0.02  # numbers of tokens closer than this in log count as one budget
NEAR = 0.05  # a budget asked for is the nearest one, if it is closer than this in log
SIZES = {"total_params": "parameter", "block_params": "parameter of the blocks"}


@dataclass(frozen=True)
class Budget:
    """The runs that "equal size" compares, and the token rule that they share in a few words.

    `tokens` is NaN where the runs name none or where they grow with the size.
    """

    runs: pd.DataFrame
    tokens: float
    rule: str

    @property
    def folder(self) -> str:
        """A name for a folder of this budget's results."""
        return f"tokens-{self.tokens:.3g}".replace("+", "")


def budgets_of(runs: pd.DataFrame, source: str, *, least: int, only: float | None = None) -> list[Budget]:
    """The token budgets by growing tokens; those with fewer than `least` shapes are left out if others have enough.

    Tokens in proportion to the size are one budget. `only` picks one budget by its tokens.

    Raises:
        UserError: every budget has fewer than `least` shapes although the table has more, or none has `only` tokens.
    """
    if "tokens" not in runs:
        if only is not None:
            raise UserError(
                f"{source} has no column of tokens, so --tokens can't choose; leave it out, or name the column with "
                "--column tokens=COLUMN."
            )
        return [Budget(runs, math.nan, "the table names no tokens, so all runs count as trained alike")]
    tokens = runs["tokens"].to_numpy(dtype=np.float64)
    if only is None and np.ptp(np.log(tokens)) <= SAME:
        return [_equal(runs)]
    for column, unit in SIZES.items() if only is None else ():
        if column not in runs and column != "block_params":
            continue
        sizes = runs[column] if column in runs else standard_params(runs["depth"], runs["width"])
        ratio = tokens / np.asarray(sizes, dtype=np.float64)
        if np.ptp(np.log(ratio)) <= SAME:
            rule = f"tokens grow with the size, {np.median(ratio):.3g} for each {unit}"
            return [Budget(runs, math.nan, rule)]
    label = budget_labels(runs["tokens"])
    parts = [_equal(runs[label == number]) for number in range(int(label.max()) + 1)]
    if only is not None:
        return [_nearest(parts, source, only)]
    enough = [part for part in parts if _shapes(part.runs) >= least]
    if not enough and _shapes(runs) >= least:
        raise UserError(
            f"{source} has mixed token budgets: {len(parts)} of them, {tokens.min():.3g} to {tokens.max():.3g} tokens, "
            f"with {max(_shapes(part.runs) for part in parts)} shapes at most, and a fit needs {least} at one budget; "
            "losses after different numbers of tokens can't be compared."
        )
    return enough or parts


def budget_labels(tokens: pd.Series) -> pd.Series[int]:
    """The number of the budget, by growing tokens, that each run belongs to: neighbours within `SAME` are one."""
    order = np.sort(tokens.unique())
    steps = np.concatenate([[0], np.cumsum(np.diff(np.log(order)) > SAME)])
    return pd.Series(steps[np.searchsorted(order, tokens)], index=tokens.index)


def _nearest(parts: list[Budget], source: str, tokens: float) -> Budget:
    nearest = min(parts, key=lambda part: abs(math.log(part.tokens / tokens)))
    if abs(math.log(nearest.tokens / tokens)) > NEAR:
        there = ", ".join(f"{part.tokens:.3g}" for part in parts[:8])
        raise UserError(
            f"{source} has no run of {tokens:.3g} tokens; it has {there}{', ...' if parts[8:] else ''}."
        )
    return nearest


def _equal(runs: pd.DataFrame) -> Budget:
    tokens = float(runs["tokens"].median())
    return Budget(runs, tokens, f"every run saw {tokens:.3g} tokens")


def _shapes(runs: pd.DataFrame) -> int:
    return len(runs.drop_duplicates(["depth", "width"]))
