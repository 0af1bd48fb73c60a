"""One table as CSV (every digit), and as Markdown, LaTeX and HTML (rounded, to read)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from shapelaw.errors import UserError
from shapelaw.report.pages import table_page

MISSING = "–"


def write_table(
    table: pd.DataFrame,
    path: Path,
    *,
    formats: Mapping[str, str] | None = None,
    caption: str | None = None,
    label: str | None = None,
) -> list[Path]:
    """Write PATH.csv, PATH.md, PATH.tex and PATH.html and return the paths; the index is left out.

    Args:
        path: path without suffix; a dot in the name is kept. Missing folders are made.
        formats: column -> format specification (e.g. ".3g", ",.0f") where the table is to be read; other floats get
            ".4g". A missing value is a dash there and an empty field in the CSV.
        caption: a sentence below the LaTeX table and above the others.
        label: LaTeX label of the table.

    Raises:
        ValueError: `formats` names a column that isn't in the table.
    """
    unknown = set(formats or {}) - {str(name) for name in table.columns}
    if unknown:
        raise ValueError(f"formats for columns that are not in the table: {sorted(unknown)}")
    path.parent.mkdir(parents=True, exist_ok=True)
    files = [path.with_name(path.name + suffix) for suffix in (".csv", ".md", ".tex", ".html")]
    table.to_csv(files[0], index=False)

    shown = as_text(table, formats or {})
    numeric = [pd.api.types.is_numeric_dtype(dtype) for dtype in table.dtypes]
    escaped = shown.rename(columns=_escape_pipe).map(_escape_pipe)
    markdown = escaped.to_markdown(
        index=False, disable_numparse=True, colalign=["right" if n else "left" for n in numeric] or None
    )
    files[1].write_text((f"{caption}\n\n" if caption else "") + markdown + "\n", encoding="utf-8")
    latex = shown.to_latex(
        index=False,
        escape=True,
        caption=caption,
        label=label,
        column_format="".join("r" if n else "l" for n in numeric),
    )
    files[2].write_text(latex, encoding="utf-8")
    html = table_page(path.name, caption or "", shown, table, numeric)
    files[3].write_text(html, encoding="utf-8")
    return files


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
    """The table with every cell as the text that a reader sees."""
    shown = {}
    for name, column in table.items():
        spec = formats.get(str(name), ".4g" if pd.api.types.is_float_dtype(column.dtype) else "")
        shown[str(name)] = [MISSING if pd.isna(value) else format(value, spec) for value in column]
    return pd.DataFrame(shown, index=table.index)


def _escape_pipe(text: str) -> str:
    return text.replace("|", r"\|").replace("\n", " ")
