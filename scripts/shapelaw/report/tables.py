"""Frames of what an analysis found, a table's files (CSV with every digit, HTML to read), and pages of HTML."""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from html import escape
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd

from shapelaw.errors import UserError
from shapelaw.report.reading import Reading, html_of

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1c2733; background: #fff; margin: 1rem auto; padding: 0 1rem; }
body { max-width: 1240px; }
.scroll { overflow: auto; max-height: 90vh; }
table { border-collapse: collapse; font-size: 14px; font-variant-numeric: tabular-nums; }
tr { background: #fff; }
thead tr { background: #f2f5f8; }
th, td { padding: .25rem .7rem; border-bottom: 1px solid #dde3ea; text-align: left; max-width: 22rem; }
thead th { vertical-align: bottom; max-width: 9rem; font-weight: 600; }
tbody th { font-weight: 400; max-width: min(16rem, 40vw); }
th button { all: unset; cursor: pointer; }
th button:focus-visible { outline: 2px solid #2f6f9f; }
"""
# a click on a column's name sorts by it: numbers by their value, a missing one last
SORT = """
const missing = text => text === "" || text === "\\u2013";
const number = text => parseFloat(text.replace(/[,<\\s]|above|below/g, "").replace("\u221e", "Infinity"));
const compare = (a, b) =>
  isNaN(number(a) - number(b)) ? a.localeCompare(b, "en", { numeric: true }) : number(a) - number(b);
document.querySelectorAll("thead th").forEach((head, column) => {
  const button = document.createElement("button"), body = head.closest("table").tBodies[0];
  button.append(...head.childNodes);
  head.append(button);
  button.addEventListener("click", () => {
    const rising = head.getAttribute("aria-sort") !== "ascending";
    for (const other of head.parentElement.children) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", rising ? "ascending" : "descending");
    const text = row => row.cells[column].textContent;
    [...body.rows].sort((x, y) => {
      const [a, b] = [text(x), text(y)];
      if (missing(a) || missing(b)) return missing(a) - missing(b);
      return rising ? compare(a, b) : compare(b, a);
    }).forEach(row => body.append(row));
  });
});
"""


TABLE_BEGINS, TABLE_ENDS = '<div class="scroll">\n', "</div>"
_CAPTION = re.compile(r"<p>(.*?) (\d+) rows?; ", re.DOTALL)


def page(title: str, body: str, style: str = STYLE, script: str = "") -> str:
    """A whole page."""
    scripts = f"<script>{script}</script>\n" if script else ""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n{body}\n{scripts}</body>\n</html>\n"
    )


def table_page(path: Path, caption: str, reading: Reading, exact: pd.DataFrame) -> str:
    """A page with a table that sorts by the column whose name is clicked, and its CSV file to download.

    Args:
        path: the table's file, without its ending.
        caption: sentences above the table.
        reading: the table as it is read.
        exact: the table with every column and digit.
    """
    name = path.name
    file = data_uri(exact.to_csv(index=False).encode(), "text/csv")
    rows = len(reading.texts)
    counted = "1 row" if rows == 1 else f"{rows} rows"
    link = f'<a download="{escape(name)}.csv" href="{file}">{escape(name)}.csv, every digit</a>'
    table = html_of(reading, f"{path.parent.name}-{name}")
    body = f"<p>{escape(caption)} {counted}; {link}.</p>\n{TABLE_BEGINS}{table}{TABLE_ENDS}"
    return page(name.replace("_", " "), body, script=SORT)


def first_rows(page: str, most: int) -> str:
    """The caption and the first rows of the table of a page (`table_page`) in HTML; empty where it has none."""
    match = _CAPTION.search(page)
    table = page.split(TABLE_BEGINS)[-1].split(TABLE_ENDS)[0]
    if match is None or "<tbody>" not in table:
        return ""
    head, body = table.split("<tbody>")
    rows = re.findall(r"<tr>.*?</tr>", body, re.DOTALL)[:most]
    counted = f" The first {len(rows)} of {match[2]} rows." if int(match[2]) > len(rows) else ""
    return f"<p>{match[1]}{counted}</p>\n{TABLE_BEGINS}{head}<tbody>{''.join(rows)}</tbody></table>{TABLE_ENDS}\n"


def data_uri(content: bytes, kind: str) -> str:
    """The content as an address, so that a page needs no other file.

    Args:
        kind: MIME type, such as `image/svg+xml`.
    """
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


YES, NO, OPEN = "yes", "no", "open"  # of a claim, in a table


def yes_or_no(holds: bool | None) -> str:
    """A claim's truth in a table; None is open."""
    return OPEN if holds is None else YES if holds else NO


def says(known: bool, holds: bool) -> str:
    """Whether something holds, or that it is open."""
    return yes_or_no(holds if known else None)


def picked(thing: object | None, *names: str, **renamed: str) -> dict[str, Any]:
    """Attributes as the columns of a row, all NaN where there is no thing.

    Args:
        names: attributes, each the column of its name.
        renamed: attributes by their columns, which follow.
    """
    columns = dict.fromkeys(names) | renamed
    return {
        column: math.nan if thing is None else getattr(thing, name or column)
        for column, name in columns.items()
    }


Key = TypeVar("Key")
Value = TypeVar("Value")


def grouped(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """The values of each key, both in the order in which they come."""
    found: dict[Key, list[Value]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


Columns = Mapping[str, str | Callable[[Any], object]]


def frame_of(items: Iterable[Any], columns: Columns, whole: Sequence[str] = ()) -> pd.DataFrame:
    """A row for each item; where there are none, the columns alone.

    Args:
        items: what the rows are of.
        columns: for each column an attribute of the item, by its path (`at.size`), or a function of it. What is true or
            false becomes yes or no, a tuple its parts with commas, and a member of an enumeration its text.
        whole: columns of whole numbers, some of which are missing.
    """
    getters = [attrgetter(how) if isinstance(how, str) else how for how in columns.values()]
    rows = [[_cell(get(item)) for get in getters] for item in items]
    return pd.DataFrame(rows, columns=list(columns)).astype(dict.fromkeys(whole, "Int64"))


def interval_columns(
    path: str,
    name: str,
    ends: tuple[str, str] = ("low95", "high95"),
    change: Callable[[float], float] = float,
) -> dict[str, str | Callable[[Any], object]]:
    """The columns of a value with its interval.

    Args:
        path: of what has them as `value`, `low` and `high`.
        name: column of the value.
        ends: columns of the interval's ends.
        change: what is done to the three, such as `math.exp` to logarithms.
    """

    def getter(end: str) -> Callable[[Any], object]:
        get = attrgetter(f"{path}.{end}")
        return lambda item: change(get(item))

    return {column: getter(end) for column, end in zip((name, *ends), ("value", "low", "high"), strict=True)}


def _cell(value: object) -> object:
    if isinstance(value, bool):
        return YES if value else NO
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return value.value if isinstance(value, Enum) else value


@contextmanager
def writing_to(folder: Path) -> Iterator[None]:
    """Turn errors of writing results into a folder into a sentence.

    Raises:
        UserError: the folder can't be written.
    """
    try:
        yield
    except OSError as error:
        raise UserError(
            f"The results can't be written to {folder} ({error.strerror}: {error.filename})."
        ) from error


def plain_rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows as plain JSON values; missing and infinite numbers become None."""
    return [{str(name): _plain(value) for name, value in row.items()} for row in table.to_dict("records")]


def _plain(value: Any) -> Any:
    if value is None or value is pd.NA or (isinstance(value, float) and not math.isfinite(value)):
        return None
    return value.item() if hasattr(value, "item") else value
