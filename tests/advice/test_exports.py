"""Folders of CSV exports of Weights & Biases."""

import pandas as pd
import pytest

from shapelaw.advice.own_runs.exports import read_exports
from shapelaw.errors import UserError

RUNS = pd.DataFrame(
    {
        "Name": ["a", "b", "c"],
        "State": ["finished", "finished", "crashed"],
        "n_layer": [2, 4, 8],
        "n_embd": [64, 64, 64],
    }
)
CHART = pd.DataFrame(
    {
        "Step": [0, 100, 200],
        "a - val/loss": [4.0, 3.5, None],
        "a - val/loss__MIN": [4.0, 3.5, None],
        "a - val/loss__MAX": [4.0, 3.5, None],
        "b - val/loss": [4.0, 3.4, 3.3],
    }
)


def test_tables_are_joined_and_charts_add_their_last_values(tmp_path):
    RUNS[:2].to_csv(tmp_path / "1.csv", index=False)
    RUNS[2:].to_csv(tmp_path / "2.csv", index=False)
    CHART.to_csv(tmp_path / "chart.csv", index=False)
    (tmp_path / "notes.md").write_text("not a table")
    table = read_exports(tmp_path)
    assert table["n_layer"].tolist() == [2, 4, 8]
    assert table["val/loss"].tolist()[:2] == [3.5, 3.3]
    assert table["val/loss (last step)"].tolist()[:2] == [100, 200]
    assert table.index.tolist() == ["a", "b", "c"]
    assert [name for name in table if "MIN" in name] == []


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({}, "has no tables"),
        ({"chart.csv": CHART}, "has charts only, which lack the shapes"),
        ({"runs.csv": RUNS.assign(Name="other"), "chart.csv": CHART}, "none of its runs, such as 'a'"),
        (
            {"runs.csv": RUNS.drop(columns="Name"), "chart.csv": CHART},
            "no table beside it has the runs' names",
        ),
    ],
)
def test_folders_that_cannot_be_used(tmp_path, files, words):
    for name, table in files.items():
        table.to_csv(tmp_path / name, index=False)
    with pytest.raises(UserError, match=words):
        read_exports(tmp_path)


def test_the_last_point_of_a_curve_is_that_of_its_largest_step(tmp_path):
    RUNS.to_csv(tmp_path / "runs.csv", index=False)
    CHART.iloc[[1, 2, 0]].to_csv(tmp_path / "chart.csv", index=False)
    early = pd.DataFrame({"Step": [50], "a - val/loss": [3.9], "c - val/loss": [3.8]})
    early.to_csv(tmp_path / "other.csv", index=False)
    table = read_exports(tmp_path)
    assert table["val/loss"].tolist() == [3.5, 3.3, 3.8]
    assert table["val/loss (last step)"].tolist() == [100, 200, 50]
    (tmp_path / "other.csv").unlink()  # a chart over time has no last step
    CHART.rename(columns={"Step": "Relative Time (Process)"}).to_csv(tmp_path / "chart.csv", index=False)
    table = read_exports(tmp_path)
    assert table["val/loss"].tolist()[:2] == [3.5, 3.3]
    assert "val/loss (last step)" not in table
