"""All tables and the figure, written."""

import pandas as pd

from shapelaw.report.write import Table, write_results
from shapelaw.studies.assumptions.findings import read_rows, write_row
from shapelaw.studies.assumptions.results import answer, present


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


def test_layers_on_which_each_holds_and_agreement_with_the_paper():
    rows = [
        ("assumption 1", "holds", "holds"),
        ("assumption 1", "fails", "holds"),
        ("general position", "fails", None),
    ]
    verdicts = pd.DataFrame(rows, columns=["assumption", "ours", "published"])
    found = answer({"verdicts": Table(verdicts, "")})
    assert found.decided
    assert found.sentence == "Layers on which it holds: assumption 1 on 1 of 2, general position on 0 of 1."
    assert found.published == "1 of 2 published verdicts agree with ours."
