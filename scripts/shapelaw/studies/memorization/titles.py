"""The titles of the memorization figures: what each panel found, from the numbers that it draws."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from textwrap import fill

import pandas as pd

from shapelaw.fits.capacity import Capacity, CapacityStatus
from shapelaw.fits.memorized import MEMORIZED, REGRESSION, MemorizationCurve, mean_squared_error
from shapelaw.studies.memorization.analysis import SYMBOLS, CurveAnalysis

MOST_EXAMPLES = 0.9  # a share of examples that is called most of them


def share_title(curves: Sequence[CurveAnalysis], along: str) -> str:
    """The heads that memorize T, or how far the share comes, of the curves of one panel."""
    needed = [(int(one.curve.examples or 0), one.needed) for one in curves if one.needed is not None]
    if any(one.status is CapacityStatus.FOUND for _, one in needed):
        return f"{MEMORIZED:.0%} accuracy takes {_heads(needed)}"
    return _reach(max(curves, key=lambda one: one.curve.examples or 0).curve, along)


def _heads(needed: Sequence[tuple[int, Capacity]]) -> str:
    """`30 heads for T = 10,000, more than 60 for 30,000 and 40,000`."""
    bounds = {CapacityStatus.AT_LEAST: "more than ", CapacityStatus.BELOW: "at most "}
    words = [
        (f"{bounds.get(one.status, '')}{one.size:.0f}", f"{examples:,}") for examples, one in sorted(needed)
    ]
    parts = [
        f"{heads} for {' and '.join(examples for _, examples in group)}"
        for heads, group in groupby(words, key=lambda pair: pair[0])
    ]
    parts[0] = parts[0].replace(" for ", " heads for T = ")
    return ", ".join(parts)


def _reach(curve: MemorizationCurve, along: str) -> str:
    """The share, or the error, at both ends of a curve."""
    regression, ends = curve.task == REGRESSION, [0, -1]
    errors = mean_squared_error(curve.share)
    said = [
        f"{f'{errors[at]:.2g}' if regression else f'{curve.share[at]:.0%}'} at {SYMBOLS[along]} = {curve.x[at]:.0f}"
        for at in ends
    ]
    return f"T = {curve.examples:,}: {'squared error' if regression else 'accuracy'} {', '.join(said)}"


def saturated_titles(table: pd.DataFrame) -> tuple[str, str]:
    """The share of saturated heads, and from how many heads on most examples have one that is not.

    Args:
        table: a row per network and T: `heads`, and the two columns of `HEADS_SAY`.
    """
    share, free = table["saturated_share"], table["examples_with_free_head"]
    left = f"{share.min():.0%} to {share.max():.0%} of the heads are saturated"
    worst = free.groupby(table["heads"]).min().sort_index()
    enough = worst[::-1].cummin()[::-1] > MOST_EXAMPLES
    if not enough.any():
        return left, f"{free.min():.0%} to {free.max():.0%} of the examples have an unsaturated head"
    heads = int(enough.index[enough][0])
    return (
        left,
        f"From {heads} heads on at least {worst.loc[heads:].min():.0%}\nof the examples have an unsaturated head",
    )


def with_setting(found: str, setting: str, letters: int) -> str:
    """What a panel found, above its setting, in lines of so many letters."""
    return "\n".join(fill(part.replace(" = ", "\u00a0=\u00a0"), letters) for part in (found, setting) if part)
