"""The study of the embedding's rank, on runs whose redundancies are known."""

import math

import pandas as pd
import pytest
from bottleneck_runs import WASTED_BY_RANK, rank_runs

from shapelaw.fits.redundancy import RedundancyStatus
from shapelaw.specs.sizes import SizeAxis
from shapelaw.studies.decoders.embedding_rank import (
    EmbeddingAnalysis,
    analyse_runs,
    check_rank_runs,
    seed_noise_table,
)


@pytest.fixture(scope="module")
def analysis() -> EmbeddingAnalysis:
    return analyse_runs(check_rank_runs(rank_runs(), "runs.csv"))


def test_the_redundancy_of_each_rank_is_found(analysis: EmbeddingAnalysis) -> None:
    for one in analysis.found:
        if one.axis is SizeAxis.BLOCK:
            truth = WASTED_BY_RANK[one.rank]
            assert one.redundancy.status is RedundancyStatus.MEASURED
            assert one.redundancy.value == pytest.approx(truth, abs=0.04)
            assert one.redundancy.low < truth + 0.03
            assert one.redundancy.high > truth - 0.03
    needed = analysis.needed["of that rank too",]
    assert needed.too_small in (8, 16)
    assert needed.enough in (16, 32)


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
