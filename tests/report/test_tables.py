"""Tables in four formats: two files of each, and two texts."""

import csv
import re

import numpy as np
import pandas as pd
import pytest

from shapelaw.report.tables import MISSING, latex_of, markdown_of, write_table, yes_or_no

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
