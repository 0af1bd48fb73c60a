"""What the papers published: one table, workflow/reference/published.csv, read and joined here. Light, as study.py is.

A row is a number, or a statement where the paper prints none, of a study: `study, quantity, setting, value, low, high,
source`. A study's `answer` is the paper's answer to its question.
"""

from __future__ import annotations

import csv
import math
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from shapelaw.studies.study import REFERENCE

if TYPE_CHECKING:
    import pandas as pd

DEPTH_WIDTH = "depth_width"
ANSWER = "answer"


class Published(NamedTuple):
    """A row of the table; without a value, a source and ends where nothing was published.

    Attributes:
        study, quantity, setting: what it is of; an empty setting is the only one.
        value: the number, or the statement in words.
        low, high: the ends of its error or of its rounding; the number itself where none was published.
        source: its paper, with the table, figure, equation or section.
    """

    study: str
    quantity: str
    setting: str
    value: str
    low: float
    high: float
    source: str

    @property
    def number(self) -> float:
        """The value; NaN of a statement."""
        return _number(self.value)

    @property
    def err(self) -> float:
        """The standard error; NaN where none was published."""
        return float(f"{(self.high - self.low) / 2:.9g}") or math.nan


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


@cache
def _table() -> dict[tuple[str, str, str], Published]:
    with (REFERENCE / "published.csv").open(newline="", encoding="utf-8") as file:
        rows = [
            Published(study, quantity, setting, value, _number(low or value), _number(high or value), source)
            for study, quantity, setting, value, low, high, source in list(csv.reader(file))[1:]
        ]
    return {one[:3]: one for one in rows}


def published(study: str, quantity: str, setting: object = "") -> Published:
    """What stands beside a quantity of ours in a setting."""
    key = study, quantity, f"{setting}"
    return _table().get(key) or Published(*key, "", math.nan, math.nan, "")


def published_of(study: str, quantity: str) -> dict[str, Published]:
    """A quantity by its settings, in the table's order."""
    return {one.setting: one for one in _table().values() if one[:2] == (study, quantity)}


def beside_published(study: str, table: pd.DataFrame) -> pd.DataFrame:
    """The table with what was published of its quantities in `published`, where a row has nothing itself."""
    theirs = [published(study, quantity).value or "–" for quantity in table["quantity"]]
    return table.assign(published=table["published"].where(table["published"] != "", theirs))


def published_log_width(depth: float) -> float:
    """The logarithm of the transition width at a depth by the line of Levine et al. 2020, where it extrapolates too."""
    a, b = (published(DEPTH_WIDTH, name).number for name in ("a", "b"))
    return a + b * depth
