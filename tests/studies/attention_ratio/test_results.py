"""What the study of the attention ratio writes."""

from pathlib import Path

import pytest
from ratio_runs import ratio_runs

from shapelaw.fits.curves import SizeAxis
from shapelaw.report.write import check_declared, write_results
from shapelaw.studies.attention_ratio.results import analyse, present, summary
from shapelaw.studies.registry import STUDIES


@pytest.mark.parametrize("seeds", [1, 3])
def test_all_that_is_declared_is_made(tmp_path: Path, seeds: int) -> None:
    ratio_runs(seeds=seeds, variant=True).to_csv(tmp_path / "runs.csv", index=False)
    analysis = analyse(tmp_path / "runs.csv", SizeAxis.TOTAL)
    found, study = present(analysis), STUDIES["attention_ratio"]
    check_declared(found, study.tables, study.figures)
    write_results(found, tmp_path / "out", study.name)
    said = summary(analysis)
    assert ("Seed noise: no network has two seeds" in said) == (seeds == 1)
    assert "d_ff = 4 H d_a, H d_a / d = 16" in said
    assert "redundancy in all parameters 4" in said
    assert ("the first is larger." in said) == (seeds == 3)
