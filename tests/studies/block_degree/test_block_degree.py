"""The degree study on tables whose truth is known."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from shapelaw.errors import UserError
from shapelaw.report.write import write_results
from shapelaw.studies.block_degree import figures
from shapelaw.studies.block_degree.analysis import Tuned, check_runs, differences, tune
from shapelaw.studies.block_degree.ranks import EXACT, FLOOR, polynomial, rank_networks
from shapelaw.studies.block_degree.results import analyse, present, summary
from shapelaw.studies.block_degree.tables import losses_table, mixtures_table, speed_table
from shapelaw.training.targets import draw_separable, least_errors

TRUE_LOSS = {1: 0.4, 2: 0.25, 3: 0.1, 4: 0.1}
BEST_RATE = {1: 1e-2, 2: 3e-3, 3: 3e-3, 4: 1e-3}


def table(seeds: int = 5, noise: float = 0.05) -> pd.DataFrame:
    """Runs of degrees 1 to 4: degree 3 and 4 equally good, each degree with its own best rate."""
    random = np.random.default_rng(0)
    rows = []
    for rank in (2, 8):
        for degree, loss in TRUE_LOSS.items():
            for rate in (1e-3, 3e-3, 1e-2):
                off = abs(math.log(rate / BEST_RATE[degree]))
                for seed in range(seeds):
                    value = loss * rank**0.3 * math.exp(0.5 * off + noise * random.standard_normal())
                    rows.append(
                        {
                            "target": "separable",
                            "target_rank": rank,
                            "degrees": ".".join([str(degree)] * (12 // degree)),
                            "mixture": "False",
                            "inputs": 16,
                            "width": 32,
                            "steps": 1000,
                            "learning_rate": rate,
                            "seed": seed,
                            "loss": value,
                            "steps_to_0.5": 100.0 * value,
                            "steps_to_0.2": 500.0 * value if value < 0.2 else None,
                        }
                    )
    return pd.DataFrame(rows)


def test_every_degree_gets_its_best_rate_and_the_truth_is_found(tmp_path: Path) -> None:
    table().to_csv(tmp_path / "runs.csv", index=False)
    found = analyse(tmp_path / "runs.csv")
    write_results(present(found), tmp_path / "out", "study")
    verdicts = {(one.tuned.task.target_rank, one.tuned.name): one.verdict for one in found.differences}
    for rank in (2, 8):
        assert verdicts[rank, "degree 1"] == verdicts[rank, "degree 2"] == "worse"
        assert verdicts[rank, "degree 4"] == "no significant difference"
    losses = pd.read_csv(tmp_path / "out" / "losses.csv").set_index(["target_rank", "network"])
    for degree, loss in TRUE_LOSS.items():
        row = losses.loc[(2, f"degree {degree}")]
        assert row["learning_rate"] == BEST_RATE[degree]
        assert row["low95"] < row["loss"] < row["high95"]
        assert row["loss"] == pytest.approx(loss * 2**0.3, rel=0.1)
        assert row["rates_at_edge"] == (5 if degree in (1, 4) else 0)
    speed = pd.read_csv(tmp_path / "out" / "speed.csv").set_index(["target_rank", "network", "threshold"])
    assert (2, "degree 1", 0.2) not in speed.index
    three, one = speed.loc[(2, "degree 3", 0.2)], speed.loc[(2, "degree 1", 0.5)]
    assert three["reached"] == three["seeds"] == 5
    assert three["steps_to_it"] == pytest.approx(500 * TRUE_LOSS[3] * 2**0.3, rel=0.1)
    assert three["steps_to_it_low95"] < three["steps_to_it"] < three["steps_to_it_high95"]
    assert math.isnan(three["ratio"])
    assert one["ratio_low95"] < TRUE_LOSS[1] / TRUE_LOSS[3] < one["ratio_high95"]
    fit = json.loads((tmp_path / "out" / "fit.json").read_text())
    assert fit["status"] == "converged"
    assert len(fit["differences"]) == 6
    assert "degree 1 against 3: loss times" in summary(found)
    for figure in ("losses", "differences", "speed", "mixtures", "rank"):
        assert (tmp_path / "out" / f"{figure}.svg").stat().st_size > 1000


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


def test_one_seed_is_no_comparison() -> None:
    runs = table(seeds=1)
    found = tune(check_runs(runs, "runs"))
    assert losses_table(found)["low95"].isna().all()


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


def test_a_network_that_diverges_at_every_rate_is_in_the_tables(tmp_path: Path) -> None:
    runs = table()
    runs.loc[runs["degrees"] == "2.2.2.2.2.2", "loss"] = None
    runs.to_csv(tmp_path / "runs.csv", index=False)
    analysis = analyse(tmp_path / "runs.csv")
    write_results(present(analysis), tmp_path / "out", "study")
    losses = pd.read_csv(tmp_path / "out" / "losses.csv").set_index(["target_rank", "network"])
    assert losses.loc[(2, "degree 2"), "diverged"] == runs["seed"].nunique()
    assert math.isnan(losses.loc[(2, "degree 2"), "loss"])
    assert "degree 2" not in {one.tuned.name for one in analysis.differences}


def test_a_run_that_is_not_done_is_refused() -> None:
    runs = table().assign(diverged_at_step=math.nan)
    runs.loc[3, "loss"] = math.nan
    with pytest.raises(UserError, match="no loss and has not diverged"):
        check_runs(runs, "runs")
    runs.loc[3, "diverged_at_step"] = 500
    check_runs(runs, "runs")


def test_a_mixture_is_compared_with_e(tmp_path: Path) -> None:
    runs = table()
    mixed = runs[runs["degrees"] == "3.3.3.3"].copy()
    mixed["mixture"] = "True"
    mixed["mean_degree"] = 2.5 + 0.01 * mixed["seed"]
    high = mixed.assign(initial_share=0.9, mean_degree=math.e + 0.01 * (mixed["seed"] - 2))
    pd.concat([runs, mixed, high]).to_csv(tmp_path / "runs.csv", index=False)
    write_results(present(analyse(tmp_path / "runs.csv")), tmp_path / "out", "study")
    mixtures = pd.read_csv(tmp_path / "out" / "mixtures.csv").set_index(["target_rank", "network"])
    half, begun = mixtures.loc[(2, "mixture of 2 and 3")], mixtures.loc[(2, "mixture of 2 and 3, from 2.9")]
    assert [half["begins_at"], begun["begins_at"]] == [2.5, 2.9]
    assert half["mean_degree"] == pytest.approx(2.52)
    assert begun["mean_degree"] == pytest.approx(math.e)
    assert half["p_value_of_e"] < 1e-3
    assert begun["p_value_of_e"] > 0.9
    figure = figures.mixtures_figure(tuned_of(pd.concat([runs, mixed, high])))
    assert legend(figure) == {"R = 2", "R = 8"}
    drawn = [tuple(bars.lines[0].get_xdata()) for bars in figure.axes[0].containers]
    assert drawn == [pytest.approx((2.4925, 2.8925)), pytest.approx((2.5075, 2.9075))]


def tuned_of(runs: pd.DataFrame) -> list[Tuned]:
    """Checked and tuned."""
    return tune(check_runs(runs, "runs"))


def legend(figure: Figure) -> set[str]:
    """Its labels."""
    (found,) = figure.legends
    return {text.get_text() for text in found.get_texts()}


def digits(width: int) -> pd.DataFrame:
    """Runs on digits, at the rates of `table`."""
    runs = table(seeds=3)
    return runs[runs["target_rank"] == 2].assign(target="digits", target_rank=0, inputs=64, width=width)


def test_figures_draw_the_widest_networks_and_mixtures_that_begin_half_way() -> None:
    runs = pd.concat([table(seeds=3), table(seeds=3).assign(width=16), digits(16), digits(32)])
    mixed = runs[runs["degrees"] == "3.3.3.3"].assign(mixture="True", initial_share=0.9)
    tuned = tuned_of(pd.concat([runs, mixed]))
    figure = figures.losses_figure(tuned)
    degrees = {f"degree {degree}" for degree in TRUE_LOSS}
    assert legend(figure) == degrees
    separable, images = figure.axes
    assert len(separable.containers) == len(images.containers) == 4
    assert [tick.get_text() for tick in separable.get_xticklabels()] == ["2", "8"]
    wide = {
        one.name: math.exp(one.log_loss.value)
        for one in tuned
        if one.task.target == "digits" and one.task.width == 32
    }
    drawn = [container.lines[0].get_ydata()[0] for container in images.containers]
    assert drawn == pytest.approx([wide[name] for name in sorted(degrees)])


def test_no_ratio_is_drawn_to_a_network_that_diverged_or_in_a_panel_without_one() -> None:
    runs = table(seeds=3)
    runs.loc[(runs["degrees"] == "3.3.3.3") & (runs["target_rank"] == 8) & (runs["seed"] == 0), "loss"] = (
        math.nan
    )
    separable, images = figures.differences_figure(differences(tuned_of(runs))).axes
    assert [tick.get_text() for tick in separable.get_xticklabels()] == ["2"]
    assert not images.lines
    assert len(separable.containers) == 3


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


def test_a_table_that_lacks_columns_is_told() -> None:
    with pytest.raises(UserError, match="lacks learning_rate"):
        check_runs(table().drop(columns="learning_rate"), "runs.csv")
    with pytest.raises(UserError, match="no runs"):
        check_runs(table().iloc[:0], "runs.csv")
    wrong = table()
    wrong.loc[3, "loss"] = 0.0
    with pytest.raises(UserError, match="not above 0, in row 3"):
        check_runs(wrong, "runs.csv")


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
                    {
                        "target": "separable",
                        "target_rank": target_rank,
                        "degrees": degrees,
                        "mixture": "False",
                        "inputs": 8,
                        "width": 4,
                        "steps": 1000,
                        "learning_rate": 1e-2,
                        "seed": seed,
                        "loss": loss * math.exp(0.05 * random.standard_normal()),
                    }
                )
    return pd.DataFrame(rows)


def test_losses_at_the_floor_of_their_rank_correlate_with_it(tmp_path: Path) -> None:
    ranked_table(follow=True).to_csv(tmp_path / "runs.csv", index=False)
    found = analyse(tmp_path / "runs.csv")
    write_results(present(found), tmp_path / "out", "study")
    losses = pd.read_csv(tmp_path / "out" / "rank_losses.csv")
    assert dict(zip(losses["network"], losses["rank"], strict=True)) == {
        "degree 1": 2, "degrees 1.1.1.1.2": 6, "degrees 1.1.1.3": 10, "degrees 1.1.2.2": 20,
        "degrees 1.2.3": 50, "degree 2": 105, "degree 3": 140,
    }  # fmt: skip
    assert (losses["status"] == "exact").all()
    above = losses["rank"] >= losses["target_rank"]
    assert (losses.loc[above, "floor"] == 0).all()
    assert losses.loc[~above, "loss"].to_numpy() == pytest.approx(losses.loc[~above, "floor"] + 1e-3, rel=0.1)
    table = pd.read_csv(tmp_path / "out" / "rank_correlation.csv")
    of_rank = table[table["against"] == EXACT]
    assert (of_rank.loc[of_rank["target_rank"].notna(), "verdict"] == "negative").all()
    (row,) = table[table["against"] == FLOOR].to_dict("records")
    assert math.isnan(row["target_rank"])
    assert row["verdict"] == "positive"
    assert row["spearman"] > 0.85
    assert "all R: rank correlation of loss and floor" in summary(found)
    assert (tmp_path / "out" / "rank.svg").stat().st_size > 1000


def test_losses_that_ignore_the_rank_do_not_correlate(tmp_path: Path) -> None:
    ranked_table(follow=False).to_csv(tmp_path / "runs.csv", index=False)
    write_results(present(analyse(tmp_path / "runs.csv")), tmp_path / "out", "study")
    table = pd.read_csv(tmp_path / "out" / "rank_correlation.csv")
    assert set(table["verdict"]) == {"not told from 0"}
    losses = pd.read_csv(tmp_path / "out" / "rank_losses.csv").set_index(["target_rank", "network"])
    assert losses.loc[(32, "degree 1"), "below_floor"] == 3  # 0.1 of the variance, where rank 2 leaves more


def test_a_rank_that_takes_too_long_is_its_upper_bound() -> None:
    tuned = tune(check_runs(table(seeds=1), "runs"))
    ranked = {one.tuned.name: one for one in rank_networks(tuned, seconds=1.0)}
    assert ranked["degree 1"].rank == ranked["degree 1"].upper_bound == 2
    assert ranked["degree 3"].rank is None
    assert ranked["degree 3"].total_degree == 81
    assert ranked["degree 3"].upper_bound > 10**6
    assert math.isnan(ranked["degree 3"].mean_floor)
