"""The table of ReLU networks beside attention: sorted, summed up by task, and refused where it lacks something."""

import argparse
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from shapelaw.errors import UserError
from shapelaw.studies.memorization.relu import COLUMNS, results


def row(**values: Any) -> dict[str, Any]:
    shared = {"task": "classification", "measure": "accuracy", "heads": 4, "context": 32, "examples": 550}
    return dict.fromkeys(COLUMNS, 0) | shared | values


def results_of(table: pd.DataFrame, path: Path) -> Any:
    table.to_csv(path, index=False)
    return results(argparse.Namespace(input=path))


def test_networks_stand_by_size_and_their_means_by_task(tmp_path: Path) -> None:
    table = pd.DataFrame(
        [
            row(heads=8, attention=0.5, relu=1.0),
            row(heads=4, attention=0.25, relu=0.5, attention_at_least=float("nan")),
            row(task="regression", measure="squared error", attention=0.125, relu=0.0),
        ]
    )
    found = results_of(table, tmp_path / "relu.csv")
    assert found.tables["relu"].frame["heads"].tolist() == [4, 8, 4]
    assert found.summary.splitlines() == [
        "classification: accuracy 0.375 of attention and 0.750 of ReLU networks, means over 2.",
        "regression: squared error 0.125 of attention and 0.000 of ReLU networks, means over 1.",
    ]
    assert (found.fit["networks"], found.fit["status"]) == (3, "measured")
    assert found.fit["rows"][0]["attention_at_least"] is None


def test_another_table_is_refused(tmp_path: Path) -> None:
    table = pd.DataFrame([row()]).drop(columns=["relu_units", "relu"])
    with pytest.raises(UserError, match=r"has no relu_units, relu; make it again: rm "):
        results_of(table, tmp_path / "relu.csv")
