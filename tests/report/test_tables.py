"""Tables in four formats, and pages of HTML that need nothing beside themselves."""

import base64
import csv
import math
import re
from enum import StrEnum
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from shapelaw.errors import UserError
from shapelaw.report.tables import (
    MISSING,
    Columns,
    frame_of,
    interval_columns,
    latex_of,
    markdown_of,
    pipe_table,
    table_page,
    with_parts,
    write_table,
)

TABLE = pd.DataFrame(
    {
        "model_name": ["a|b & c_d", "50% of $1 #2 {x}"],
        "width": [1234.56789, np.nan],
        "depth": pd.array([12, None], dtype="Int64"),
    }
)


def test_the_csv_keeps_every_digit(tmp_path):
    """Also where the name has a dot; an empty table is written too."""
    files = write_table(TABLE, tmp_path / "deep" / "v0.5", formats={"width": ",.1f"})
    assert [file.name for file in files] == ["v0.5.csv", "v0.5.html"]
    back = pd.read_csv(files[0])
    assert back["width"][0] == TABLE["width"][0]
    assert back["model_name"].tolist() == TABLE["model_name"].tolist()
    assert list(csv.reader(files[0].open()))[2][1:] == ["", ""]
    empty = TABLE.iloc[:0]
    assert "model_name" in write_table(empty, tmp_path / "empty")[1].read_text()
    assert "model_name" in markdown_of(empty)
    assert r"\end{tabular}" in latex_of(empty)


def test_markdown_and_latex_are_rounded_and_escaped():
    markdown = markdown_of(TABLE, formats={"width": ",.1f"}, caption="Shapes.")
    latex = latex_of(TABLE, formats={"width": ",.1f"}, caption="Shapes.", label="tab:t")
    rows = [line for line in markdown.splitlines() if line.startswith("|")]
    assert markdown.startswith("Shapes.\n\n")
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {4}
    assert r"a\|b & c_d" in markdown
    assert "1,234.6" in markdown
    assert MISSING in rows[3]
    assert r"a|b \& c\_d & 1,234.6 & 12 \\" in latex
    assert r"50\% of \$1 \#2 \{x\}" in latex
    assert r"model\_name" in latex
    assert r"\caption{Shapes.}" in latex
    assert r"\label{tab:t}" in latex
    assert r"\toprule" in latex


def test_formats_of_absent_columns_are_a_mistake(tmp_path):
    with pytest.raises(ValueError, match="heigth"):
        write_table(TABLE, tmp_path / "t", formats={"heigth": ".1f"})
    assert not list(tmp_path.iterdir())


class _Size(StrEnum):
    BLOCK = "block"


def test_a_column_is_a_path_or_a_function_of_the_row_s_item() -> None:
    mean = SimpleNamespace(value=0.0, low=-1.0, high=1.0)
    items = [SimpleNamespace(at=SimpleNamespace(size=2.0, depths=(1, 2)), axis=_Size.BLOCK, mean=mean)]
    columns: Columns = {
        "size": "at.size",
        "depths": "at.depths",
        "axis": "axis",
        "large": lambda one: one.at.size > 1,
        "rank": lambda _: None,
        **interval_columns("mean", "ratio", change=math.exp),
    }
    (row,) = frame_of(items, columns).to_dict("records")
    assert (row["size"], row["depths"], row["axis"], row["large"]) == (2.0, "1, 2", "block", "yes")
    assert (row["ratio"], row["low95"], row["high95"]) == (1.0, math.exp(-1), math.e)
    assert frame_of(items, columns, ["rank"])["rank"].dtype == "Int64"
    assert list(frame_of([], columns)) == list(columns)


ESCAPED = pd.DataFrame({"a <b>": ["x & y", "z"], "width": [1234.5678, None]})
SHOWN = pd.DataFrame({"a <b>": ["x & y", "z"], "width": ["1,235", "\u2013"]})


def test_a_page_shows_rounded_cells_keeps_every_digit_and_needs_nothing_beside_itself() -> None:
    text = table_page("sizes", "All <sizes>.", SHOWN, ESCAPED, [False, True])
    assert text.startswith("<!doctype html>")
    assert "All &lt;sizes&gt;. 2 rows" in text
    assert "<td>x &amp; y</td>" in text
    assert '<td class="n" data-value="1234.5678">1,235</td>' in text
    assert '<td class="n" data-value="">\u2013</td>' in text
    assert not re.findall(r'(?:src|href)="(?!data:)', text)
    file = re.search(r'download="sizes.csv" href="data:text/csv;base64,([^"]+)"', text)
    assert file
    assert base64.b64decode(file[1]).decode() == ESCAPED.to_csv(index=False)


def test_what_stands_between_a_page_s_markers_is_made_anew_and_every_part_has_some() -> None:
    text = "Before.\n<!-- one: by hand -->\nold\n<!-- end -->\nAfter, \\1.\n"
    new = with_parts(text, {"one": lambda: pipe_table([("a", "b"), ("1", "\\2")])}, "a.md")
    assert new == text.replace("old", "| a | b |\n|---|---|\n| 1 | \\2 |")
    with pytest.raises(UserError, match=r"a\.md has no <!-- two: "):
        with_parts(text, {"two": str}, "a.md")
