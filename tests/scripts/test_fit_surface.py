"""The stand-alone command, as a user runs it."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import run_here
from scattered_shapes import Design, draw_shapes, symmetric

REPOSITORY = Path(__file__).resolve().parents[2]
SCRIPT = REPOSITORY / "scripts" / "fit_surface.py"
LAPTOP = REPOSITORY / "docs" / "results" / "laptop_depth_width.parquet"


def command(*arguments, cwd):
    return run_here(SCRIPT, *arguments, cwd=cwd)


def scattered(count=20):
    shapes, _ = draw_shapes(symmetric, Design(count), 0)
    return pd.DataFrame({"n_layer": shapes.depth, "d_model": shapes.width, "val_loss": shapes.loss})


def test_our_laptop_runs_cross_where_the_curves_of_equal_depth_do(tmp_path):
    """fit_transitions.py has 137.3 ± 5.0."""
    done = command("--runs", LAPTOP, "--out", "out", "--draws", 500, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    crossing = pd.read_csv(tmp_path / "out" / "overtaking.csv").set_index("depth").loc[1]
    assert crossing["width"] == pytest.approx(137.3, abs=5.0)
    assert crossing["width_low"] < 137.3 < crossing["width_high"]


@pytest.mark.slow
def test_several_token_budgets_are_one_surface_each(tmp_path):
    table = scattered()
    several = [
        table.assign(tokens=tokens, val_loss=table["val_loss"] - 0.1 * np.log(tokens))
        for tokens in (1e9, 1e10)
    ]
    pd.concat(several).to_csv(tmp_path / "runs.csv", sep="\t", index=False)
    done = command("--runs", "runs.csv", "--out", "out", "--draws", 200, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "2 token budgets, one surface each." in done.stdout
    for name, tokens in (("tokens-1e09", 1e9), ("tokens-1e10", 1e10)):
        fit = json.loads((tmp_path / "out" / name / "fit.json").read_text())
        assert (fit["status"], fit["tokens"]) == ("converged", tokens)


def test_shapes_on_one_line_are_not_identifiable_and_no_failure(tmp_path):
    depth = np.array([2, 3, 4, 6, 8, 12, 16, 24])
    pd.DataFrame({"layers": depth, "d_model": 16 * depth, "loss": 4.0 - 0.1 * np.log(depth)}).to_json(
        tmp_path / "runs.jsonl", orient="records", lines=True
    )
    done = command("--runs", "runs.jsonl", "--out", "out", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "No surface: not identifiable. All shapes lie on one line" in done.stdout
    assert json.loads((tmp_path / "out" / "fit.json").read_text())["status"] == "not identifiable"
    assert not (tmp_path / "out" / "penalty.svg").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--runs", "runs.csv", "--sizes=-3e8"], "--sizes has -3e+08; a size is a number above zero"),
        (["--runs", "runs.csv", "--sizes", "none"], "--sizes has 'none'; write numbers"),
        (["--runs", "runs.csv", "--size-axis", "total"], "runs.csv lacks total_params"),
        (["--runs", "wrong.csv"], "wrong.csv, lines 2 to 21: n_layer must be a finite number"),
        (["--runs", "mixed.csv"], "mixed.csv has mixed token budgets: 20 of them"),
    ],
)
def test_wrong_input_is_one_sentence(tmp_path, arguments, words):
    table = scattered()
    table.to_csv(tmp_path / "runs.csv", index=False)
    table.astype({"n_layer": object}).assign(n_layer="deep").to_csv(tmp_path / "wrong.csv", index=False)
    order = np.random.default_rng(0).permutation(20)
    table.assign(tokens=np.geomspace(1e9, 1e11, 20)[order]).to_csv(tmp_path / "mixed.csv", index=False)
    done = command(*arguments, "--out", "out", cwd=tmp_path)
    assert done.returncode == 2
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "out").exists()
