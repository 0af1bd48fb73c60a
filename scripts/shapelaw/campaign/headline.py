"""The main numbers of a study, by the names under which its summary run in MLflow has them as metrics.

`effect.heads_1_to_2`, `best_depth.at_100K`, `transition_width.depth1_2.V500_r8_H2`: of letters, digits, points and
underscores, so that a filter takes each as it stands; MLflow reads a point before two digits as a number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import pandas as pd

from shapelaw.specs.cost import short_number
from shapelaw.studies.grid.cells import plain, said
from shapelaw.studies.grid.tables import DIFFERENCE

MOST = 40  # metrics of a summary run
_NUMBER = re.compile(r"[-+]?\d[\d.]*(e[-+]?\d+)?")


def headline(tables: Mapping[str, Path]) -> dict[str, float]:
    """The effects of a study's axes, then the best depth of each size, then the transitions: at most 40.

    Args:
        tables: its tables, CSV files by name; of other tables nothing is taken.
    """
    numbers: dict[str, float] = {}
    for name, of in _OF.items():
        if name in tables:
            for parts, value in of(pd.read_csv(tables[name])):
                numbers.setdefault(".".join(parts), float(value))
    return dict(islice(numbers.items(), MOST))


Found = Iterator[tuple[tuple[str, ...], Any]]


def _effects(frame: pd.DataFrame) -> Found:
    """The loss difference of every two values of an axis: its mean over the settings of the others where it has one."""
    rows = frame[(frame["quantity"] == DIFFERENCE) & frame["value"].notna()]
    for row in rows.sort_values("settings", ascending=False, kind="stable").to_dict("records"):
        values = [_value(row["axis"], _plain(row[name])) for name in ("one", "other")]
        yield ("effect", f"{_word(row['axis'])}_{'_to_'.join(values)}"), row["value"]


def _best_shapes(frame: pd.DataFrame) -> Found:
    for row in frame[frame["standing"] == "best"].to_dict("records"):
        yield ("best_depth", f"at_{_word(short_number(row['size']))}"), row["depth"]


def _best_depths(frame: pd.DataFrame) -> Found:
    """Of ranges of sizes; a table that has a row for each setting, such as a ratio, has no one depth of a size."""
    for row in frame.to_dict("records") if "size_low" in frame else ():
        sizes = [_word(short_number(row[name])) for name in ("size_low", "size_high")]
        yield ("best_depth", f"at_{'_to_'.join(sizes)}"), row["best_depth"]


def _transitions(frame: pd.DataFrame) -> Found:
    """The widths by the bootstrap, with what tells a cell from the others: the columns before the depth that vary."""
    columns = list(frame.columns)
    cell = [name for name in columns[: columns.index("depth")] if frame[name].nunique(dropna=False) > 1]
    rows = frame[(frame["method"] == "bootstrap") & frame["width"].notna()]
    for row in rows.to_dict("records"):
        values = "_".join(_word(said(name, _plain(row[name]))) for name in cell)
        depths = f"depth{row['depth']}_{row['deeper_depth']}"
        yield ("transition_width", depths, *([values] if values else [])), row["width"]


_OF = {
    "effects": _effects,
    "best_shapes": _best_shapes,
    "best_depth": _best_depths,
    "transitions": _transitions,
}


def _plain(value: Any) -> Any:
    """A value of a CSV file as it was: numbers that stand beside texts are read as texts."""
    return plain(float(value) if isinstance(value, str) and _NUMBER.fullmatch(value) else value)


def _value(axis: str, value: Any) -> str:
    """`0_002`, `llama`, and of a rank that nothing limits `full`, as in the runs' params."""
    return _word(str(value) if isinstance(value, int | float) else said(axis, value)).removesuffix("_rank")


def _word(text: str) -> str:
    """`V = 500` as `V500`, `4,000 steps` as `4000_steps`."""
    return re.sub(r"\W+", "_", re.sub(r"\b(\w) = ", r"\1", text.replace(",", "")), flags=re.ASCII).strip("_")
