"""Tables in three formats and figures in two."""

import csv
import re

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shapelaw.report.plots import (
    explain,
    new_figure,
    ordered_colors,
    save_figure,
    short_number,
    size_axis,
    style,
)
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
    assert [f.name for f in files] == ["t.csv", "t.md", "t.tex"]
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


def draw():
    with style():
        figure, axes = new_figure(1, 2)
        axes[0, 0].plot([1e6, 1e9], [3, 2])
        size_axis(axes[0, 0])
        explain(axes[0, 1], "no line is fitted")
    return figure


def test_a_figure_is_saved_twice_and_always_the_same(tmp_path):
    files = save_figure(draw(), tmp_path / "new" / "v1.5")
    assert [f.name for f in files] == ["v1.5.svg", "v1.5.png"]
    assert files[0].read_text().startswith("<?xml")
    assert files[1].read_bytes().startswith(b"\x89PNG")
    again = save_figure(draw(), tmp_path / "again")
    assert again[0].read_bytes() == files[0].read_bytes()
    assert again[1].read_bytes() == files[1].read_bytes()


def test_the_style_leaves_no_trace():
    before = {name: mpl.rcParams[name] for name in ("font.size", "axes.grid", "svg.hashsalt", "figure.dpi")}
    with style():
        assert mpl.rcParams["svg.hashsalt"] == "shapelaw"
    assert {name: mpl.rcParams[name] for name in before} == before


@given(st.lists(st.integers(1, 200), min_size=1, max_size=12))
@settings(max_examples=30, deadline=None)
def test_colours_follow_the_order_of_the_values(values):
    colors = ordered_colors(values)
    assert list(colors) == sorted(set(values))
    assert len(set(colors.values())) == len(colors)
    brightness = [sum(mpl.colors.to_rgb(color)) for color in colors.values()]
    assert brightness == sorted(brightness)


@pytest.mark.parametrize(
    ("value", "text"),
    [(12, "12"), (3100, "3.1K"), (999_999, "1M"), (1.25e8, "125M"), (1.3e9, "1.3B"), (1e12, "1T")],
)
def test_short_numbers(value, text):
    assert short_number(value) == text
