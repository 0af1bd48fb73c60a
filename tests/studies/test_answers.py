"""What studies answer from tables (answers.yaml); what they answer of whole runs is in tests/golden."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pandas as pd
import pytest
import yaml
from small import REPOSITORY

from shapelaw.report.write import Table

ANSWERS = REPOSITORY / "tests" / "studies" / "answers.yaml"


def cases() -> Iterator[tuple[str, dict[str, pd.DataFrame], str]]:
    """A module of a study, its tables and the words of its answer."""
    for module, listed in yaml.safe_load(ANSWERS.read_text(encoding="utf-8")).items():
        for case in listed["cases"]:
            tables = {
                name: pd.DataFrame(case[name], columns=columns.split())
                for name, columns in listed["columns"].items()
            }
            yield module, tables, case["says"]


@pytest.mark.parametrize(("module", "tables", "says"), [*cases()])
def test_a_study_answers_from_its_tables(module: str, tables: dict[str, pd.DataFrame], says: str) -> None:
    study: Any = import_module(f"shapelaw.studies.{module}")
    assert study.answer({name: Table(frame, "") for name, frame in tables.items()}).words == says
