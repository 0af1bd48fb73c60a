"""The study of the embedding's rank: its grid, and its analysis on losses with a known redundancy."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from small import REPOSITORY

from shapelaw.errors import UserError
from shapelaw.fits.curves import SizeAxis
from shapelaw.fits.redundancy import RedundancyStatus
from shapelaw.report.write import check_declared, write_results
from shapelaw.specs.shapes import make_shape
from shapelaw.studies.config import load_config, runs_of
from shapelaw.studies.embedding_rank.analysis import analyse_runs, check_rank_runs
from shapelaw.studies.embedding_rank.results import analyse, present, summary
from shapelaw.studies.embedding_rank.tables import comparison_table, losses_table
from shapelaw.studies.registry import STUDIES

SCALES = REPOSITORY / "workflow" / "scales"
GRID = {
    "depth": 2,
    "width": 64,
    "heads": 2,
    "vocab_size": 500,
    "context_length": 16,
    "ranks": [4, 16, 64, 100],
    "full_position_ranks": [4],
    "baseline_widths": [32, 48, 64],
    "repeated_ranks": [4],
    "repeated_widths": [64],
    "recipe": {"dropout": 0.1},
}
TRUE = {4: 0.30, 8: 0.2, 16: 0.10, 32: 0.0, 64: 0.0}  # redundancy in blocks, by rank


def config_of(**changes: object):  # type: ignore[no-untyped-def]
    values = {"scale": "demo", "studies": ["embedding_rank"], "embedding_rank": GRID | changes}
    return load_config(values, SCALES)


def law(size: np.ndarray | float) -> np.ndarray:
    return np.asarray(3.0 + 9.0 * np.asarray(size, dtype=np.float64) ** -0.2)


def simulated(noise: float = 0.001, seeds: int = 3) -> pd.DataFrame:
    """Runs at depth 6 and width 128 whose low ranks cost what `TRUE` says."""
    rng, rows = np.random.default_rng(0), []
    shapes = [(make_shape(6, width, 2, 500, 64), 0.0) for width in (80, 96, 104, 112, 120, 128, 136)]
    shapes += [
        (make_shape(6, 128, 2, 500, 64, embedding_rank=rank, positional_rank=rank), wasted)
        for rank, wasted in TRUE.items()
    ]
    for shape, wasted in shapes:
        for seed in range(seeds):
            rows.append(
                {
                    "depth": shape.depth,
                    "width": shape.width,
                    "embedding_rank": shape.embedding_rank,
                    "positional_rank": shape.positional_rank,
                    "seed": seed,
                    "test_loss": float(law(shape.block_params * (1 - wasted)))
                    + noise * rng.standard_normal(),
                    "block_params": shape.block_params,
                    "total_params": shape.total_params,
                    "step_flops": shape.step_flops(8),
                }
            )
    return pd.DataFrame(rows)


def test_the_grid_is_the_baseline_and_every_rank() -> None:
    runs = runs_of(config_of(), "embedding_rank", REPOSITORY)
    assert len(runs) == 3 + 2 + (4 + 2) + (1 + 2)
    shapes = {key: run.shape for key, run in runs.items()}  # type: ignore[union-attr]
    assert shapes["wiki-V500-L2-d64-r4-H2-p4-t400-s2"].positional_rank == 4
    assert shapes["wiki-V500-L2-d64-r4-H2-t400-s0"].positional_rank is None
    assert shapes["wiki-V500-L2-d64-r64-H2-t400-s0"].embedding_rank is None
    assert shapes["wiki-V500-L2-d64-r64f-H2-p64-t400-s0"].embedding_rank == 64
    assert shapes["wiki-V500-L2-d64-r100f-H2-p100-t400-s0"].embedding_rank == 100
    assert {run.training.dropout for run in runs.values()} == {0.1}  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"ranks": []}, "embedding_rank.ranks is empty; give it ranks"),
        ({"baseline_widths": [64]}, "embedding_rank.baseline_widths needs two widths or more"),
        (
            {"baseline_widths": [63, 64]},
            "embedding_rank.baseline_widths: width 63 is not divisible by 2 heads",
        ),
        ({"repeated_ranks": [5]}, "embedding_rank.repeated_ranks has 5, which the grid does not have"),
        (
            {"recipe": {"droput": 0.1}},
            "embedding_rank.recipe.droput is not a key of training (did you mean dropout?)",
        ),
        ({"recipe": {"dropout": 2}}, "embedding_rank.recipe.dropout is 2: input should be less than 1"),
        ({"recipe": {"warmup_steps": 400}}, "embedding_rank.recipe.warmup_steps is 400, not below"),
    ],
)
def test_each_mistake_is_a_sentence(changes: dict[str, object], sentence: str) -> None:
    with pytest.raises(UserError) as error:
        config_of(**changes)
    assert sentence in str(error.value)


def test_scale_paper_is_the_paper_s_grid() -> None:
    grid = pd.read_csv(REPOSITORY / "workflow" / "reference" / "embedding_rank_grid.csv")
    config = load_config({"scale": "paper", "studies": ["embedding_rank"]}, SCALES, REPOSITORY)
    runs = runs_of(config, "embedding_rank", REPOSITORY).values()
    ours = {
        (run.shape.depth, run.shape.width, run.shape.embedding_rank)  # type: ignore[union-attr]
        for run in runs
        if run.shape.embedding_rank is None or run.shape.positional_rank is not None  # type: ignore[union-attr]
    }
    ranks = grid["embedding_rank"].astype("object").where(grid["embedding_rank"].notna(), None)
    assert ours == set(zip(grid["depth"], grid["width"], ranks, strict=True))


def test_the_redundancy_of_each_rank_is_found() -> None:
    analysis = analyse_runs(check_rank_runs(simulated(), "runs.csv"))
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


def test_all_that_is_declared_is_made(tmp_path: Path) -> None:
    simulated().to_csv(tmp_path / "runs.csv", index=False)
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
    simulated(seeds=1).to_csv(tmp_path / "runs.csv", index=False)
    analysis = analyse(tmp_path / "runs.csv")
    assert {one.redundancy.status for one in analysis.found} == {RedundancyStatus.NO_NOISE}
    assert all(math.isnan(one.redundancy.low) for one in analysis.found)
    assert analysis.needed == {}
    assert "no network has two seeds" in summary(analysis)
    assert set(comparison_table(analysis)["agrees"]) == {"open"}
    write_results(present(analysis), tmp_path / "out", "embedding_rank")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda runs: runs.assign(depth=[1, *[2] * (len(runs) - 1)]), "more than one depth"),
        (lambda runs: runs.drop(columns="embedding_rank"), "lacks embedding_rank"),
        (lambda runs: runs[runs["embedding_rank"].isna()], "a network of low rank"),
        (lambda runs: pd.concat([runs, runs.head(1)]), "must have one row"),
        (lambda runs: runs.assign(positional_rank=4), "study positional_rank is for those"),
    ],
)
def test_unusable_runs_are_a_sentence(tmp_path: Path, change, sentence: str) -> None:  # type: ignore[no-untyped-def]
    change(simulated()).to_csv(tmp_path / "runs.csv", index=False)
    with pytest.raises(UserError, match=sentence):
        analyse(tmp_path / "runs.csv")
