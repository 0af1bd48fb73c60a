"""The tables of a grid, and the axes of a command line."""

import argparse
import math
from pathlib import Path

import numpy as np
import pytest
from grid_runs import AXES, grid_runs

from shapelaw.fits.curves import TransitionStatus
from shapelaw.report.charts import Chart
from shapelaw.studies.grid import results, tables
from shapelaw.studies.grid.analysis import analyse_grid
from shapelaw.studies.grid.results import effect_words
from shapelaw.studies.grid.tables import NO_RATIO, ratio_of
from shapelaw.studies.transitions.analysis import Options
from shapelaw.studies.transitions.figures import layers_text


def test_a_mean_over_settings_has_the_error_that_its_settings_show() -> None:
    """Cells that are off by 0.1 nats each, at a noise of 0.001: single pairs claim much, and means nothing."""
    runs = grid_runs(vocab_sizes=(257,), seeds=2, noise=0.001)
    cells = runs.groupby(["heads", "embedding_rank"], dropna=False).ngroup()
    off = 0.1 * np.random.default_rng(1).standard_normal(6)[cells]
    runs = runs.assign(test_loss=runs["test_loss"] + off, bits_per_byte=runs["bits_per_byte"] + off)
    effects = tables.effects_table(analyse_grid(runs, "x", Options(draws=200), AXES))
    found = effects[(effects["axis"] == "embedding_rank") & (effects["quantity"] == tables.DIFFERENCE)]
    single, (mean,) = found[found["settings"] == 1], found[found["settings"] == 3].to_dict("records")
    assert mean["err"] == pytest.approx(single["value"].std() / math.sqrt(3))
    assert mean["high"] - mean["value"] == pytest.approx(
        4.302653 * mean["err"]
    )  # t with two degrees of freedom
    assert (single["p"] < 1e-6).all()
    assert mean["p"] > 0.01


def test_a_batch_that_coincides_with_a_cell_is_told_beside_its_effect() -> None:
    runs = grid_runs(heads=(1, 2), ranks=(None,), vocab_sizes=(257,), seeds=2, noise=0.01)
    whole = runs.assign(date=np.where(runs["heads"] == 2, "2026-11-27 10:00", "2026-11-26"))
    told = tables.effects_table(analyse_grid(whole, "x", Options(draws=200), ("heads",)))
    effect, ratio = told.to_dict("records")
    assert ratio["caution"] == ""
    assert effect["caution"] == "date coincides with the difference"
    assert "; date coincides with the difference)" in effect_words(effect)
    without_noise = {**effect, "value": -0.25, "low": -0.25, "high": -0.25}  # seeds with equal losses
    assert "the loss falls by 0.25 nats per token (95%: 0.25 to 0.25;" in effect_words(without_noise)
    spread = runs.assign(date=np.where(runs["seed"] == 1, "2026-11-27", "2026-11-26"))
    silent = tables.effects_table(analyse_grid(spread, "x", Options(draws=200), ("heads",)))
    assert set(silent["caution"]) == {""}


@pytest.mark.parametrize(
    ("above", "best"),
    [
        ({1: 0.0, 2: 0.1, 4: 0.2}, {1}),  # at large sizes deeper networks alone were trained
        ({1: 0.0, 2: 0.5, 4: 0.4}, {1}),  # 4 layers beat 2 where a single layer doesn't reach
        ({1: 0.4, 2: 0.2, 4: 0.0}, {4}),  # at small sizes shallower ones alone
        ({1: 0.0}, set()),
    ],
)
def test_no_depth_is_the_best_of_a_size_that_a_better_one_does_not_reach(
    above: dict[int, float], best: set[int]
) -> None:
    runs = grid_runs(
        depths=[*above], widths=(16, 20, 24, 28, 32, 40), heads=(1,), ranks=(8,), vocab_sizes=(257,)
    )
    runs["test_loss"] += runs["depth"].map(above)
    analysis = analyse_grid(runs, "x", Options(draws=200))
    table = tables.best_shapes_table(analysis)
    assert {*table.loc[table["standing"] == "best", "depth"]} == best
    assert "0 of 0" not in tables.read_best_shapes(table).to_string()
    figure = results.best_depth_figure(analysis)
    marks = figure.panels[0].marks if isinstance(figure, Chart) else []
    assert {mark.label for mark in marks} - {"best cell"} == {layers_text(depth) for depth in best}


def test_gaps_are_in_the_unit_in_which_the_cells_compare() -> None:
    """A deeper layer costs 0.05 bits per byte with either vocabulary, and 0.09 nats per token with 500."""
    runs = grid_runs(heads=(1,), ranks=(None,), seeds=2, noise=1e-6)
    gaps = results.present(analyse_grid(runs, "x", Options(draws=200), AXES)).tables["gaps"]
    name = "loss difference, deeper minus shallower (bits per byte)"
    assert gaps.read(gaps.frame)[name].tolist() == pytest.approx([0.05] * 4, abs=1e-5)
    assert "negative where the deeper one is better" in gaps.caption
    alone = runs.drop(columns="bits_per_byte")
    gaps = results.present(analyse_grid(alone, "x", Options(draws=200), AXES)).tables["gaps"]
    assert {*gaps.frame["unit"]} == {"nats per token"}


def test_missing_bits_and_sizes_are_said() -> None:
    runs = grid_runs(heads=(1,), ranks=(None,)).drop(columns="bits_per_byte")
    effects = tables.effects_table(analyse_grid(runs, "x", Options(draws=200), ("vocab_size",)))
    assert effects["status"].tolist()[0] == tables.NO_BITS
    far = grid_runs(heads=(1,), vocab_sizes=(257,))
    far = far[(far["embedding_rank"].notna()) == (far["width"] == 16)]
    effects = tables.effects_table(analyse_grid(far, "x", Options(draws=200), ("embedding_rank",)))
    assert effects["status"].tolist()[0] == tables.NO_SIZES


def transition(width: float, err: float, status: str = TransitionStatus.CROSSING.value) -> dict[str, object]:
    return {"status": status, "width": width, "width_err": err}


def test_a_ratio_has_the_errors_of_both_and_a_bound_has_none() -> None:
    found = ratio_of(transition(100, 3), transition(200, 8))
    assert found["ratio"] == pytest.approx(2.0)
    assert math.log(found["ratio_high"] / found["ratio"]) == pytest.approx(0.05)  # 3% and 4%
    assert found["p_equal"] < 1e-10
    assert ratio_of(transition(100, 3), transition(105, 4.2))["p_equal"] == pytest.approx(0.33, abs=0.01)
    bound = ratio_of(transition(100, 3), transition(math.nan, math.nan, "no crossing"))
    assert bound["status"] == NO_RATIO
    assert math.isnan(bound["ratio"])


ONE_CELL = {"heads": (1,), "ranks": (8,), "vocab_sizes": (257,)}


def test_a_table_of_runs_is_analysed_by_the_axes_of_a_command_line(tmp_path: Path) -> None:
    grid_runs(**ONE_CELL).to_parquet(tmp_path / "runs.parquet")
    parser = argparse.ArgumentParser()
    results.add_options(parser)
    words = parser.parse_args(["--draws", "200", "--axes", "depth", *AXES])
    found = results.results(argparse.Namespace(input=tmp_path / "runs.parquet", keep=False, **vars(words)))
    assert found.fit["cells"][0]["runs"] == 6
