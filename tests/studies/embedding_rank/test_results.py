"""What the study of the embedding's rank writes."""

import math
from pathlib import Path

from rank_runs import TRUE, rank_runs

from shapelaw.fits.redundancy import RedundancyStatus
from shapelaw.report.write import check_declared, write_results
from shapelaw.studies.embedding_rank.results import analyse, present, summary
from shapelaw.studies.embedding_rank.tables import comparison_table, losses_table
from shapelaw.studies.registry import STUDIES


def test_all_that_is_declared_is_made(tmp_path: Path) -> None:
    rank_runs().to_csv(tmp_path / "runs.csv", index=False)
    analysis = analyse(tmp_path / "runs.csv")
    found, study = present(analysis), STUDIES["embedding_rank"]
    check_declared(found, study.tables, study.figures)
    write_results(found, tmp_path / "out", study.name)
    assert "r = 4, positions of that rank too: redundancy in parameters of the blocks 30%" in summary(
        analysis
    )
    assert len(losses_table(analysis)) == 7 + len(TRUE)
    compared = comparison_table(analysis)
    assert set(compared["setting"]) == {"r = 4 of d = 128"}
    assert set(compared["published"]) == {0.25}


def test_without_repeated_seeds_there_are_no_intervals(tmp_path: Path) -> None:
    rank_runs(seeds=1).to_csv(tmp_path / "runs.csv", index=False)
    analysis = analyse(tmp_path / "runs.csv")
    assert {one.redundancy.status for one in analysis.found} == {RedundancyStatus.NO_NOISE}
    assert all(math.isnan(one.redundancy.low) for one in analysis.found)
    assert analysis.needed == {}
    assert "no network has two seeds" in summary(analysis)
    assert set(comparison_table(analysis)["agrees"]) == {"open"}
    write_results(present(analysis), tmp_path / "out", "embedding_rank")
