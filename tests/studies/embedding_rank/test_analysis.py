"""Redundancies against known ones."""

from pathlib import Path

import pandas as pd
import pytest
from rank_runs import TRUE, rank_runs
from recipes import with_another, with_recipe

from shapelaw.errors import UserError
from shapelaw.fits.curves import SizeAxis
from shapelaw.fits.inputs import RECIPE
from shapelaw.fits.redundancy import RedundancyStatus
from shapelaw.studies.embedding_rank.analysis import analyse_runs, check_rank_runs
from shapelaw.studies.embedding_rank.results import analyse


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
        (lambda runs: runs.assign(width=-5), "width must be above zero"),
        (lambda runs: runs.assign(width=2.5), "width must be a whole number"),
        (lambda runs: runs.assign(depth=2.5), "depth must be a whole number"),
        (lambda runs: runs.assign(seed=0.5), "seed must be a whole number"),
        (
            lambda runs: runs.assign(
                block_params=runs["block_params"].where(runs["embedding_rank"].isna(), 0)
            ),
            "block_params must be above zero",
        ),
        (
            lambda runs: runs.assign(
                block_params=runs["block_params"].where(runs["embedding_rank"].notna(), 0)
            ),
            "block_params must be above zero",
        ),
        *(
            (
                lambda runs, rank=rank: runs.assign(embedding_rank=rank),
                "embedding_rank must be a whole number of 1 or more, or empty for full rank",
            )
            for rank in (0, 2.5, "full")
        ),
        (
            lambda runs: runs.assign(positional_rank=2.5),
            "positional_rank must be a whole number of 1 or more, or empty for full rank",
        ),
    ],
)
def test_unusable_runs_are_a_sentence(tmp_path: Path, change, sentence: str) -> None:  # type: ignore[no-untyped-def]
    change(rank_runs()).to_csv(tmp_path / "runs.csv", index=False)
    with pytest.raises(UserError, match=sentence):
        analyse(tmp_path / "runs.csv")


@pytest.mark.parametrize("name", ["depth", *RECIPE])
def test_networks_that_differ_in_more_than_rank_and_width_are_a_sentence(name: str) -> None:
    runs = with_recipe(rank_runs(seeds=1))
    check_rank_runs(runs, "runs.csv")
    with pytest.raises(UserError, match=f"with different values of {name} "):
        check_rank_runs(with_another(runs, name, runs["embedding_rank"].isna()), "runs.csv")
