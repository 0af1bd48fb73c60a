"""Pages of HTML that need nothing beside themselves: their style, their tables, and what they embed."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape

import pandas as pd

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
    rows = []
    for texts, values in zip(shown.itertuples(index=False), exact.itertuples(index=False), strict=True):
        cells = zip(texts, values, numeric, strict=True)
        rows.append("<tr>" + "".join(_cell(text, value, number) for text, value, number in cells) + "</tr>")
    file = data_uri(exact.to_csv(index=False).encode(), "text/csv")
    counted = "1 row" if len(rows) == 1 else f"{len(rows)} rows"
    link = f'<a download="{escape(name)}.csv" href="{file}">{escape(name)}.csv, every digit</a>'
    body = (
        f"<table>\n<caption>{escape(caption)} {counted}; {link}.</caption>\n<thead><tr>{head}</tr></thead>\n<tbody>\n"
        + "\n".join(rows)
        + "\n</tbody>\n</table>"
    )
    return page(name.replace("_", " "), body, script=SORT)


def _cell(text: str, value: object, number: bool) -> str:
    if not number:
        return f"<td>{escape(text)}</td>"
    return f'<td class="n" data-value="{"" if pd.isna(value) else value}">{escape(text)}</td>'  # type: ignore[call-overload]


def data_uri(content: bytes, kind: str) -> str:
    """The content as an address, so that a page needs no other file.

    Args:
        kind: MIME type, such as `image/svg+xml`.
    """
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"
