"""The tables of a grid: what of it fails takes nothing else with it, and of odd grids nothing fails."""

import json
import math
from collections.abc import Callable
from itertools import chain, product, repeat
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from commands import not_drawn, script, sentence_of
from grid_runs import AXES, grid_runs

from shapelaw.errors import UserError
from shapelaw.fits.curves import TransitionStatus
from shapelaw.report.charts import Chart
from shapelaw.report.write import Results, check_declared, show_results, write_results
from shapelaw.studies.grid import analysis, results, tables
from shapelaw.studies.grid.analysis import analyse_grid
from shapelaw.studies.grid.results import effect_words
from shapelaw.studies.grid.study import FIGURES, TABLES
from shapelaw.studies.grid.tables import NO_RATIO, ratio_of
from shapelaw.studies.transitions import analysis as transitions
from shapelaw.studies.transitions.analysis import Options
from shapelaw.studies.transitions.figures import layers_text

HOSTILE_AXES = ("vocab_size", "embedding_rank", "heads")
DEPTHS = (1, 2, 3, 4, 6, 8, 12, 24)
BYTES = {257: 1.0, 500: 1.8, 1000: 2.3}  # bytes of a token


def hostile_grid(number: int) -> pd.DataFrame:
    """The runs of the grid of a number: its axes, shapes, seeds, losses and columns are all drawn.

    Among them are grids of one depth, width or seed, with gaps, of losses that are equal, constant, rise with the
    size, lie on a line, or are of a very small or large scale, and of several vocabularies without bits per byte.
    """
    rng = np.random.default_rng([60, number])
    depths = rng.choice(DEPTHS, rng.choice([1, 2, 3, 4, 5]), replace=False)
    some = rng.choice([1, 2, 4, 5, 6, 8])
    widths = 8 * np.unique(np.geomspace(rng.integers(1, 5), rng.integers(6, 60), some).round().astype(int))
    vocabularies = rng.choice([*BYTES], rng.choice([1, 1, 2, 3]), replace=False)
    ranks = rng.choice([0, 8], rng.choice([1, 2]), replace=False)
    heads = rng.choice([1, 2, 4], rng.choice([1, 2, 3]), replace=False)
    repeats = int(rng.choice([1, 1, 2, 3]))  # seeds of some shapes
    repeated = rng.choice([0.2, 1.0])
    rows = []
    for depth, width, vocab, rank, head in product(depths, widths, vocabularies, ranks, heads):
        seeds = repeats if rng.random() < repeated else 1
        rows += [(depth, width, vocab, rank, head, seed) for seed in range(seeds)]
    runs = pd.DataFrame(rows, columns=["depth", "width", "vocab_size", "embedding_rank", "heads", "seed"])
    if rng.random() < 0.3:  # gaps
        runs = runs[rng.random(len(runs)) < rng.uniform(0.4, 0.95)] if len(runs) > 3 else runs
    if runs.empty:
        runs = pd.DataFrame(rows[:1], columns=runs.columns)
    most = int(rng.choice([12, 24, 60], p=[0.5, 0.4, 0.1]))  # rows, so that many grids take little time
    if len(runs) > most:
        runs = runs.sample(most, random_state=number)
    runs = runs.reset_index(drop=True)
    block = 12.0 * runs["depth"] * runs["width"] ** 2
    rank = runs["embedding_rank"].where(runs["embedding_rank"] > 0)
    runs = runs.assign(
        embedding_rank=rank.astype("Int64"),
        attention_dim=runs["width"] // runs["heads"],
        block_params=block.astype(int),
        test_loss=_losses(runs, np.log(block.to_numpy()), rng),
        steps=100,
        learning_rate=0.002,
    )
    if rng.random() < 0.7:
        total = runs["block_params"] + runs["width"] * rank.fillna(runs["vocab_size"])
        runs = runs.assign(total_params=total.astype(int), step_flops=6.0 * 1024 * total)
    bits = runs["test_loss"] / runs["vocab_size"].map(BYTES)
    if (kind := rng.random()) < 0.6:
        runs = runs.assign(bits_per_byte=bits)
    elif kind < 0.8:  # some have none
        runs = runs.assign(bits_per_byte=bits.where(runs["vocab_size"] != vocabularies[0]))
    return runs


