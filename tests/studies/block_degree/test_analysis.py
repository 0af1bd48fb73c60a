"""Each degree at its own learning rate, and its difference from degree 3."""

from __future__ import annotations

import math

import numpy as np
import pytest
from degree_runs import table

from shapelaw.errors import UserError
from shapelaw.studies.block_degree.analysis import check_runs, differences, tune


@pytest.mark.slow
def test_no_loss_that_is_reported_chose_its_own_rate() -> None:
    """With pure noise the best of three rates would look better than it is; a rate chosen on other seeds does not."""
    random = np.random.default_rng(1)
    biases = []
    for _ in range(60):
        runs = table(seeds=4)
        runs["loss"] = np.exp(random.standard_normal(len(runs)) * 0.5)
        biases += [one.log_loss.value for one in tune(check_runs(runs, "runs"))]
    assert np.mean(biases) == pytest.approx(0, abs=4 * np.std(biases) / math.sqrt(len(biases)))


def test_nothing_is_said_of_a_degree_that_diverged_on_some_seed() -> None:
    """What is left of its seeds is not what the other degree is compared on."""
    runs = table(seeds=4)
    runs.loc[(runs["degrees"] == "2.2.2.2.2.2") & (runs["seed"] == 0), "loss"] = math.nan
    found = differences(tune(check_runs(runs, "runs")))
    verdicts = {one.verdict for one in found if one.tuned.name == "degree 2"}
    assert verdicts == {"degree 2 diverged on 1 seeds"}


def test_a_rate_that_not_every_seed_has_is_not_chosen() -> None:
    runs = table(seeds=3)
    (one, *_) = tune(check_runs(runs[(runs["seed"] > 0) | (runs["learning_rate"] != 1e-2)], "runs"))
    assert set(one.learning_rates.values()) <= {1e-3, 3e-3}
    with pytest.raises(UserError, match="no learning rate was tried with every seed"):
        tune(check_runs(runs[runs["learning_rate"] == runs["seed"].map({0: 1e-3, 1: 3e-3, 2: 1e-2})], "runs"))


def test_a_diverged_run_is_counted_and_its_rate_not_chosen() -> None:
    runs = table()
    runs.loc[
        (runs["learning_rate"] == 3e-3) & (runs["degrees"].str.startswith("3")) & (runs["seed"] == 0), "loss"
    ] = None
    tuned = {(one.task.target_rank, one.name): one for one in tune(check_runs(runs, "runs"))}
    one = tuned[2, "degree 3"]
    assert all(rate != 3e-3 for seed, rate in one.learning_rates.items() if seed)
    assert math.isinf(one.losses[0])
    assert len(one.log_losses) == 4


def test_a_run_that_is_not_done_is_refused() -> None:
    runs = table().assign(diverged_at_step=math.nan)
    runs.loc[3, "loss"] = math.nan
    with pytest.raises(UserError, match="no loss and has not diverged"):
        check_runs(runs, "runs")
    runs.loc[3, "diverged_at_step"] = 500
    check_runs(runs, "runs")


def test_a_table_that_lacks_columns_is_told() -> None:
    with pytest.raises(UserError, match="lacks learning_rate"):
        check_runs(table().drop(columns="learning_rate"), "runs.csv")
    with pytest.raises(UserError, match="no runs"):
        check_runs(table().iloc[:0], "runs.csv")
    wrong = table()
    wrong.loc[3, "loss"] = 0.0
    with pytest.raises(UserError, match="not above 0, in row 3"):
        check_runs(wrong, "runs.csv")
