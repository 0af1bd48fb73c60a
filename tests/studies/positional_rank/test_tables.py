"""The tables of the study of the positional embedding's rank."""

import pandas as pd
from positional_runs import POSITIONAL, VOCABULARY, positional_runs

from shapelaw.studies.positional_rank.analysis import PositionalAnalysis, analyse_runs, check_positional_runs
from shapelaw.studies.positional_rank.tables import (
    comparison_table,
    equivalents_table,
    losses_table,
    needed_table,
)


def analysis_of(runs: pd.DataFrame) -> PositionalAnalysis:
    return analyse_runs(check_positional_runs(runs, "runs.csv"))


def test_costs_have_intervals_but_that_of_plain_embeddings() -> None:
    table = losses_table(analysis_of(positional_runs()))
    assert table["series"].tolist()[0] == "plain"
    assert table.loc[0, ["rank", "cost", "cost_low", "cost_high"]].isna().all()
    others = table.iloc[1:]
    assert len(others) == len(POSITIONAL) + len(VOCABULARY)
    assert (others["cost_low"] < others["cost"]).all()
    assert (others["cost"] < others["cost_high"]).all()


def test_the_cost_that_would_not_be_seen_is_said() -> None:
    table = needed_table(analysis_of(positional_runs())).set_index(["series", "against"])
    plain = table.loc[("positional", "plain")]
    assert (plain["enough"], plain["too_small"]) == (8, 4)
    assert 0.002 < plain["unseen"] < 0.006
    factored = table.loc[("vocabulary", "factored at full rank")]
    assert pd.isna(factored["enough"])
    assert pd.isna(factored["unseen"])


def test_ours_stand_beside_the_published_ranks() -> None:
    runs = positional_runs()
    needed, equal = comparison_table(analysis_of(runs)).to_dict("records")
    assert (needed["ours"], needed["low"], needed["agrees"]) == (8, 4, "yes")
    assert needed["setting"] == "full rank 128, against factored at full rank"
    assert equal["published"] == "64 to 128 of 512"
    assert equal["agrees"] == "yes"  # between 32 and 64 of 128: a quarter of full rank is in both
    runs.loc[runs["positional_rank"] == 1, "test_loss"] -= 0.1  # now between 64 and 128 of 128
    assert comparison_table(analysis_of(runs)).iloc[1]["agrees"] == "no"
    runs.loc[runs["positional_rank"] == 16, "test_loss"] += 0.1
    assert comparison_table(analysis_of(runs)).iloc[0]["agrees"] == "no"
    hidden = comparison_table(analysis_of(positional_runs(noise=0.4)))
    assert hidden.iloc[0]["status"] == "no rank is significantly worse"
    assert set(comparison_table(analysis_of(positional_runs(seeds=1)))["agrees"]) == {"open"}


def test_each_positional_rank_has_an_equivalent() -> None:
    table = equivalents_table(analysis_of(positional_runs()))
    assert table["positional_rank"].tolist() == list(POSITIONAL)
    assert (table["low"] <= table["high"]).all()
    assert table.loc[0, "over_full"] == table.loc[0, "vocabulary_rank"] / 128
