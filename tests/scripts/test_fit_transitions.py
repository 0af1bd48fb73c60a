"""The stand-alone command, as a user runs it."""

import json
from pathlib import Path

import pandas as pd
import pytest
from commands import run_here
from loss_surfaces import grid_of, simulate

REPOSITORY = Path(__file__).resolve().parents[2]
SCRIPT = REPOSITORY / "scripts" / "fit_transitions.py"
TABLE_4A = REPOSITORY / "workflow" / "reference" / "levine2020_transitions.csv"


def command(*arguments, cwd):
    return run_here(SCRIPT, *arguments, cwd=cwd)


def test_published_transitions(tmp_path):
    (tmp_path / "t.csv").write_text(
        "depth,width,width_err\n6,214,6\n12,308,12\n18,436,20\n24,572,12\n30,824,16\n"
    )
    done = command("--transitions", "t.csv", "--out", "out", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    fit = json.loads((tmp_path / "out" / "fit.json").read_text())
    assert fit["status"] == "converged"
    assert fit["a"] == pytest.approx(5.0397, abs=5e-5)
    assert fit["cov_ab"] == pytest.approx(-3.742e-5, abs=5e-9)
    assert {"a_err", "b", "b_err", "cov_aa", "cov_bb", "chi2_reduced", "r_squared", "dof"} <= set(fit)
    projection = pd.read_csv(tmp_path / "out" / "projection.csv")
    assert {"params", "depth", "width", "width_err"} <= set(projection.columns)
    for figure in ("transition_width", "transition_size", "extrapolation"):
        assert (tmp_path / "out" / f"{figure}.svg").is_file()
        assert (tmp_path / "out" / f"{figure}.png").is_file()
    assert "b = 0.05550 ± 0.00132" in done.stdout


@pytest.mark.slow
def test_runs_from_parquet_in_bits_per_byte_and_back_in_as_transitions(tmp_path):
    true = {4: 85.0, 6: 104.0, 8: 128.0, 10: 156.0}
    runs = simulate(grid_of((4, 6, 8, 10, 12), 6e4, 6e6, 12), true, noise=0.0008)
    runs.rename(columns={"test_loss": "bits_per_byte"}).sample(frac=1, random_state=0).to_parquet(
        tmp_path / "r.parquet"
    )
    done = command(
        "--runs", "r.parquet", "--loss", "bits_per_byte", "--out", "out", "--draws", 300, cwd=tmp_path
    )
    assert (done.returncode, done.stderr) == (0, "")
    table = pd.read_csv(tmp_path / "out" / "transitions.csv")
    found = table[(table["method"] == "bootstrap") & (table["status"] == "crossing")]
    assert len(found) >= 3
    assert ((found["width"] - found["depth"].map(true)).abs() < 3 * found["width_err"]).all()
    again = command("--transitions", "out/transitions.csv", "--out", "again", cwd=tmp_path)
    assert again.returncode == 0
    fits = [json.loads((tmp_path / folder / "fit.json").read_text()) for folder in ("out", "again")]
    for fit in fits:
        del fit["findings"]  # of runs they say more than of transitions
    assert fits[0] == fits[1]


@pytest.mark.slow
def test_no_fit_is_no_failure_and_is_said(tmp_path):
    simulate(grid_of((1, 2, 4), 6e4, 6e6, 5), {1: 50.0, 2: 60.0}, seeds=1).to_csv(tmp_path / "runs.csv")
    done = command("--runs", "runs.csv", "--out", "out", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "no fit is possible, too few points" in done.stdout
    assert "give --noise" in done.stdout
    fit = json.loads((tmp_path / "out" / "fit.json").read_text())
    assert fit["status"] == "too few points"
    assert fit["a"] is None
    assert pd.read_csv(tmp_path / "out" / "projection.csv")["width"].isna().all()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--runs", "absent.csv"], "There is no file absent.csv."),
        (["--runs", "t.csv"], "t.csv lacks loss (loss is usually test_loss, val_loss"),
        (["--transitions", "bad.csv"], "bad.csv, row 2: width must be above zero."),
        (["--transitions", "t.csv", "--noise", "-1"], "The noise is -1.0"),
        (["--transitions", "t.csv", "--draws", "5"], "5 bootstrap draws are too few"),
    ],
)
def test_unusable_input_is_one_sentence_and_exit_code_2(tmp_path, arguments, words):
    (tmp_path / "t.csv").write_bytes(TABLE_4A.read_bytes())
    (tmp_path / "bad.csv").write_text("depth,width,width_err\n6,214,6\n12,-308,12\n")
    done = command(*arguments, "--out", "out", cwd=tmp_path)
    assert done.returncode == 2
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("in the way")
    done = command("--transitions", TABLE_4A, "--out", "file/out", cwd=tmp_path)
    assert done.returncode == 2
    assert "can't be written" in done.stderr
    assert "Traceback" not in done.stderr


def test_help_explains():
    done = command("--help", cwd=REPOSITORY)
    assert done.returncode == 0
    for word in ("RUNS", "--transitions", "--method", "--noise", "Exit codes"):
        assert word in done.stdout


@pytest.mark.slow
def test_shapes_that_lie_anywhere_have_no_curves_of_equal_depth(tmp_path):
    rows = [
        (2, 64, 4.0),
        (3, 96, 3.8),
        (5, 80, 3.7),
        (4, 128, 3.6),
        (8, 96, 3.55),
        (6, 160, 3.5),
        (9, 192, 3.4),
    ]
    table = pd.DataFrame([*rows, (12, 160, 3.38)], columns=["n_layer", "d_model", "val_loss"])
    table.to_csv(tmp_path / "runs.csv", sep=";", index=False)
    done = command("--runs", "runs.csv", "--out", "out", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    (said,) = [line for line in done.stdout.splitlines() if "shapelaw fit" in line]
    assert said.startswith("No two depths have four sizes in common")
    assert "too few sizes" not in done.stdout


@pytest.mark.slow
def test_several_token_budgets_are_one_fit_each(tmp_path):
    runs = simulate(grid_of((2, 4), 6e4, 6e6, 5), {2: 50.0})
    several = [runs.assign(tokens=tokens) for tokens in (1e9, 2e9)]
    pd.concat(several).to_csv(tmp_path / "runs.csv", index=False)
    done = command("--runs", "runs.csv", "--out", "out", "--draws", 200, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    for name in ("tokens-1e09", "tokens-2e09"):
        assert (tmp_path / "out" / name / "transitions.csv").is_file()
    assert "Every run saw 2e+09 tokens:" in done.stdout