def _losses(runs: pd.DataFrame, log_size: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Losses of a kind that is drawn, each cell a little apart, with a noise and at a scale that are drawn too."""
    x, depth = log_size - 10.0, np.log(runs["depth"].to_numpy(dtype=np.float64))
    kinds = (
        lambda: 3.0 + np.exp(-0.3 * x),  # as they are
        lambda: 3.0 + np.exp(-0.3 * x) + 0.1 * (depth - 0.3 * x) ** 2,  # a best depth
        lambda: 3.0 + np.exp(-0.3 * x) + 0.05 * np.abs(depth - 0.2 * x),  # with a corner
        lambda: 4.0 - 0.05 * x - 0.02 * depth * x,  # depths that cross
        lambda: 4.0 + 0.0 * x,  # constant
        lambda: 4.0 + 0.1 * x,  # the larger the worse
        lambda: 4.0 - 0.1 * x,  # a line
        lambda: 4.0 + 0.5 * depth,  # depth alone
        lambda: 2.0 + rng.random(len(x)),  # nothing
        lambda: 4.0 - 1e-9 * x,  # nearly constant
        lambda: 1e-3 + np.exp(-2.0 * x - 2.0 * x.max()),  # many powers of ten
        lambda: np.round(3.0 + np.exp(-0.3 * x), 1),  # ties
    )
    loss = kinds[rng.integers(len(kinds))]()
    apart = runs.groupby(list(HOSTILE_AXES), dropna=False).ngroup().to_numpy() * rng.choice([0.0, 0.01, 0.3])
    noise = rng.choice([0.0, 1e-9, 1e-3, 0.05, 0.5], p=[0.1, 0.1, 0.5, 0.2, 0.1])
    if rng.random() < 0.15:  # seeds that changed nothing, of one vocabulary
        noise = np.where(runs["vocab_size"] == runs["vocab_size"].iloc[0], 0.0, noise)
    loss = loss + apart + noise * rng.standard_normal(len(x))
    if rng.random() < 0.15:  # a run that went wrong
        loss[rng.integers(len(x))] += rng.choice([-1.0, 0.5, 5.0])
    return np.maximum(loss, 1e-6) * rng.choice([1.0, 1.0, 1.0, 1e-9, 1e9])


FAULT = Path(__file__).parents[2] / "faults" / "grid_without_plausible_form.parquet"
SEEDS = "The repeated seeds of the runs have exactly equal losses, so they measure no noise."
INJECTED = "ValueError: injected"
EFFECTS = "it needs table effects, which failed"


def presented(runs: pd.DataFrame, axes: tuple[str, ...] = AXES, draws: int = 100) -> Results:
    return results.present(analysis.analyse_grid(runs, "x", Options(draws=draws), axes))


def effects_of(runs: pd.DataFrame, *axes: str) -> pd.DataFrame:
    return tables.effects_table(analyse_grid(runs, "x", Options(draws=200), axes))


# of the first hundred those from 62 on take no branch that the others don't
@pytest.mark.parametrize("numbers", [range(8), pytest.param(range(8, 62), marks=pytest.mark.slow)])
@pd.option_context("mode.string_storage", "python")  # as scripts/analyse.py has it
def test_no_part_of_any_grid_fails(numbers: range, tmp_path: Path) -> None:
    """But for seeds that changed nothing, of all vocabularies or of one."""
    for number in numbers:
        found = presented_unless_seeds_are_equal(hostile_grid(number))
        if found is None:
            continue
        check_declared(found, TABLES, FIGURES)
        if number % 25 == 0:
            write_results(found, tmp_path, "grid")
        assert {why for why in found.parts.failed.values() if not why.startswith(SEEDS)} == set(), number


def presented_unless_seeds_are_equal(runs: pd.DataFrame) -> Results | None:
    try:
        return presented(runs, HOSTILE_AXES)
    except UserError as error:
        if str(error).startswith(SEEDS):
            return None
        raise


def injected(*_: Any, **__: Any) -> Any:
    raise ValueError("injected")


class Undrawable(Chart):
    figure = injected


def failing_once(module: Any, name: str) -> Callable[..., Any]:
    """A function of a module that fails when it is called first: of the grid below, for one head."""
    calls = chain([injected], repeat(getattr(module, name)))
    return lambda *given, **more: next(calls)(*given, **more)


@pytest.mark.parametrize(
    ("where", "name", "failing", "failed"),
    [
        (results, "losses_figure", injected, {"figure losses": INJECTED}),
        (results, "best_depth_figure", lambda _: Undrawable([]), {"figure best_depth": INJECTED}),
        (results, "_cell_sentences", injected, {"sentences on the cells": INJECTED}),
        (
            tables,
            "numbers_of",
            injected,
            dict.fromkeys((f"table {name}" for name in tables.EFFECTS), INJECTED)
            | dict.fromkeys(("figure effects", "sentences on the effects", "answer"), EFFECTS),
        ),
        (tables, "mean_losses_of", None, {"table losses, H = 1": INJECTED}),
        (analysis, "checked_runs", None, {"H = 1": INJECTED}),
        (transitions, "bootstrap_crossing", None, {"H = 1, depth 1 against 2": INJECTED}),
    ],
)
def test_what_fails_is_named_and_the_rest_is_there(
    where: Any, name: str, failing: Any | None, failed: dict[str, str], monkeypatch, tmp_path: Path, capsys
) -> None:
    runs = grid_runs((1, 2, 4), heads=(1, 2), ranks=(None,), vocab_sizes=(257,), seeds=2, noise=0.001)
    monkeypatch.setattr(where, name, failing or failing_once(where, name))
    monkeypatch.setattr("shapelaw.report.write.save_figure", not_drawn)  # which would take half of the time
    found = presented(runs)
    check_declared(found, TABLES, FIGURES)
    show_results(found, tmp_path, "grid")
    fit = json.loads((tmp_path / "fit.json").read_text())
    assert fit["failed"] == [{"part": part, "reason": why} for part, why in failed.items()]
    told = capsys.readouterr()
    assert told.err.count("Traceback") == list(failed.values()).count(INJECTED)
    for part, why in failed.items():
        assert f"Failed: {part}: {why}.\n" in told.out
    names = {f"{table}.{ending}" for table in TABLES for ending in ("csv", "html")}
    names |= {f"{figure}.{ending}" for figure in FIGURES for ending in ("svg", "png")}
    assert {path.name for path in tmp_path.iterdir()} == names | {"fit.json", "tables.md", "tables.tex"}
    for table in TABLES:
        rows = pd.read_csv(tmp_path / f"{table}.csv")
        assert ("failed" in rows) == (f"table {table}" in failed), table
    heads = set(pd.read_csv(tmp_path / "losses.csv")["heads"])
    assert heads == ({2} if {"H = 1", "table losses, H = 1"} & {*failed} else {1, 2})


def test_seeds_that_change_nothing_take_the_noise_of_their_vocabulary_alone() -> None:
    runs = grid_runs(heads=(1,), ranks=(None,), seeds=2, noise=0.01)
    first = runs.groupby(["depth", "width", "vocab_size"])["test_loss"].transform("first")
    found = presented(runs.assign(test_loss=runs["test_loss"].where(runs["vocab_size"] == 257, first)))
    assert found.parts.failed.keys() == {"seed noise of V = 500"}
    assert found.parts.failed["seed noise of V = 500"].startswith(SEEDS)
    assert set(found.tables["losses"].frame["vocab_size"]) == {257, 500}
    with pytest.raises(UserError, match=SEEDS):
        presented(runs.assign(test_loss=first))


@pytest.mark.slow
def test_a_grid_with_a_form_that_is_not_plausible_has_all_its_tables(tmp_path: Path) -> None:
    given = ("--axes", *HOSTILE_AXES, "--input", FAULT, "--out", "out", "--draws", 200)
    done = script("analyse", "shape", *given, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "failed" not in json.loads((tmp_path / "out" / "fit.json").read_text())
    rows = {table: len(pd.read_csv(tmp_path / "out" / f"{table}.csv")) for table in TABLES}
    # three depths have two transitions at most, of which no line is projected
    assert {table for table, number in rows.items() if not number} == {"projection"}


def test_a_mean_over_settings_has_the_error_that_its_settings_show() -> None:
    """Cells that are off by 0.1 nats each, at a noise of 0.001: single pairs claim much, and means nothing."""
    runs = grid_runs(vocab_sizes=(257,), seeds=2, noise=0.001)
    cells = runs.groupby(["heads", "embedding_rank"], dropna=False).ngroup()
    off = 0.1 * np.random.default_rng(1).standard_normal(6)[cells]
    runs = runs.assign(test_loss=runs["test_loss"] + off, bits_per_byte=runs["bits_per_byte"] + off)
    effects = effects_of(runs, *AXES)
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
    told = effects_of(whole, "heads")
    effect, ratio = told.to_dict("records")
    assert ratio["caution"] == ""
    assert effect["caution"] == "date coincides with the difference"
    assert "; date coincides with the difference)" in effect_words(effect)
    without_noise = {**effect, "value": -0.25, "low": -0.25, "high": -0.25}  # seeds with equal losses
    assert "the loss falls by 0.25 nats per token (95%: 0.25 to 0.25;" in effect_words(without_noise)
    spread = runs.assign(date=np.where(runs["seed"] == 1, "2026-11-27", "2026-11-26"))
    silent = effects_of(spread, "heads")
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
    gaps = presented(runs).tables["gaps"]
    name = "loss difference, deeper minus shallower (bits per byte)"
    assert gaps.read(gaps.frame)[name].tolist() == pytest.approx([0.05] * 4, abs=1e-5)
    assert "negative where the deeper one is better" in gaps.caption
    alone = runs.drop(columns="bits_per_byte")
    gaps = presented(alone).tables["gaps"]
    assert {*gaps.frame["unit"]} == {"nats per token"}


def test_missing_bits_and_sizes_are_said() -> None:
    runs = grid_runs(heads=(1,), ranks=(None,)).drop(columns="bits_per_byte")
    effects = effects_of(runs, "vocab_size")
    assert effects["status"].tolist()[0] == tables.NO_BITS
    far = grid_runs(heads=(1,), vocab_sizes=(257,))
    far = far[(far["embedding_rank"].notna()) == (far["width"] == 16)]
    effects = effects_of(far, "embedding_rank")
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


def test_the_axes_of_a_command_line_are_those_of_the_analysis(tmp_path: Path) -> None:
    grid_runs(heads=(1,), ranks=(8,), vocab_sizes=(257,)).to_parquet(tmp_path / "runs.parquet")
    asked = ("mine", "--input", "runs.parquet", "--axes", "rate", "--out", "out")
    assert "no column rate, which is listed as an axis" in sentence_of("analyse", *asked, cwd=tmp_path)
