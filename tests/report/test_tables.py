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

from shapelaw.report.tables import (
    MISSING,
    Columns,
    data_uri,
    frame_of,
    interval_columns,
    latex_of,
    markdown_of,
    page,
    table_page,
    write_table,
    yes_or_no,
)

TABLE = pd.DataFrame(
    {
        "model_name": ["a|b & c_d", "50% of $1 #2 {x}"],
        "width": [1234.56789, np.nan],
        "depth": pd.array([12, None], dtype="Int64"),
    }
)


def test_the_csv_keeps_every_digit(tmp_path):
    write_table(TABLE, tmp_path / "deep" / "t", formats={"width": ",.1f"})
    back = pd.read_csv(tmp_path / "deep" / "t.csv")
    assert back["width"][0] == TABLE["width"][0]
    assert back["model_name"].tolist() == TABLE["model_name"].tolist()
    assert list(csv.reader((tmp_path / "deep" / "t.csv").open()))[2][1:] == ["", ""]


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


def test_a_dot_in_the_name_stays_and_an_empty_table_is_written(tmp_path):
    empty = TABLE.iloc[:0]
    files = write_table(empty, tmp_path / "v0.5")
    assert [file.name for file in files] == ["v0.5.csv", "v0.5.html"]
    assert "model_name" in files[1].read_text()
    assert "model_name" in markdown_of(empty)
    assert r"\end{tabular}" in latex_of(empty)


def test_formats_of_absent_columns_are_a_mistake(tmp_path):
    with pytest.raises(ValueError, match="heigth"):
        write_table(TABLE, tmp_path / "t", formats={"heigth": ".1f"})
    assert not list(tmp_path.iterdir())


def test_a_claim_is_true_false_or_open():
    assert [yes_or_no(holds) for holds in (True, False, None)] == ["yes", "no", "open"]


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


def test_a_table_shows_rounded_cells_and_keeps_every_digit() -> None:
    text = table_page("sizes", "All <sizes>.", SHOWN, ESCAPED, [False, True])
    assert "All &lt;sizes&gt;. 2 rows" in text
    assert "<td>x &amp; y</td>" in text
    assert '<td class="n" data-value="1234.5678">1,235</td>' in text
    assert '<td class="n" data-value="">\u2013</td>' in text
    file = re.search(r'download="sizes.csv" href="data:text/csv;base64,([^"]+)"', text)
    assert file
    assert base64.b64decode(file[1]).decode() == ESCAPED.to_csv(index=False)


def test_a_page_needs_nothing_beside_itself() -> None:
    text = table_page("sizes", "", SHOWN, ESCAPED, [False, True])
    assert not re.findall(r'(?:src|href)="(?!data:)', text)
    assert text.startswith("<!doctype html>")


def test_what_is_embedded_comes_back() -> None:
    kind, content = data_uri(b"<svg/>", "image/svg+xml").removeprefix("data:").split(";base64,")
    assert (kind, base64.b64decode(content)) == ("image/svg+xml", b"<svg/>")
    assert "<title>1 &lt; 2</title>" in page("1 < 2", "")
