"""The redundancies that a study of ours measured, out of its folder of results."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd

from shapelaw.errors import UserError
from shapelaw.fits.curves import SIZE_COLUMNS, SIZE_LABELS, SizeAxis
from shapelaw.fits.inputs import numbers_of, numbers_or_empty, read_table, refuse, require_columns
from shapelaw.fits.known_redundancy import AS_GPT, AS_T5, RANK, RATIO, TOKENS, Basis, Point, Series
from shapelaw.fits.redundancy import RedundancyStatus

_TABLE, _NETWORKS = "redundancy.csv", "losses.csv"
_SHARES = ("redundancy", "low", "high")
_COLUMNS = ("size_axis", *_SHARES, "status")
_OF_RATIOS, _OF_RANKS = ("ratio", "compared"), ("rank_over_width",)
_FACTORED = "of that rank too"  # the positions, as published and as in ALBERT
_FEED_FORWARD = {"4 H d_a": AS_T5, "4 d": AS_GPT}


def fitted_series(folder: Path, axis: SizeAxis, name: str = "") -> tuple[Series, ...]:
    """The redundancies in a folder of results, a series for each setting.

    Args:
        folder: of `analyse.py embedding_rank` or `analyse.py attention_ratio`.
        axis: the size in which the redundancy is meant.
        name: of the measurement, for readers; its table's path where it has none.

    Raises:
        UserError: the folder has no such results, or none with an interval.
    """
    path = folder / _TABLE
    if not path.is_file():
        raise UserError(
            f"{folder} has no {_TABLE}; --fit needs the results of the study embedding_rank or attention_ratio."
        )
    table = read_table(path)
    strength, *others = _OF_RATIOS if "feed_forward" in table else _OF_RANKS
    require_columns(table, [*_COLUMNS, strength, *others], str(path))
    table[strength] = numbers_of(table, [strength], str(path))[strength]
    refuse(table, table[strength] <= 0, str(path), f"{strength} must be above zero")
    table[[*_SHARES]] = numbers_or_empty(table, _SHARES, str(path))
    known = table[(table["size_axis"] == axis.value) & table["low"].notna() & table["high"].notna()]
    kind, rows = (RATIO, _ratios(known)) if "feed_forward" in known else (RANK, _ranks(known))
    if rows.empty:
        raise UserError(
            f"{path} has no redundancy in {SIZE_LABELS[axis]} with an interval; the study needs seeds that repeat."
        )
    source = f"{name or path}, in {SIZE_LABELS[axis]}{_sizes(folder / _NETWORKS, axis)}"
    return tuple(
        Series(kind, str(setting), Basis.FIT, source, _points(mine), _total_params(folder / _NETWORKS))
        for setting, mine in rows.groupby("setting", sort=False)
    )


def _ranks(known: pd.DataFrame) -> pd.DataFrame:
    """The rows of ranks up to the width, with positions of the same rank where there are such networks."""
    if "positions" in known and (known["positions"] == _FACTORED).any():
        known = known[known["positions"] == _FACTORED]
    known = known[known["rank_over_width"] < 1]  # a product at full rank shows what factoring costs
    return known.assign(strength=1 / known["rank_over_width"], setting=TOKENS)


def _ratios(known: pd.DataFrame) -> pd.DataFrame:
    """The rows of each setting at the size at which its ratios compare."""
    rows = known[known["compared"] == "yes"]
    return rows.assign(strength=rows["ratio"], setting=rows["feed_forward"].map(_FEED_FORWARD))


def _points(rows: pd.DataFrame) -> tuple[Point, ...]:
    """The redundancies in growing strength, behind none at a strength of 1, by definition."""
    measured = (
        Point(
            float(row["strength"]),
            float(row["strength"]),
            float(row["redundancy"]) if row["status"] == RedundancyStatus.MEASURED.value else math.nan,
            float(row["low"]),
            float(row["high"]),
        )
        for row in rows.sort_values("strength").to_dict("records")
    )
    return Point(1.0, 1.0, 0.0, 0.0, 0.0), *measured


def _sizes(path: Path, axis: SizeAxis) -> str:
    """A clause with the sizes of the networks, where their table stands beside."""
    if not path.is_file():
        return ""
    least, most = _range(path, axis)
    return f", measured at {least:.2g} to {most:.2g}"


def _total_params(path: Path) -> tuple[float, float] | None:
    """All parameters of the smallest and of the largest network, where their table stands beside."""
    return _range(path, SizeAxis.TOTAL) if path.is_file() else None


def _range(path: Path, axis: SizeAxis) -> tuple[float, float]:
    """The smallest and the largest size in a table of networks."""
    column, table = SIZE_COLUMNS[axis], read_table(path)
    require_columns(table, [column], str(path))
    sizes = numbers_of(table, [column], str(path))[column]
    return float(sizes.min()), float(sizes.max())
