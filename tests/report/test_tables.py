"""Frames and their files, and pages of HTML that need nothing beside themselves."""

import base64
import csv
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from page_parts import pipe_table, with_parts
from shapelaw.errors import UserError
from shapelaw.report.reading import MISSING, reading_of
from shapelaw.report.tables import (
    table_page,
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
    """Also where the name has a dot."""
    reading = reading_of(TABLE, {"width": ",.1f"})
    files = write_table(TABLE, tmp_path / "deep" / "v0.5", reading)
    assert [file.name for file in files] == ["v0.5.csv", "v0.5.html"]
    back = pd.read_csv(files[0])
    assert back["width"][0] == TABLE["width"][0]
    assert back["model_name"].tolist() == TABLE["model_name"].tolist()
    assert list(csv.reader(files[0].open()))[2][1:] == ["", ""]


def test_a_page_shows_rounded_cells_keeps_every_digit_and_needs_nothing_beside_itself() -> None:
    exact = pd.DataFrame({"a <b>": ["x & y", "z"], "width": [1234.5678, None]})
    text = table_page(Path("bread/sizes"), "All <sizes>.", reading_of(exact, {"width": ",.0f"}), exact)
    assert text.startswith("<!doctype html>")
    assert "All &lt;sizes&gt;. 2 rows" in text
    assert ">a &lt;b&gt;</th>" in text
    assert ">x &amp; y</th>" in text
    assert ">1,235</td>" in text
    assert f">{MISSING}</td>" in text
    assert not re.findall(r'(?:src|href)="(?!data:)', text)
    file = re.search(r'download="sizes.csv" href="data:text/csv;base64,([^"]+)"', text)
    assert file
    assert base64.b64decode(file[1]).decode() == exact.to_csv(index=False)


def test_what_stands_between_a_page_s_markers_is_made_anew_and_every_part_has_some() -> None:
    text = "Before.\n<!-- one: by hand -->\nold\n<!-- end -->\nAfter, \\1.\n"
    new = with_parts(text, {"one": lambda: pipe_table([("a", "b"), ("1", "\\2")])}, "a.md")
    assert new == text.replace("old", "| a | b |\n|---|---|\n| 1 | \\2 |")
    with pytest.raises(UserError, match=r"a\.md has no <!-- two: "):
        with_parts(text, {"two": str}, "a.md")
