"""The tables of the degree study: what is empty, and why."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from degree_runs import table, tuned_of

from shapelaw.studies.block_degree.analysis import check_runs, tune
from shapelaw.studies.block_degree.tables import losses_table, mixtures_table, speed_table


def test_one_seed_is_no_comparison() -> None:
    runs = table(seeds=1)
    found = tune(check_runs(runs, "runs"))
    assert losses_table(found)["low95"].isna().all()


def test_a_mixture_is_where_its_seeds_that_did_not_diverge_are() -> None:
    runs = table(seeds=4)
    mixed = runs[runs["degrees"] == "3.3.3.3"].assign(mixture="True", mean_degree=2.5 + 0.1 * runs["seed"])
    mixed.loc[mixed["seed"] == 0, ["loss", "mean_degree"]] = math.nan
    rows = mixtures_table(tuned_of(pd.concat([runs, mixed])))
    assert list(rows["seeds"]) == [3, 3]
    assert list(rows["mean_degree"]) == pytest.approx([2.7, 2.7])


def test_steps_before_the_first_evaluation_are_not_known() -> None:
    runs = table(seeds=3).assign(evaluate_every=10)
    first = (runs["degrees"] == "3.3.3.3") & (runs["seed"] == 1)
    runs.loc[first, "steps_to_0.5"] = 10.0
    speed = speed_table(tuned_of(runs)).set_index(["target_rank", "network", "threshold"])
    three, two = speed.loc[(8, "degree 3", 0.5)], speed.loc[(8, "degree 2", 0.5)]
    assert (three["reached"], three["at_once"]) == (3, 1)
    assert math.isnan(three["steps_to_it"])
    assert (two["reached"], two["at_once"]) == (3, 0)
    assert two["steps_to_it_low95"] < two["steps_to_it"] < two["steps_to_it_high95"]
    assert math.isnan(two["ratio"])
