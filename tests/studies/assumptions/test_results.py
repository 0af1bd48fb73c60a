"""All tables and the figure, written."""

import pandas as pd

from shapelaw.report.write import write_results
from shapelaw.studies.assumptions.results import present
from shapelaw.studies.assumptions.stored_findings import read_rows, write_row


def test_results_are_written(rows, tmp_path):
    for row in rows:
        write_row(tmp_path / "layers", row)
    assert len(write_results(present(read_rows(tmp_path / "layers")), tmp_path, "assumptions")) == 13
    sensitivity = pd.read_csv(tmp_path / "sensitivity.csv")
    assert (sensitivity.filter(like="1e-").diff(axis=1).iloc[:, 1:] >= 0).all(axis=None)
    rates = pd.read_csv(tmp_path / "pass_rate.csv")
    assert rates["rate"].between(0, 1).all()
    for name in ("tables.md", "tables.tex", "layers.csv", "pass_rate.png"):
        assert (tmp_path / name).stat().st_size > 100
