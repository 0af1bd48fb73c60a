"""Each degree at its own learning rate, its difference from degree 3 on each target, and over several at once."""

import math

import numpy as np
import pandas as pd
import pytest
from degree_runs import separable, table, tuned_of

from shapelaw.errors import UserError
from shapelaw.studies.block_degree.analysis import (
    ALL_SEEDS,
    OTHER_SEEDS,
    check_runs,
    differences,
    pooled,
    pooled_table,
)


def test_a_rate_that_not_every_seed_has_is_not_chosen() -> None:
    runs = table(seeds=3)
    (one, *_) = tuned_of(runs[(runs["seed"] > 0) | (runs["learning_rate"] != 1e-2)])
    assert set(one.learning_rates.values()) <= {1e-3, 3e-3}
    with pytest.raises(UserError, match="no learning rate was tried with every seed"):
        tuned_of(runs[runs["learning_rate"] == runs["seed"].map({0: 1e-3, 1: 3e-3, 2: 1e-2})])


def test_a_diverged_run_is_counted_its_rate_not_chosen_and_its_degree_not_compared() -> None:
    """What is left of a degree's seeds is not what the other degree is compared on."""
    runs = table()
    runs.loc[
        (runs["learning_rate"] == 3e-3) & (runs["degrees"].str.startswith("3")) & (runs["seed"] == 0), "loss"
    ] = None
    runs.loc[(runs["degrees"] == "2.2.2.2.2.2") & (runs["seed"] == 0), "loss"] = math.nan
    tuned = tuned_of(runs)
    (one,) = (one for one in tuned if (one.task.target_rank, one.name) == (2, "degree 3"))
    assert all(rate != 3e-3 for seed, rate in one.learning_rates.items() if seed)
    assert math.isinf(one.losses[0])
    assert len(one.log_losses) == 4
    verdicts = {one.verdict for one in differences(tuned) if one.tuned.name == "degree 2"}
    assert verdicts == {"degree 2 diverged on 1 seeds, degree 3 diverged on 1 seeds"}


RATES = (3e-3, 1e-2, 3e-2, 1e-1)
RANKS = (4, 16, 64)


def simulated(
    random: np.random.Generator, ratio: float, bend: tuple[float, float] = (0.3, 0.3), width: int = 32
) -> pd.DataFrame:
    """Runs of degrees 2 and 3 on three targets, four seeds: log losses share a part that is the target's of a seed.

    `bend` is how fast the log loss of each degree rises with the distance from its best rate.
    """
    seeds, places = 4, np.arange(len(RATES)) - 1.5
    rows = []
    for rank in RANKS:
        shared = 0.2 * random.standard_normal(seeds)
        for degrees, mean, curve, best in (
            ("2.2.2", math.log(ratio), bend[0], -0.5),
            ("3.3", 0.0, bend[1], 0.5),
        ):
            logs_SR = shared[:, None] + mean + curve * (places - best) ** 2  # (seeds, rates)
            logs_SR = logs_SR + 0.15 * random.standard_normal(logs_SR.shape)
            rows += [
                (rank, degrees, rate, seed, math.exp(logs_SR[seed, place]))
                for seed in range(seeds)
                for place, rate in enumerate(RATES)
            ]
    return check_runs(separable(rows).assign(width=width), "simulated runs")


@pytest.mark.slow
def test_an_interval_holds_the_truth_and_equal_degrees_are_seldom_told_apart() -> None:
    """80 draws, a width each, half of equal degrees, half of a ratio of 1.3: 95%, within four standard errors."""
    random = np.random.default_rng(7)
    ratios = {100 + draw: 1.0 if draw % 2 else 1.3 for draw in range(80)}
    runs = pd.concat([simulated(random, ratio, width=width) for width, ratio in ratios.items()])
    rows = pooled_table(pooled(runs))
    truth = rows["width"].map(ratios)
    rows = rows.assign(
        truth=truth, held=rows["low95"].lt(truth) & rows["high95"].gt(truth), told=rows["p_value"] < 0.05
    )
    for _, mine in rows.groupby("rates_chosen_on"):
        assert mine["held"].mean() > 0.95 - 4 * math.sqrt(0.95 * 0.05 / 80)
        assert mine.loc[mine["truth"] == 1, "told"].mean() < 0.05 + 4 * math.sqrt(0.95 * 0.05 / 40)
        assert mine.loc[mine["truth"] > 1, "told"].mean() > 0.5


@pytest.mark.slow
def test_a_rate_chosen_on_all_seeds_flatters_the_degree_that_does_not_care_about_its_rate() -> None:
    """One of the two has four equal rates to choose from, and the best of them looks 7% better by luck.

    Rates that the other seeds choose have no such bias.
    """
    random = np.random.default_rng(8)
    runs = pd.concat([simulated(random, 1.0, (0.0, 0.3), 100 + draw) for draw in range(50)])
    rows = pooled_table(pooled(runs))
    means = np.log(rows["ratio"]).groupby(rows["rates_chosen_on"]).mean()
    assert -0.12 < means[ALL_SEEDS] < -0.03
    assert abs(means[OTHER_SEEDS]) < 0.05


def test_nothing_is_pooled_where_a_run_diverged() -> None:
    runs = simulated(np.random.default_rng(3), 1.3)
    two = (runs["degrees"] == "2.2.2") & (runs["target_rank"] == 16) & (runs["seed"] == 0)
    assert pooled(runs.assign(loss=runs["loss"].mask(two, math.inf))) == []


def test_blocks_are_compared_with_degree_3_of_their_own() -> None:
    ours, noted = (
        table(seeds=3),
        table(seeds=3).assign(activation="relu", residual=False, heads=1, accuracy=0.9),
    )
    noted["loss"] *= noted["degrees"].map(lambda layers: 3.0 if layers.startswith("2") else 2.0)
    runs = pd.concat([ours, noted.assign(normalization="batch")])
    tuned = tuned_of(runs)
    assert {one.task.block for one in tuned} == {"", "ReLU, no residual, batch norm"}
    ratio = {
        (one.tuned.task.block, one.tuned.task.target_rank, one.tuned.name): one.log_ratio.value
        for one in differences(tuned)
    }
    for rank in (2, 8):
        twice = ratio["ReLU, no residual, batch norm", rank, "degree 2"] - ratio["", rank, "degree 2"]
        assert twice == pytest.approx(math.log(1.5))
    found = pooled_table(pooled(check_runs(runs, "runs")))
    assert set(found["block"]) == {"", "ReLU, no residual, batch norm"}
    assert {one.at_end["accuracy"] for one in tuned if one.task.block} == {0.9}


def test_a_mixer_is_compared_with_degree_3_and_is_no_degree_of_its_own() -> None:
    products = table(seeds=3)
    mixers = products[products["degrees"].str.startswith("2")].assign(degrees="2.2.2.2", mixer_tokens=4)
    halved = mixers.assign(loss=mixers["loss"] * 0.5)
    runs = pd.concat([products, halved, mixers.assign(mixer_tokens=2)])
    found = pooled_table(pooled(check_runs(runs, "runs"))).set_index(
        ["network", "rates_chosen_on", "targets"]
    )
    of_mixer, other, of_degree = (
        found.loc[name] for name in ("Mixer of 4 tokens", "Mixer of 2 tokens", "degree 2")
    )
    np.testing.assert_allclose(of_mixer["ratio"], of_degree["ratio"] / 2)
    np.testing.assert_allclose(other["ratio"], of_degree["ratio"])
    assert of_mixer["p_value_holm"].isna().all()
    assert of_degree["p_value_holm"].notna().all()
