"""One table as CSV (every digit), Markdown, LaTeX and HTML (rounded, to read); and pages that need nothing else."""

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
from typing import Any

import pandas as pd

from shapelaw.errors import UserError
from shapelaw.fits.noise import LEAST_CHANCE, LESS

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1c2733; background: #fff; margin: 1.5rem; }
table { border-collapse: collapse; font-size: 14px; font-variant-numeric: tabular-nums; }
caption { text-align: left; padding: 0 0 .6rem; }
th, td { padding: .25rem .7rem; border-bottom: 1px solid #dde3ea; text-align: left; white-space: nowrap; }
td.n, th.n { text-align: right; }
th { position: sticky; top: 0; background: #f2f5f8; }
th button { all: unset; cursor: pointer; font-weight: 600; }
th button:focus-visible { outline: 2px solid #2f6f9f; }
tbody tr:hover { background: #f7f9fb; }
"""
# a click on a column's name sorts by it; numbers by their value, a missing one last
SORT = """
document.querySelectorAll("th button").forEach((button, column) => button.addEventListener("click", () => {
  const head = button.parentElement, body = head.closest("table").tBodies[0];
  const rising = head.getAttribute("aria-sort") !== "ascending";
  for (const other of head.parentElement.children) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", rising ? "ascending" : "descending");
  const value = row => row.cells[column].dataset.value ?? row.cells[column].textContent;
  const missing = text => text === "" || text === "nan";
  const compare = (a, b) => head.className === "n" ? a - b : a.localeCompare(b, "en", { numeric: true });
  [...body.rows].sort((one, two) => {
    const a = value(one), b = value(two);
    if (missing(a) || missing(b)) return missing(a) - missing(b);
    return rising ? compare(a, b) : compare(b, a);
  }).forEach(row => body.append(row));
}));
"""


def page(title: str, body: str, style: str = STYLE, script: str = "") -> str:
    """A whole page."""
    scripts = f"<script>{script}</script>\n" if script else ""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n{body}\n{scripts}</body>\n</html>\n"
    )


def table_page(
    name: str, caption: str, shown: pd.DataFrame, exact: pd.DataFrame, numeric: Sequence[bool]
) -> str:
    """A page with a table that sorts by the column whose name is clicked, and its CSV file to download.

    Args:
        name: name of the table's file, without its ending.
        caption: a sentence above the table.
        shown: the cells as texts.
        exact: the same cells with every digit.
        numeric: for each column, whether it holds numbers.
    """
    kinds = [' class="n"' if number else "" for number in numeric]
    head = "".join(
        f'<th scope="col"{kind}><button>{escape(str(column))}</button></th>'
        for kind, column in zip(kinds, shown.columns, strict=True)
    )
    rows = [
        f"<tr>{''.join(map(_page_cell, texts, values, numeric))}</tr>"
        for texts, values in zip(shown.itertuples(index=False), exact.itertuples(index=False), strict=True)
    ]
    file = data_uri(exact.to_csv(index=False).encode(), "text/csv")
    counted = "1 row" if len(rows) == 1 else f"{len(rows)} rows"
    link = f'<a download="{escape(name)}.csv" href="{file}">{escape(name)}.csv, every digit</a>'
    body = (
        f"<table>\n<caption>{escape(caption)} {counted}; {link}.</caption>\n<thead><tr>{head}</tr></thead>\n<tbody>\n"
        + "\n".join(rows)
        + "\n</tbody>\n</table>"
    )
    return page(name.replace("_", " "), body, script=SORT)


def _page_cell(text: str, value: object, number: bool) -> str:
    if not number:
        return f"<td>{escape(text)}</td>"
    return f'<td class="n" data-value="{"" if pd.isna(value) else value}">{escape(text)}</td>'  # type: ignore[call-overload]


def data_uri(content: bytes, kind: str) -> str:
    """The content as an address, so that a page needs no other file.

    Args:
        kind: MIME type, such as `image/svg+xml`.
    """
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


MISSING = "–"
NO_FORMATS: Mapping[str, str] = {}
_CHANCE = re.compile(r"(^|_)p(_|$)")  # of a column of p values
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


def write_table(
    table: pd.DataFrame, path: Path, *, formats: Mapping[str, str] = NO_FORMATS, caption: str = ""
) -> list[Path]:
    """Write PATH.csv and PATH.html and return the paths; the index is left out.

    Args:
        path: path without suffix; a dot in the name is kept. Missing folders are made.
        formats: column -> format specification (e.g. ".3g", ",.0f") where the table is to be read; other floats get
            ".4g". A missing value is a dash there and an empty field in the CSV.
        caption: a sentence above the table to read.

    Raises:
        ValueError: `formats` names a column that isn't in the table.
    """
    shown = as_text(table, formats)
    path.parent.mkdir(parents=True, exist_ok=True)
    files = [path.with_name(path.name + suffix) for suffix in (".csv", ".html")]
    table.to_csv(files[0], index=False)
    files[1].write_text(table_page(path.name, caption, shown, table, _numeric(table)), encoding="utf-8")
    return files


def markdown_of(table: pd.DataFrame, *, formats: Mapping[str, str] = NO_FORMATS, caption: str = "") -> str:
    """The table in Markdown, rounded, below its caption.

    Raises:
        ValueError: `formats` names a column that isn't in the table.
    """
    shown = as_text(table, formats)
    escaped = shown.rename(columns=_escape_pipe).map(_escape_pipe)
    columns = ["right" if numeric else "left" for numeric in _numeric(table)]
    markdown = escaped.to_markdown(index=False, disable_numparse=True, colalign=columns or None)
    return (f"{caption}\n\n" if caption else "") + markdown + "\n"


def pipe_table(rows: Sequence[Sequence[str]]) -> str:
    """Cells as a table in Markdown, the first row its head."""
    head, *body = (f"| {' | '.join(row)} |" for row in rows)
    return "\n".join([head, "|---" * len(rows[0]) + "|", *body])


def with_parts(text: str, parts: Mapping[str, Callable[[], str]], page: str) -> str:
    """A page with what stands between `<!-- NAME: ... -->` and `<!-- end -->` made anew, for each name.

    Args:
        page: its name, for people.

    Raises:
        UserError: a part has no markers.
    """
    places = {
        name: re.compile(rf"(<!-- {name}: [^\n]* -->\n).*?(?=<!-- end -->)", re.DOTALL) for name in parts
    }
    for name, place in places.items():
        if not place.search(text):
            raise UserError(f"{page} has no <!-- {name}: ... --> with an <!-- end --> after it.")
    for name, place in places.items():
        content = parts[name]().replace("\\", r"\\")  # of a template
        text = place.sub(rf"\g<1>{content}\n", text)
    return text


def latex_of(
    table: pd.DataFrame, *, formats: Mapping[str, str] = NO_FORMATS, caption: str = "", label: str = ""
) -> str:
    """The table in LaTeX (booktabs), rounded, with its caption and label.

    Raises:
        ValueError: `formats` names a column that isn't in the table.
    """
    return as_text(table, formats).to_latex(
        index=False,
        escape=True,
        caption=caption or None,
        label=label or None,
        column_format="".join("r" if numeric else "l" for numeric in _numeric(table)),
    )


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


def as_text(table: pd.DataFrame, formats: Mapping[str, str]) -> pd.DataFrame:
    """The table with every cell as the text that a reader sees.

    Raises:
        ValueError: `formats` names a column that isn't in the table.
    """

    def cell(name: str, value: Any, spec: str) -> str:
        if pd.isna(value):
            return MISSING
        return LESS if _CHANCE.search(name) and value < LEAST_CHANCE else format(value, spec)

    if unknown := set(formats) - {str(name) for name in table.columns}:
        raise ValueError(f"formats for columns that are not in the table: {sorted(unknown)}")
    shown = {}
    for name, column in table.items():
        spec = formats.get(str(name), ".4g" if pd.api.types.is_float_dtype(column.dtype) else "")
        shown[str(name)] = [cell(str(name), value, spec) for value in column]
    return pd.DataFrame(shown, index=table.index)


def _numeric(table: pd.DataFrame) -> list[bool]:
    """For each column, whether it holds numbers."""
    return [pd.api.types.is_numeric_dtype(dtype) for dtype in table.dtypes]


def _escape_pipe(text: str) -> str:
    return text.replace("|", r"\|").replace("\n", " ")
