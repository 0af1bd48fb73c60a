"""What the study of the positional embedding's rank writes."""

from pathlib import Path

import pytest
from positional_runs import positional_runs

from shapelaw.report.write import check_declared, write_results
from shapelaw.studies.positional_rank.results import analyse, present, summary
from shapelaw.studies.registry import STUDIES


@pytest.mark.parametrize("seeds", [1, 3])
def test_all_that_is_declared_is_made(tmp_path: Path, seeds: int) -> None:
    positional_runs(seeds=seeds).to_csv(tmp_path / "runs.csv", index=False)
    analysis = analyse(tmp_path / "runs.csv")
    found, study = present(analysis), STUDIES["positional_rank"]
    check_declared(found, study.tables, study.figures)
    write_results(found, tmp_path / "out", study.name)
    said = summary(analysis)
    assert ("Seed noise: no network has two seeds" in said) == (seeds == 1)
    assert "Positional rank 1 costs as much as vocabulary rank 4" in said
    enough = "The positional embedding, against factored at full rank: nothing is lost from rank 8 on (a cost below"
    assert (enough in said) == (seeds == 3)


def test_what_noise_hides_is_said(tmp_path: Path) -> None:
    positional_runs(noise=0.4).to_csv(tmp_path / "runs.csv", index=False)
    said = summary(analyse(tmp_path / "runs.csv"))
    assert (
        "The positional embedding, against plain: no rank of the grid is significantly worse (a cost" in said
    )
