"""What the study of undertraining writes."""

from pathlib import Path

from undertraining_runs import undertraining_runs

from shapelaw.report.write import check_declared, write_results
from shapelaw.studies.registry import STUDIES
from shapelaw.studies.transitions.analysis import Options
from shapelaw.studies.undertraining.results import analyse, present


def test_all_that_is_declared_is_made(tmp_path: Path) -> None:
    undertraining_runs().to_csv(tmp_path / "runs.csv", index=False)
    results, study = present(analyse(tmp_path / "runs.csv", Options(draws=200))), STUDIES["undertraining"]
    check_declared(results, study.tables, study.figures)
    write_results(results, tmp_path / "out", study.name)
    assert "4,000 steps, rate 0.001: depth 4 against 8: width 2" in results.summary
    assert "From 1,000 to 4,000 steps the transition from depth 4 moves by a factor of " in results.summary
    assert "36 of 36 best rates are the lowest or the highest that was tried" in results.summary
