"""The study of the embedding's rank, on runs whose redundancies are known."""

import math

import pandas as pd
import pytest
from rank_runs import TRUE, rank_runs

from shapelaw.fits.redundancy import RedundancyStatus
from shapelaw.report.write import Table
from shapelaw.specs.sizes import SizeAxis
from shapelaw.studies.decoders.embedding_rank import (
    EmbeddingAnalysis,
    analyse_runs,
    answer,
    check_rank_runs,
    comparison_table,
    losses_figure,
    present,
    seed_noise_table,
)


@pytest.fixture(scope="module")
def analysis() -> EmbeddingAnalysis:
    return analyse_runs(check_rank_runs(rank_runs(), "runs.csv"))


def test_the_redundancy_of_each_rank_is_found(analysis: EmbeddingAnalysis) -> None:
    for one in analysis.found:
        if one.axis is SizeAxis.BLOCK:
            truth = TRUE[one.rank]
            assert one.redundancy.status is RedundancyStatus.MEASURED
            assert one.redundancy.value == pytest.approx(truth, abs=0.04)
            assert one.redundancy.low < truth + 0.03
            assert one.redundancy.high > truth - 0.03
    needed = analysis.needed["of that rank too"]
    assert needed.too_small in (8, 16)
    assert needed.enough in (16, 32)


def test_full_and_low_rank_are_told_apart(analysis: EmbeddingAnalysis) -> None:
    left, right = losses_figure(analysis).figure().axes
    named = ["full rank, narrower", "low rank, positions of that rank too"]
    assert right.get_legend_handles_labels()[1] == named
    assert {text.get_text() for text in left.texts} == {"4", "8", "16", "32", "64"}
    sides = [text.get_ha() for text in sorted(left.texts, key=lambda text: text.xy[1])]
    assert sides == ["left", "right", "left", "right", "left"]  # neighbours' labels never lie on one another


def test_seed_noise_stands_beside_that_of_the_paper_s_networks() -> None:
    """Its table 2 has widths 576 and 680 of full rank, and 680 of rank 128."""
    full, low = ((680, None, None), (576, None, None)), ((680, 128, 128), (680, 16, 16))
    runs = pd.DataFrame(
        [
            {"depth": 12, "width": width, "embedding_rank": rank, "positional_rank": positions, "seed": seed}
            | {"test_loss": 3.0 + 0.01 * seed + width / 1e4, "block_params": 144 * width**2}
            | {"total_params": 150 * width**2, "step_flops": 900 * width**2}
            for width, rank, positions in (*full, *low)
            for seed in range(2)
        ]
    )
    table = seed_noise_table(analyse_runs(check_rank_runs(runs, "runs.csv")))
    known = {
        (row.width, row.embedding_rank): row.published_std for row in table.itertuples() if row.width == 680
    }
    assert known == {(680, pd.NA): 0.0008, (680, 128): 0.0021} | {
        (680, 16): pytest.approx(math.nan, nan_ok=True)
    }
    assert table["published_std"].iloc[0] == 0.0015
    assert table["loss_std"].tolist() == pytest.approx([0.01 / math.sqrt(2)] * 5)
    assert table["published_std"].iloc[-1] == pytest.approx(1.56e-3, abs=1e-5)


COLUMNS = "embedding_rank rank_over_width positions size_axis redundancy low high status significant"


def told(*rows):
    return answer({"redundancy": Table(pd.DataFrame(rows, columns=COLUMNS.split()), "")})


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
    assert not told().decided


def test_ours_stands_beside_the_paper_s_at_the_nearest_share_of_the_width(
    analysis: EmbeddingAnalysis,
) -> None:
    compared = comparison_table(analysis)
    assert set(compared["setting"]) == {"r = 4 of d = 128"}
    assert set(compared["published"]) == {"0.25"}


def test_without_repeated_seeds_there_are_no_intervals() -> None:
    analysis = analyse_runs(check_rank_runs(rank_runs(seeds=1), "runs.csv"))
    assert {one.redundancy.status for one in analysis.found} == {RedundancyStatus.NO_NOISE}
    assert all(math.isnan(one.redundancy.low) for one in analysis.found)
    assert analysis.needed == {}
    assert "no network has two seeds" in present(analysis).summary
    assert set(comparison_table(analysis)["agrees"]) == {"open"}
