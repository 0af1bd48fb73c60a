"""The study of the embedding's rank, on runs whose redundancies are known."""

import math
from pathlib import Path

import pandas as pd
import pytest
from rank_runs import TRUE, rank_runs
from recipes import with_another, with_recipe

from shapelaw.errors import UserError
from shapelaw.fits.curves import SizeAxis
from shapelaw.fits.inputs import RECIPE
from shapelaw.fits.redundancy import RedundancyStatus
from shapelaw.report.write import Table, check_declared, write_results
from shapelaw.studies.embedding_rank.results import (
    analyse,
    analyse_runs,
    answer,
    check_rank_runs,
    comparison_table,
    losses_figure,
    present,
    summary,
)
from shapelaw.studies.given_runs import study_runs
from shapelaw.studies.registry import STUDIES


def test_the_redundancy_of_each_rank_is_found() -> None:
    analysis = analyse_runs(check_rank_runs(rank_runs(), "runs.csv"))
    for one in analysis.found:
        if one.axis is SizeAxis.BLOCK:
            truth = TRUE[int(one.row["embedding_rank"])]
            assert one.redundancy.status is RedundancyStatus.MEASURED
            assert one.redundancy.value == pytest.approx(truth, abs=0.04)
            assert one.redundancy.low < truth + 0.03
            assert one.redundancy.high > truth - 0.03
    needed = analysis.needed["of that rank too"]
    assert needed.too_small in (8, 16)
    assert needed.enough in (16, 32)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda runs: runs.drop(columns="embedding_rank"), "lacks embedding_rank"),
        (lambda runs: runs[runs["embedding_rank"].isna()], "a network of low rank"),
        (lambda runs: pd.concat([runs, runs.head(1)]), "must have one row"),
        (lambda runs: runs.assign(positional_rank=4), "study positional_rank is for those"),
        (lambda runs: runs.assign(width=0), "width must be above zero"),
        (
            lambda runs: runs.assign(embedding_rank=2.5),
            "embedding_rank must be a whole number of 1 or more, or empty for full rank",
        ),
    ],
)
def test_unusable_runs_are_a_sentence(tmp_path: Path, change, sentence: str) -> None:  # type: ignore[no-untyped-def]
    change(rank_runs()).to_csv(tmp_path / "runs.csv", index=False)
    with pytest.raises(UserError, match=sentence):
        analyse(study_runs(tmp_path / "runs.csv"))


@pytest.mark.parametrize("name", ["depth", *RECIPE])
def test_networks_that_differ_in_more_than_rank_and_width_are_a_sentence(name: str) -> None:
    runs = with_recipe(rank_runs(seeds=1))
    check_rank_runs(runs, "runs.csv")
    with pytest.raises(UserError, match=f"with different values of {name} "):
        check_rank_runs(with_another(runs, name, runs["embedding_rank"].isna()), "runs.csv")


def test_full_and_low_rank_are_told_apart() -> None:
    analysis = analyse_runs(check_rank_runs(rank_runs(), "runs.csv"))
    left, right = losses_figure(analysis).figure().axes
    named = ["full rank, narrower", "low rank, positions of that rank too"]
    assert right.get_legend_handles_labels()[1] == named
    assert {text.get_text() for text in left.texts} == {"4", "8", "16", "32", "64"}
    sides = [text.get_ha() for text in sorted(left.texts, key=lambda text: text.xy[1])]
    assert sides == ["left", "right", "left", "right", "left"]  # neighbours' labels never lie on one another


COLUMNS = "embedding_rank rank_over_width positions size_axis redundancy low high status significant"


def told(*rows, published=0.25):
    printed = pd.DataFrame([{"published": published, "published_setting": "r = 16 of d = 680"}])
    frame = pd.DataFrame(rows, columns=COLUMNS.split())
    return answer({"redundancy": Table(frame, ""), "comparison": Table(printed, "")})


def test_the_lowest_rank_in_the_blocks_parameters():
    found = told(
        (8, 0.5, "of full rank", "block", 0.01, -0.1, 0.1, "measured", "no"),
        (2, 0.125, "of full rank", "block", 0.33, 0.29, 0.36, "measured", "yes"),
        (2, 0.125, "of full rank", "total", -0.5, -0.6, -0.4, "measured", "no"),
    )
    assert found.decided
    assert found.sentence == (
        "At rank 2, 0.12 of the width, 33% (29% to 36%) of the blocks' parameters are wasted (positions of full rank; "
        "measured)."
    )
    assert found.published == "25% at r = 16 of d = 680."


def test_nothing_to_compare_is_undecided():
    found = told(published=None)
    assert (found.decided, found.published) == (False, "")


def test_all_that_is_declared_is_made(tmp_path: Path) -> None:
    rank_runs().to_csv(tmp_path / "runs.csv", index=False)
    analysis = analyse(study_runs(tmp_path / "runs.csv"))
    found, study = present(analysis), STUDIES["embedding_rank"]
    check_declared(found, study.tables, study.figures)
    write_results(found, tmp_path / "out", study.name)
    assert "r = 4, positions of that rank too: redundancy in parameters of the blocks 30%" in summary(
        analysis
    )
    assert len(found.tables["losses"].frame) == 7 + len(TRUE)
    compared = comparison_table(analysis)
    assert set(compared["setting"]) == {"r = 4 of d = 128"}
    assert set(compared["published"]) == {0.25}


def test_without_repeated_seeds_there_are_no_intervals(tmp_path: Path) -> None:
    rank_runs(seeds=1).to_csv(tmp_path / "runs.csv", index=False)
    analysis = analyse(study_runs(tmp_path / "runs.csv"))
    assert {one.redundancy.status for one in analysis.found} == {RedundancyStatus.NO_NOISE}
    assert all(math.isnan(one.redundancy.low) for one in analysis.found)
    assert analysis.needed == {}
    assert "no network has two seeds" in summary(analysis)
    assert set(comparison_table(analysis)["agrees"]) == {"open"}
    write_results(present(analysis), tmp_path / "out", "embedding_rank")
