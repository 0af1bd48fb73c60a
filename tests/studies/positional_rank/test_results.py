"""The study of the positional embedding's rank, on runs whose costs are known."""

import numpy as np
import pandas as pd
import pytest
from bottleneck_runs import EQUAL_TO_1, POSITIONAL, VOCABULARY, positional_runs

from shapelaw.fits.redundancy import Needed
from shapelaw.studies.decoders.positional_rank import (
    FACTORED,
    PLAIN,
    PositionalAnalysis,
    analyse_runs,
    check_positional_runs,
    comparison_table,
    losses_table,
)


def analysis_of(runs: pd.DataFrame) -> PositionalAnalysis:
    return analyse_runs(check_positional_runs(runs, "runs.csv"))


@pytest.fixture(scope="module")
def analysis() -> PositionalAnalysis:
    return analysis_of(positional_runs())


def test_costs_needed_ranks_and_equivalents_are_found(analysis: PositionalAnalysis) -> None:
    table = losses_table(analysis)
    for name, costs in (("positional", POSITIONAL), ("vocabulary", VOCABULARY)):
        found = table[table["series"] == name].set_index("rank")["cost"]
        assert found.to_dict() == pytest.approx(costs, abs=0.006)
    assert analysis.full_ranks == {"positional": 128, "vocabulary": 128}
    positional, vocabulary = Needed(8, 4), Needed(128, 64)
    assert analysis.needed["positional", PLAIN] == analysis.needed["positional", FACTORED] == positional
    assert analysis.needed["vocabulary", PLAIN] == vocabulary
    assert analysis.needed["vocabulary", FACTORED] == Needed(None, 64)
    one, two, *_, last = analysis.equivalents
    assert (one.positional_rank, one.status) == (1, "measured")
    assert one.vocabulary_rank == pytest.approx(EQUAL_TO_1, rel=0.03)
    assert one.low < EQUAL_TO_1 * 1.01
    assert one.high > EQUAL_TO_1 * 0.99
    assert (one.worse, one.better) == (32, 64)
    assert (two.worse, two.better) == (64, 128)
    assert last.high == np.inf
    assert last.better is None


def test_the_cost_of_factoring_is_told_from_that_of_rank() -> None:
    analysis = analysis_of(positional_runs(factoring=0.05))
    assert analysis.needed["positional", PLAIN] == Needed(None, 128)
    assert analysis.needed["positional", FACTORED] == Needed(8, 4)
    runs = positional_runs()
    without = analysis_of(runs[~(runs["positional_rank"] == 128)])
    assert ("positional", FACTORED) not in without.needed


def test_where_full_rank_is_not_factored_plain_embeddings_end_the_series() -> None:
    runs = positional_runs()
    analysis = analysis_of(runs[~(runs["embedding_rank"] == 128)])
    assert analysis.equivalents[1].vocabulary_rank == pytest.approx(2 ** (7 - 0.05 / 0.1), rel=0.04)


@pytest.mark.slow
def test_the_interval_of_the_equivalent_covers_the_truth() -> None:
    """68% of them; the vocabulary's costs are straight in log rank, so interpolation is exact."""
    hits = []
    for seed in range(60):
        runs = positional_runs(0.02, 2, seed)
        (one,) = analysis_of(runs[runs["positional_rank"].isin([1, np.nan])]).equivalents
        hits.append(one.low <= EQUAL_TO_1 <= one.high)
    assert 0.5 <= np.mean(hits) <= 0.85


def test_a_positional_rank_beyond_the_vocabulary_s_costs_is_a_bound() -> None:
    runs = positional_runs()
    runs.loc[runs["positional_rank"] == 1, "test_loss"] += 2.0
    one = analysis_of(runs).equivalents[0]
    assert (one.vocabulary_rank, one.low, one.status) == (2.0, 0.0, "below the ranks trained")
    assert (one.worse, one.better) == (None, 2)
    better = positional_runs()
    better.loc[better["positional_rank"] == 128, "test_loss"] -= 0.1
    last = analysis_of(better).equivalents[-1]
    assert (last.vocabulary_rank, last.high) == (128.0, np.inf)
    assert last.status == "costs less than every vocabulary rank"


def test_noise_that_hides_every_cost_is_no_rank_found() -> None:
    analysis = analysis_of(positional_runs(noise=0.4))
    assert comparison_table(analysis).iloc[0]["status"] == "no rank is significantly worse"
    assert analysis.needed["positional", PLAIN] == Needed(1, None)
    alone = analysis_of(positional_runs(seeds=1))
    assert alone.noise is None
    assert alone.needed == {}
    assert {one.status for one in alone.equivalents} == {"no noise estimate"}
    assert set(comparison_table(alone)["agrees"]) == {"open"}


def test_without_a_vocabulary_series_there_are_no_equivalents() -> None:
    runs = positional_runs()
    analysis = analysis_of(runs[runs["embedding_rank"].isna()])
    assert analysis.equivalents == ()
    assert {name for name, _ in analysis.needed} == {"positional"}


def test_ours_stand_beside_the_published_ranks(analysis: PositionalAnalysis) -> None:
    # the equivalent lies between 32 and 64 of 128: a quarter of full rank is in both
    assert comparison_table(analysis)["agrees"].tolist() == ["yes", "yes"]
    runs = positional_runs()
    runs.loc[runs["positional_rank"] == 1, "test_loss"] -= 0.1  # now between 64 and 128 of 128
    runs.loc[runs["positional_rank"] == 16, "test_loss"] += 0.1
    assert comparison_table(analysis_of(runs))["agrees"].tolist() == ["no", "no"]
