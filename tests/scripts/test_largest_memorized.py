"""The search for the largest T memorized perfectly, as a user runs it, on networks that learn in seconds."""

import shutil

import pandas as pd
import pytest
from commands import script, sentence_of
from small import small_run

from shapelaw.storage.pool import read_asked
from shapelaw.storage.records import write_history, write_spec, write_summary

SEARCHED = "train_memorization"
SIZES = (
    *("--heads", "3,5", "--context", 6, "--head-dim", 8, "--width", 16, "--classes", 5, "--value-dim", 2),
    *("--steps", 200, "--evaluate-every", 50, "--learning-rate", 0.02, "--no-compile", "--out", "out"),
)
SEARCH = ("--largest", "5,400", "--within", 40)


def found(stderr):
    return [line for line in stderr.splitlines() if "memorized perfectly" in line]


@pytest.mark.slow
def test_it_searches_and_goes_on_where_it_was(tmp_path):
    done = script(SEARCHED, *SIZES, *SEARCH, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    first = found(done.stderr)
    assert len(first) == 2
    runs = pd.read_csv(tmp_path / "out" / "runs.csv")
    largest = {}
    for heads, rows in runs.groupby("heads"):
        memorized, others = (rows[(rows["accuracy"] == 1.0) == yes]["examples"] for yes in (True, False))
        largest[heads] = memorized.max()
        assert 0 < others[others > memorized.max()].min() - memorized.max() <= 40
        assert any(f"H = {heads}, " in line and f"T = {memorized.max()} is" in line for line in first)
    # a run that was lost is trained again, and no other
    records = tmp_path / "out" / "runs"
    lost = next(records.glob("*H5*-T202-*"))
    shutil.rmtree(lost)
    before = {path: path.read_bytes() for path in records.glob("*/summary.json")}
    again = script(SEARCHED, *SIZES, *SEARCH, cwd=tmp_path)
    assert found(again.stderr) == first
    assert (lost / "summary.json").exists()
    assert all(path.read_bytes() == content for path, content in before.items())
    assert pd.read_csv(tmp_path / "out" / "runs.csv")[["key", "accuracy"]].equals(runs[["key", "accuracy"]])
    given = ("--input", "out/runs.csv", "--out", "perfect")
    assert script("analyse", "memorization_saturation", *given, cwd=tmp_path).returncode == 0
    perfect = pd.read_csv(tmp_path / "perfect" / "perfect.csv").set_index("heads")
    assert perfect["largest_any"].to_dict() == largest
    assert set(perfect["bound"]) == {"found"}


def test_a_folder_with_runs_of_other_steps_is_refused_before_work(tmp_path):
    sizes = [*SIZES, "--examples", 12]
    script(SEARCHED, *sizes, cwd=tmp_path)
    assert sentence_of(SEARCHED, *sizes, "--steps", 100, cwd=tmp_path).endswith(
        "out/runs has runs whose steps is 200, and this call asks for 100; one table with both would mix them: "
        "give another --out.\n"
    )
    assert set(pd.read_csv(tmp_path / "out" / "runs.csv")["steps"]) == {200}
    assert script(SEARCHED, *sizes, "--seeds", 2, cwd=tmp_path).returncode == 0  # more of the same goes on


def test_a_pool_with_other_kinds_of_runs_takes_memorizers_too(tmp_path):
    run = small_run()
    write_spec(tmp_path / "out" / "runs" / run.key, run)
    write_history(tmp_path / "out" / "runs" / run.key, [])
    write_summary(tmp_path / "out" / "runs" / run.key, {"test_loss": 4.0})
    done = script(SEARCHED, *SIZES, "--examples", 12, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    keys = sorted(pd.read_csv(tmp_path / "out" / "runs.csv")["key"])
    assert len(keys) == 2
    assert read_asked(tmp_path / "out") == {"memorization": keys}
