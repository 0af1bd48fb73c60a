"""Losses beside the exact separation rank of their polynomials."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from degree_runs import SEPARABLE, table, tuned_of

from shapelaw.studies.block_degree.ranks import (
    EXACT,
    FLOOR,
    correlations,
    polynomial,
    rank_correlation_table,
    rank_figure,
    rank_losses_table,
    rank_networks,
)
from shapelaw.training.degree_pack import draw_separable, least_errors


def ranked_table(follow: bool) -> pd.DataFrame:
    """Networks of 6 matrices whose losses follow the floor of their exact rank, or are noise around one value."""
    random = np.random.default_rng(2)
    rows = []
    for degrees in ("1.1.1.1.1.1", "1.1.1.1.2", "1.1.1.3", "1.1.2.2", "1.2.3", "2.2.2", "3.3"):
        network = polynomial(tuple(map(int, degrees.split("."))), 4, 8)
        rank = network.rank_bound()
        for target_rank in (32, 64):
            for seed in range(3):
                floor = least_errors(draw_separable(8, target_rank, seed))[min(rank, target_rank)]
                loss = floor + 1e-3 if follow else 0.1
                rows.append(
                    SEPARABLE
                    | {
                        "target_rank": target_rank,
                        "degrees": degrees,
                        "inputs": 8,
                        "width": 4,
                        "learning_rate": 1e-2,
                        "seed": seed,
                        "loss": loss * math.exp(0.05 * random.standard_normal()),
                    }
                )
    return pd.DataFrame(rows)


@pytest.mark.slow
def test_losses_at_the_floor_of_their_rank_correlate_with_it_and_noise_does_not() -> None:
    ranked = rank_networks(tuned_of(ranked_table(follow=True)))
    losses = rank_losses_table(ranked)
    assert dict(zip(losses["network"], losses["rank"], strict=True)) == {
        "degree 1": 2, "degrees 1.1.1.1.2": 6, "degrees 1.1.1.3": 10, "degrees 1.1.2.2": 20,
        "degrees 1.2.3": 50, "degree 2": 105, "degree 3": 140,
    }  # fmt: skip
    assert (losses["status"] == "exact").all()
    above = losses["rank"] >= losses["target_rank"]
    assert (losses.loc[above, "floor"] == 0).all()
    assert losses.loc[~above, "loss"].to_numpy() == pytest.approx(losses.loc[~above, "floor"] + 1e-3, rel=0.1)
    found = correlations(ranked)
    rows = rank_correlation_table(found)
    of_rank = rows[rows["against"] == EXACT]
    assert (of_rank.loc[of_rank["target_rank"].notna(), "verdict"] == "negative").all()
    (row,) = rows[rows["against"] == FLOOR].to_dict("records")
    assert pd.isna(row["target_rank"])
    assert row["verdict"] == "positive"
    assert row["spearman"] > 0.85
    assert len(rank_figure(ranked, found).panels) == 1
    ranked = rank_networks(tuned_of(ranked_table(follow=False)))
    assert set(rank_correlation_table(correlations(ranked))["verdict"]) == {"no significant correlation"}
    losses = rank_losses_table(ranked).set_index(["target_rank", "network"])
    assert losses.loc[(32, "degree 1"), "below_floor"] == 3  # 0.1 of the variance, where rank 2 leaves more


def test_a_rank_that_takes_too_long_is_its_upper_bound() -> None:
    ranked = {one.tuned.name: one for one in rank_networks(tuned_of(table(seeds=1)), seconds=1.0)}
    assert ranked["degree 1"].rank == ranked["degree 1"].upper_bound == 2
    assert ranked["degree 3"].rank is None
    assert ranked["degree 3"].total_degree == 81
    assert ranked["degree 3"].upper_bound > 10**6
    assert math.isnan(ranked["degree 3"].mean_floor)
