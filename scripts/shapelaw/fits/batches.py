"""Batches of runs: what was trained on one day, on one machine or by one version of the code.

Runs of another batch can be off by more than the noise between seeds, all in one direction. Where two batches lie
inside of what is compared, their offset is fitted with the rest. Where a batch coincides with one side of a comparison,
nothing tells its offset from the effect: that is a caution.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from shapelaw.fits.noise import Floats

# columns that say the batch; the names in records of ours and others that people use
COLUMNS = (
    *("batch", "date", "started_at", "host", "hostname", "machine", "device"),
    *("git_commit", "commit", "code_version", "torch_version", "torch"),
)
DAYS = ("date", "started_at")  # of which the day counts
DAY = len("2026-11-28")
UNLIKELY = 0.05  # several batches that are apart with a greater chance say nothing
Batches = Mapping[tuple[str, str], Floats]


def batch_columns(table: pd.DataFrame) -> dict[str, pd.Series]:
    """The columns of a table that say the batch, as texts: dates without their time, and nothing where one is empty."""
    texts = {name: table[name].astype("string").fillna("") for name in COLUMNS if name in table}
    return {name: text.str[:DAY] if name in DAYS else text for name, text in texts.items()}


def batches_of(runs: pd.DataFrame) -> dict[tuple[str, str], Floats]:
    """By column and value of a batch the shares (n,) of the shapes' runs that are of it, by depth and width."""
    belongs = {
        (name, str(value)): (text == value).astype("float64")
        for name, text in batch_columns(runs).items()
        for value in text.unique()
    }
    if not belongs:
        return {}
    shares = pd.DataFrame(dict(enumerate(belongs.values()))).groupby([runs["depth"], runs["width"]]).mean()
    return dict(zip(belongs, shares.to_numpy().T, strict=True))


def contrasts(curves: Sequence[Batches]) -> dict[str, Floats]:
    """Of each column with two values in some curves the shares (n,) of the rarer one, for the networks of all curves.

    Columns that divide the networks alike are one: `host and commit`.
    """
    found: dict[str, Floats] = {}
    for name, parts in _columns(curves):
        values = sorted({value for part in parts for value in part})
        if len(values) != 2:
            continue
        both = [
            np.concatenate([part.get(value, np.zeros(_count(part))) for part in parts]) for value in values
        ]
        rarer = min(both[::-1], key=lambda shares: float(shares.sum()))
        same = [
            other
            for other, shares in found.items()
            if np.allclose(shares, rarer) or np.allclose(1 - shares, rarer)
        ]
        shares = found.pop(same[0]) if same else rarer
        found[" and ".join([*same, name])] = shares
    return found


def told_apart(columns: Mapping[str, Floats], design: Floats, spare: int = 0) -> tuple[list[str], list[str]]:
    """The names of the columns (n,) whose offsets can be fitted beside a design (n, k) and each other, and the others.

    Args:
        spare: rows that a fit must have beyond its coefficients.
    """
    fitted, others, rank = list[str](), list[str](), np.linalg.matrix_rank(design)
    for name, column in columns.items():
        whole = np.column_stack([design, *(columns[other] for other in fitted), column])
        if whole.shape[1] + spare <= len(whole) and np.linalg.matrix_rank(whole) > rank:
            fitted.append(name)
            rank += 1
        else:
            others.append(name)
    return fitted, others


def apart(one: Sequence[Batches], other: Sequence[Batches]) -> list[str]:
    """The columns of more than two values of which none is on both sides of a comparison, beyond what chance does.

    The chance is that of as many networks on one side by an allotment at random, each batch of the size it has.
    """
    found = []
    for name, parts in _columns([*one, *other]):
        sides = (parts[: len(one)], parts[len(one) :])
        sizes = [
            {
                value: sum(float(part[value].sum()) for part in side if value in part)
                for part in side
                for value in part
            }
            for side in sides
        ]
        values = set(sizes[0]) | set(sizes[1])
        if len(values) < 3 or set(sizes[0]) & set(sizes[1]):
            continue
        groups = [round(size) for side in sizes for size in side.values()]
        total, mine = sum(groups), sum(round(size) for size in sizes[0].values())
        ways = np.zeros(total + 1)
        ways[0] = 1.0
        for group in groups:
            ways[group:] += ways[: total + 1 - group].copy()
        if ways[mine] < UNLIKELY * math.comb(total, mine):
            found.append(name)
    return found


def _columns(curves: Sequence[Batches]) -> Iterator[tuple[str, list[dict[str, Floats]]]]:
    """Each column that all curves have, with the shares of each value that a curve has."""
    for name in COLUMNS:
        parts = [
            {value: shares for (of, value), shares in curve.items() if of == name and shares.any()}
            for curve in curves
        ]
        if parts and all(parts):
            yield name, parts


def _count(part: Mapping[str, Floats]) -> int:
    return len(next(iter(part.values())))
