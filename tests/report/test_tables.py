"""Tables in four formats."""

import csv
import re

import numpy as np
import pandas as pd
import pytest

from shapelaw.report.tables import MISSING, write_table

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


def test_markdown_and_latex_are_rounded_and_escaped(tmp_path):
    files = write_table(TABLE, tmp_path / "t", formats={"width": ",.1f"}, caption="Shapes.", label="tab:t")
    assert [f.name for f in files] == ["t.csv", "t.md", "t.tex", "t.html"]
    markdown, latex = files[1].read_text(), files[2].read_text()
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
    files = write_table(TABLE.iloc[:0], tmp_path / "v0.5")
    assert files[0].name == "v0.5.csv"
    assert "model_name" in files[1].read_text()
    assert r"\end{tabular}" in files[2].read_text()


def test_formats_of_absent_columns_are_a_mistake(tmp_path):
    with pytest.raises(ValueError, match="heigth"):
        write_table(TABLE, tmp_path / "t", formats={"heigth": ".1f"})
