"""The memorization studies from their keys to runs, from a table of runs to files, and which heads are saturated."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import output_of
from memorizing_networks import BEND, HEAD_COUNTS, HEAD_DIMS, save_weights, simulate, study_of, weights
from shipped import SCALES, shipped
from small import REPOSITORY

from shapelaw.campaign.config import load_config, runs_of
from shapelaw.errors import UserError
from shapelaw.fits.capacity import Capacity, CapacityStatus
from shapelaw.fits.memorized import check_memorization_runs
from shapelaw.specs.kinds import spec_from_dict
from shapelaw.specs.memorizers import MemorizationRun
from shapelaw.studies.memorization import analysis as tables
from shapelaw.studies.memorization import saturation
from shapelaw.studies.memorization.analysis import (
    ALONG_HEAD_DIM,
    ALONG_HEADS,
    comparison_table,
)
from shapelaw.studies.memorization.results import _heads, saturated_titles


def test_the_command_reads_the_least_table(tmp_path):
    least = ["heads", "context", "head_dim", "examples", "seed", "accuracy"]
    runs = simulate(HEAD_COUNTS, examples=(20000,))[least]
    runs.sample(frac=1, random_state=0).to_parquet(tmp_path / "runs.parquet")
    assert BEND in output_of("analyse", ALONG_HEADS, "--input", "runs.parquet", "--out", "out", cwd=tmp_path)
    assert json.loads((tmp_path / "out" / "fit.json").read_text())["study"] == ALONG_HEADS


def test_another_table_is_refused(tmp_path: Path) -> None:
    columns = [name for name in saturation.RELU_COLUMNS if name not in ("relu_units", "relu")]
    pd.DataFrame([dict.fromkeys(columns, 0)]).to_csv(tmp_path / "relu.csv", index=False)
    with pytest.raises(UserError, match=r"has no relu_units, relu; make it again: rm "):
        saturation.relu_results(tmp_path / "relu.csv")


def test_a_gain_beyond_the_context_is_found():
    runs = simulate((30,), head_dim=HEAD_DIMS, examples=(20000,), noise=0.005)
    runs["accuracy"] += 0.002 * (runs["head_dim"] - 32).clip(lower=0)
    (one,) = study_of(runs, ALONG_HEAD_DIM).curves
    assert one.gain.p_value < 1e-3
    assert one.gain.gain == pytest.approx(0.002 * (64 - 35), abs=3 * one.gain.gain_err)
    two = runs[runs["head_dim"].isin([10, 15, 20, 25, 30, 40, 64])]
    (short,) = study_of(two, ALONG_HEAD_DIM).curves
    assert short.gain.n_points == 2
    assert short.gain.gain == pytest.approx(0.002 * 24, abs=3 * short.gain.gain_err)


def test_no_curve_is_a_sentence():
    with pytest.raises(UserError, match="differ in head_dim at the same H, n, T"):
        study_of(simulate(HEAD_COUNTS), ALONG_HEAD_DIM)


def test_six_times_as_many_steps_do_not_straighten_the_curve():
    """Committed runs at 50,000 and 300,000 steps, H = 5 to 20: the numbers of docs/results/memorization.md."""
    runs = pd.read_csv(REPOSITORY / "docs/results/memorization_curvature.csv")
    rows = [growth_of(runs[(runs["steps"] == steps) & (runs["heads"] <= 20)]) for steps in (50_000, 300_000)]
    for column, expected in {
        "exponent": [1.431, 1.438],
        "exponent_err": [0.042, 0.052],
        "information_exponent": [0.980, 0.962],
        "information_exponent_err": [0.027, 0.043],
        "information_curvature_p": [0.667, 0.348],
        "linear_p": [0.041, 0.271],
    }.items():
        assert [row[column] for row in rows] == pytest.approx(expected, abs=1e-3), column


def growth_of(runs):
    """The row of one curve, with the p-value of its line."""
    study = study_of(runs, ALONG_HEADS)
    (growth,) = tables.growth_table(study).to_dict("records")
    return growth | {"linear_p": tables.TABLES["linear_part"].frame(study)["curvature_p"].item()}


def test_a_curve_that_bends_does_not_agree():
    runs = simulate(HEAD_COUNTS, examples=(40000,), noise=0.002)
    runs["accuracy"] = 0.85 * (1 - np.exp(-runs["heads"] / 8)) + 0.001 * runs["seed"]
    analysis = study_of(runs, ALONG_HEADS)
    comparison = comparison_table(analysis).set_index("quantity")
    assert comparison.loc[BEND, "agrees"] == "no"
    assert "more slowly than a line" in comparison.loc[BEND, "note"]


FOUND, AT_LEAST, BELOW = CapacityStatus.FOUND, CapacityStatus.AT_LEAST, CapacityStatus.BELOW


def size(heads: float, status: CapacityStatus) -> Capacity:
    return Capacity(heads, heads, heads, heads, heads, status)


def test_heads_are_named_for_each_number_of_examples_and_bounds_are_bounds() -> None:
    needed = [
        (400, size(8, AT_LEAST)),
        (100, size(1, BELOW)),
        (200, size(5.9, FOUND)),
        (600, size(8, AT_LEAST)),
    ]
    assert _heads(needed) == "at most 1 heads for T = 100, 6 for 200, more than 8 for 400 and 600"


def test_the_share_of_examples_with_an_unsaturated_head_is_named_from_where_it_stays_high() -> None:
    free = [0.95, 0.5, 0.97, 0.93]
    rows = pd.DataFrame(
        {"heads": [1, 2, 4, 8], "saturated_share": [0.9, 0.8, 0.6, 0.35], "examples_with_free_head": free}
    )
    assert saturated_titles(rows) == (
        "35% to 90% of the heads are saturated",
        "From 4 heads on at least 93%\nof the examples have an unsaturated head",
    )
    low = rows.assign(examples_with_free_head=0.4)
    assert saturated_titles(low)[1] == "40% to 40% of the examples have an unsaturated head"


def test_a_grids_last_batch_wins_over_the_sections() -> None:
    grids = [
        {"heads": [2], "head_dim": [8], "examples": [300]},
        {"heads": [4], "head_dim": [8], "examples": [300], "last_batch": "filled"},
    ]
    config = load_config(shipped(memorization={"last_batch": "short"}, memorization_heads=grids), SCALES)
    runs = runs_of(config, "memorization_heads", REPOSITORY).values()
    assert [run.last_batch for run in runs if isinstance(run, MemorizationRun)] == ["short", "filled"]
    assert all(spec_from_dict(run.to_dict()) == run for run in runs)


def checked(*rows):
    """(heads, T, seed, accuracy)."""
    table = pd.DataFrame(rows, columns=["heads", "examples", "seed", "accuracy"])
    return check_memorization_runs(table.assign(context=32, head_dim=64), "runs.csv")


def test_agreement_with_the_published_sizes():
    def verdicts(*rows):
        found = saturation.analyse_saturation(checked(*rows), None)
        return saturation.comparison_table(found)["agrees"].tolist()

    assert verdicts((4, 550, 0, 1.0), (4, 600, 0, 0.9)) == ["yes"]
    assert verdicts((4, 300, 0, 1.0), (4, 350, 0, 0.9)) == ["no"]
    assert verdicts((4, 300, 0, 1.0)) == ["open"]
    assert verdicts((4, 300, 0, 0.9)) == ["no"]
    assert verdicts((5, 300, 0, 0.9)) == ["open"]


def test_the_threshold_is_above_099(tmp_path):
    above = np.nextafter(np.float32(0.99), np.float32(1))
    save_weights(tmp_path / "a", "edge", np.array([[0.99, above]], dtype=np.float32))
    (one,) = saturation.read_attention(tmp_path / "a")
    # 0.99 as a float32 is just below 0.99
    assert one.saturated.tolist() == [[False, True]]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"heads": None}, "lacks heads"),
        ({"examples": 7}, r"largest_weight has the shape \(6, 4\); \(examples, heads\) is \(7, 4\)"),
        ({"largest_weight": np.full((6, 4), 1.5)}, r"must be in \(0, 1\]"),
        ({"largest_weight": np.full((6, 4), np.nan)}, r"must be in \(0, 1\]"),
        ({"largest_weight": np.array([["a"] * 4] * 6)}, "can't be read as .npz"),
    ],
)
def test_wrong_files_are_named(tmp_path, changes, said):
    save_weights(tmp_path / "a", "one", weights(), **changes)
    with pytest.raises(UserError, match=said):
        saturation.read_attention(tmp_path / "a")


def test_files_that_are_no_archives_and_empty_folders(tmp_path):
    (tmp_path / "a").mkdir()
    with pytest.raises(UserError, match=r"has no \.npz files"):
        saturation.read_attention(tmp_path / "a")
    save_weights(tmp_path / "a", "whole", weights())
    cut = (tmp_path / "a" / "whole.npz").read_bytes()
    for content in (b"no archive", b"", cut[: len(cut) // 2]):
        (tmp_path / "a" / "whole.npz").write_bytes(content)
        with pytest.raises(UserError, match=r"can't be read as \.npz"):
            saturation.read_attention(tmp_path / "a")
