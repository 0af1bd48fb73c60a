"""The commands that fit surfaces, transitions and costs to runs, as a user types them."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import output_of, script, sentence_of
from loss_surfaces import grid_of, simulate
from scattered_shapes import Design, draw_shapes, symmetric
from small import REPOSITORY

from shapelaw.advice.answer.laws import own_surface
from shapelaw.specs.cost import read_cost_model
from shapelaw.studies.study import REFERENCE

LAPTOP = REPOSITORY / "docs" / "results" / "laptop_depth_width.parquet"
SURFACE, TRANSITIONS = "fit_surface", "fit_transitions"


def scattered(count: int = 20) -> pd.DataFrame:
    shapes, _ = draw_shapes(symmetric, Design(count), 0)
    return pd.DataFrame({"n_layer": shapes.depth, "d_model": shapes.width, "val_loss": shapes.loss})


def fit_in(folder: Path) -> dict[str, object]:
    return dict(json.loads((folder / "fit.json").read_text()))


def test_our_laptop_runs_cross_where_the_curves_of_equal_depth_do(tmp_path: Path) -> None:
    """fit_transitions.py has 137.3 ± 5.0."""
    output_of(SURFACE, "--runs", LAPTOP, "--out", "out", "--draws", 200, cwd=tmp_path)
    crossing = pd.read_csv(tmp_path / "out" / "overtaking.csv").set_index("depth").loc[1]
    assert crossing["width"] == pytest.approx(137.3, abs=5.0)
    assert crossing["width_low"] < 137.3 < crossing["width_high"]


@pytest.mark.slow
def test_a_public_ladder_has_a_surface_for_each_number_of_tokens_a_parameter(tmp_path: Path) -> None:
    """The 76 runs of Bian et al. 2025, of which equal tokens alone let 8 count.

    Of the 116M group at 20 tokens for each parameter, depths of 3 to 24, eight shapes alone have 11.8 layers as best.
    """
    table = REFERENCE / "bian_morph.csv"
    said = output_of(
        SURFACE,
        table,
        "--size",
        "total",
        "--sizes",
        "118M,800M",
        "--draws",
        200,
        "--out",
        "out",
        cwd=tmp_path,
    )
    assert "3 token budgets, one surface each." in said
    assert "left out" not in said
    fits = [fit_in(tmp_path / "out" / f"tokens-{ratio}-per-parameter") for ratio in (20.1, 40.5, 161)]
    assert [fit["shapes"] for fit in fits] == [35, 23, 18]
    assert all(
        float(str(fit["left_out"])) < most for fit, most in zip(fits, (0.009, 0.004, 0.003), strict=True)
    )
    best = [
        pd.read_csv(tmp_path / "out" / f"tokens-{ratio}-per-parameter" / "best_depth.csv")
        for ratio in (20.1, 40.5)
    ]
    first, second = (table[table["model"] == "average"].set_index("total_params") for table in best)
    assert first["depth_low"][1.18e8] - 0.5 < 11.8 < first["depth_high"][1.18e8] + 0.5
    assert 13.0 < second["depth"][1.18e8] < 20.0  # more tokens, deeper
    assert first["status"][8e8].startswith("at a bound: deeper")  # the largest shapes are too shallow to tell
    again = own_surface(str(tmp_path / "out" / "tokens-20.1-per-parameter")).surface
    assert again.left_out == pytest.approx(float(str(fits[0]["left_out"])), rel=0.01)


def test_shapes_on_one_line_are_not_identifiable_and_no_failure(tmp_path: Path) -> None:
    depth = np.array([2, 3, 4, 6, 8, 12, 16, 24])
    runs = pd.DataFrame({"layers": depth, "d_model": 16 * depth, "loss": 4.0 - 0.1 * np.log(depth)})
    runs.to_json(tmp_path / "runs.jsonl", orient="records", lines=True)
    said = output_of(SURFACE, "--runs", "runs.jsonl", "--out", "out", cwd=tmp_path)
    assert "No surface: not identifiable. All shapes lie on one line" in said
    assert fit_in(tmp_path / "out")["status"] == "not identifiable"
    assert not (tmp_path / "out" / "penalty.svg").exists()


@pytest.mark.slow
@pytest.mark.parametrize("command", [SURFACE, TRANSITIONS])
def test_several_token_budgets_are_one_fit_each(command: str, tmp_path: Path) -> None:
    runs = scattered() if command == SURFACE else simulate(grid_of((2, 4), 6e4, 6e6, 5), {2: 50.0})
    loss = runs.columns[-1] if command == SURFACE else "test_loss"
    several = [
        runs.assign(**{"tokens": tokens, loss: runs[loss] - 0.1 * np.log(tokens)}) for tokens in (1e9, 2e9)
    ]
    pd.concat(several).to_csv(tmp_path / "runs.csv", sep="\t", index=False)
    said = output_of(command, "--runs", "runs.csv", "--out", "out", "--draws", 100, cwd=tmp_path)
    assert ("2 token budgets, one surface each." in said) is (command == SURFACE)
    assert ("\nEvery run saw 2e+09 tokens:" in said) is (command == TRANSITIONS)
    for name, tokens in (("tokens-1e09", 1e9), ("tokens-2e09", 2e9)):
        assert fit_in(tmp_path / "out" / name).get("tokens", tokens) == tokens


def test_published_transitions(tmp_path: Path) -> None:
    said = output_of(TRANSITIONS, "--transitions", "published", "--out", "out", cwd=tmp_path)
    fit = fit_in(tmp_path / "out")
    assert fit["status"] == "converged"
    assert fit["a"] == pytest.approx(5.0397, abs=5e-5)
    assert fit["cov_ab"] == pytest.approx(-3.742e-5, abs=5e-9)
    assert {"a_err", "b", "b_err", "cov_aa", "cov_bb", "chi2_reduced", "r_squared", "dof"} <= set(fit)
    projection = pd.read_csv(tmp_path / "out" / "projection.csv")
    assert {"params", "depth", "width", "width_err"} <= set(projection.columns)
    for figure in ("transition_width", "transition_size", "extrapolation"):
        assert all((tmp_path / "out" / f"{figure}.{ending}").is_file() for ending in ("svg", "png"))
    assert "b = 0.05550 ± 0.00132" in said


@pytest.mark.slow
def test_runs_in_bits_per_byte_and_back_in_as_transitions(tmp_path: Path) -> None:
    true = {4: 85.0, 6: 104.0, 8: 128.0, 10: 156.0}
    runs = simulate(grid_of((4, 6, 8, 10, 12), 6e4, 6e6, 8), true, noise=0.0008)
    runs = runs.rename(columns={"test_loss": "bits_per_byte"}).sample(frac=1, random_state=0)
    runs.to_parquet(tmp_path / "r.parquet")
    given = ("--runs", "r.parquet", "--loss", "bits_per_byte", "--draws", 100)
    output_of(TRANSITIONS, *given, "--out", "out", cwd=tmp_path)
    table = pd.read_csv(tmp_path / "out" / "transitions.csv")
    found = table[(table["method"] == "bootstrap") & (table["status"] == "crossing")]
    assert len(found) >= 3
    assert ((found["width"] - found["depth"].map(true)).abs() < 3 * found["width_err"]).all()
    output_of(TRANSITIONS, "--transitions", "out/transitions.csv", "--out", "again", cwd=tmp_path)
    fits = [fit_in(tmp_path / folder) for folder in ("out", "again")]
    for fit in fits:
        del fit["findings"]  # of runs they say more than of transitions
    assert fits[0] == fits[1]


def test_costs_are_in_the_unit_of_the_loss_and_depths_the_same_in_each(tmp_path: Path) -> None:
    """Before, 0.005 counted in bits where losses were bits, under the name of nats, so that other depths were flat."""
    runs = scattered()
    runs.assign(bpb=runs["val_loss"] / np.log(2.0)).to_csv(tmp_path / "runs.csv", index=False)
    nats = output_of(SURFACE, "runs.csv", "--loss", "val_loss", "--out", "nats", "--draws", 100, cwd=tmp_path)
    bits = output_of(SURFACE, "runs.csv", "--loss", "bpb", "--out", "bits", "--draws", 100, cwd=tmp_path)
    assert "below 0.005 nats" in nats
    assert "below 0.0072 bits" in bits
    assert "nats" not in bits
    flat = [pd.read_csv(tmp_path / unit / "costs.csv") for unit in ("nats", "bits")]
    assert flat[0][["depth", "is"]].equals(flat[1][["depth", "is"]])
    surfaces = [own_surface(str(tmp_path / unit)).surface for unit in ("nats", "bits")]
    np.testing.assert_allclose(surfaces[1].shapes.loss, surfaces[0].shapes.loss, rtol=1e-9)


@pytest.mark.slow
def test_no_fit_is_no_failure_and_is_said(tmp_path: Path) -> None:
    simulate(grid_of((1, 2, 4), 6e4, 6e6, 5), {1: 50.0, 2: 60.0}, seeds=1).to_csv(tmp_path / "runs.csv")
    said = output_of(TRANSITIONS, "--runs", "runs.csv", "--out", "out", cwd=tmp_path)
    assert "no fit is possible, too few points" in said
    assert "give --noise" in said
    fit = fit_in(tmp_path / "out")
    assert (fit["status"], fit["a"]) == ("too few points", None)
    assert pd.read_csv(tmp_path / "out" / "projection.csv")["width"].isna().all()


def test_shapes_that_lie_anywhere_have_no_curves_of_equal_depth(tmp_path: Path) -> None:
    scattered(8).to_csv(tmp_path / "runs.csv", sep=";", index=False)
    done = output_of(TRANSITIONS, "--runs", "runs.csv", "--out", "out", "--draws", 100, cwd=tmp_path)
    (said,) = [line for line in done.splitlines() if "shapelaw fit" in line]
    assert said.startswith("No two depths have four sizes in common")
    assert "too few sizes" not in done


@pytest.mark.parametrize(
    ("command", "arguments", "words"),
    [
        (SURFACE, "--runs runs.csv --sizes=-3e8", "--sizes has -3e+08; a size is a number above zero"),
        (SURFACE, "--runs runs.csv --sizes none", "--sizes has 'none'; write numbers"),
        (SURFACE, "--runs runs.csv --size-axis total", "runs.csv lacks total_params"),
        (SURFACE, "--runs wrong.csv", "wrong.csv, lines 2 to 21: n_layer must be a finite number"),
        (SURFACE, "--runs mixed.csv", "mixed.csv has mixed token budgets: 20 of them"),
        (TRANSITIONS, "--runs absent.csv", "There is no file absent.csv."),
        (TRANSITIONS, "--runs t.csv", "t.csv lacks loss (loss is usually test_loss, val_loss"),
        (TRANSITIONS, "--transitions bad.csv", "bad.csv, row 2: width must be above zero; it is -308."),
        (TRANSITIONS, "--transitions t.csv --noise -1", "The noise is -1.0"),
        (TRANSITIONS, "--transitions t.csv --draws 5", "5 bootstrap draws are too few"),
    ],
)
def test_wrong_input_is_one_sentence(tmp_path: Path, command: str, arguments: str, words: str) -> None:
    table = scattered()
    table.to_csv(tmp_path / "runs.csv", index=False)
    table.astype({"n_layer": object}).assign(n_layer="deep").to_csv(tmp_path / "wrong.csv", index=False)
    order = np.random.default_rng(0).permutation(20)
    table.assign(tokens=np.geomspace(1e9, 1e11, 20)[order]).to_csv(tmp_path / "mixed.csv", index=False)
    (tmp_path / "t.csv").write_text("depth,width,width_err\n6,214,6\n12,308,12\n")
    (tmp_path / "bad.csv").write_text("depth,width,width_err\n6,214,6\n12,-308,12\n")
    assert words in sentence_of(command, *arguments.split(), "--out", "out", cwd=tmp_path)
    assert not (tmp_path / "out").exists()


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    said = sentence_of(TRANSITIONS, "--transitions", "published", "--out", "file/out", cwd=tmp_path)
    assert "can't be written" in said


@pytest.mark.slow
def test_a_model_of_costs_is_one_that_plan_reads(tmp_path: Path) -> None:
    said = output_of("fit_cost", "--runs", LAPTOP, "--out", "cost.json", cwd=tmp_path)
    assert "46 runs took 10.4 hours" in said
    assert read_cost_model(tmp_path / "cost.json").factor > 1
    assert len(pd.read_csv(tmp_path / "cost.csv")) == 46
    refused = script("fit_cost", "--runs", LAPTOP, "--out", "cost.txt", cwd=tmp_path)
    assert (refused.returncode, "must end in .json" in refused.stderr) == (2, True)
