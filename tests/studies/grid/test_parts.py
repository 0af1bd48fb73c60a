"""What of a grid fails takes nothing else with it; and of grids as odd as they come nothing fails."""

import json
from collections.abc import Callable
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from commands import script
from grid_runs import AXES, grid_runs
from hostile_grids import AXES as HOSTILE_AXES
from hostile_grids import hostile_grid

from shapelaw.errors import UserError
from shapelaw.report.charts import Chart
from shapelaw.report.write import Results, check_declared, show_results, write_results
from shapelaw.studies.grid import analysis, results, tables
from shapelaw.studies.grid.study import FIGURES, TABLES
from shapelaw.studies.transitions import analysis as transitions
from shapelaw.studies.transitions.analysis import Options

FAULT = Path(__file__).parents[2] / "faults" / "grid_without_plausible_form.parquet"
SEEDS = "The repeated seeds of the runs have exactly equal losses, so they measure no noise."
INJECTED = "ValueError: injected"
EFFECTS = "it needs table effects, which failed"


def presented(runs: pd.DataFrame, axes: tuple[str, ...] = AXES, draws: int = 100) -> Results:
    return results.present(analysis.analyse_grid(runs, "x", Options(draws=draws), axes))


@pytest.mark.parametrize("numbers", [range(8), pytest.param(range(8, 200), marks=pytest.mark.slow)])
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


def test_a_cell_that_cannot_be_used_takes_no_other_away() -> None:
    runs = grid_runs(heads=(1,), ranks=(None,))
    wrong = runs.assign(test_loss=runs["test_loss"].where(runs["vocab_size"] == 257, -1))
    found = presented(wrong)
    ((part, why),) = found.parts.failed.items()
    assert part == "V = 500"
    assert "x (V = 500), row 2, row 4" in why
    assert why.endswith("test_loss must be above zero; row 2 has -1.0.")
    assert set(found.tables["losses"].frame["depth"]) == {1, 2}


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
