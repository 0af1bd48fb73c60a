"""The commands that fit surfaces, transitions and costs to runs, as a user types them."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import output_of, script
from loss_surfaces import grid_of, simulate
from scattered_shapes import Design, draw_shapes, symmetric
from small import LAPTOP

from shapelaw.advice.answer.laws import own_surface
from shapelaw.specs.cost import read_cost_model
from shapelaw.studies.study import REFERENCE

SURFACE, TRANSITIONS = "fit_surface", "fit_transitions"


def scattered(count: int = 20) -> pd.DataFrame:
    shapes, _ = draw_shapes(symmetric, Design(count), 0)
    return pd.DataFrame({"n_layer": shapes.depth, "d_model": shapes.width, "val_loss": shapes.loss})


def fit_in(folder: Path) -> dict[str, object]:
    return dict(json.loads((folder / "fit.json").read_text()))


@pytest.mark.slow
def test_a_public_ladder_has_a_surface_for_each_number_of_tokens_a_parameter(tmp_path: Path) -> None:
    """The 76 runs of Bian et al. 2025, of which equal tokens alone let 8 count.

    Of the 116M group at 20 tokens for each parameter, depths of 3 to 24, eight shapes alone have 11.8 layers as best.
    """
    table = REFERENCE / "bian_morph.csv"
    asked = ("--size", "total", "--sizes", "118M,800M", "--draws", 200, "--out", "out")
    said = output_of(SURFACE, table, *asked, cwd=tmp_path)
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


def test_what_two_depths_can_t_tell_is_said_once_with_its_reason(tmp_path: Path) -> None:
    """Before, no two depths had four shapes each, though both had six."""
    depth, width = (np.ravel(one) for one in np.meshgrid([1, 2], [16, 20, 24, 32, 40, 48]))
    runs = pd.DataFrame({"layers": depth, "d_model": width, "loss": 4.0 - 0.1 * np.log(depth * width**2)})
    runs.to_csv(tmp_path / "runs.csv", index=False)
    said = output_of(SURFACE, "runs.csv", "--out", "out", cwd=tmp_path)
    assert "No table overtaking; figure penalty: not identifiable: the shapes have fewer than three" in said
    assert "four shapes" not in said


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


def test_shapes_that_lie_anywhere_have_no_curves_of_equal_depth(tmp_path: Path) -> None:
    scattered(8).to_csv(tmp_path / "runs.csv", sep=";", index=False)
    done = output_of(TRANSITIONS, "--runs", "runs.csv", "--out", "out", "--draws", 100, cwd=tmp_path)
    (said,) = [line for line in done.splitlines() if "shapelaw fit" in line]
    assert said.startswith("No two depths have four sizes in common")
    assert "too few sizes" not in done


@pytest.mark.slow
def test_a_model_of_costs_is_one_that_plan_reads(tmp_path: Path) -> None:
    said = output_of("fit_cost", "--runs", LAPTOP, "--out", "cost.json", cwd=tmp_path)
    assert "46 runs took 10.4 hours" in said
    assert read_cost_model(tmp_path / "cost.json").factor > 1
    assert len(pd.read_csv(tmp_path / "cost.csv")) == 46
    refused = script("fit_cost", "--runs", LAPTOP, "--out", "cost.txt", cwd=tmp_path)
    assert (refused.returncode, "must end in .json" in refused.stderr) == (2, True)
