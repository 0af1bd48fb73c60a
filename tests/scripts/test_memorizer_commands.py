"""The search for the largest T memorized perfectly, and the ReLU network that sees what the attention layer sees."""

import dataclasses
import shutil

import pandas as pd
import pytest
import torch
from commands import script, sentence_of
from made_records import write_finished
from small import small_run

from compare_relu import flat_examples, train_relu, units_of
from shapelaw.specs.memorizers import MemorizationRun, Memorizer
from shapelaw.storage.pool import read_asked
from shapelaw.training.memorizer_pack import draw_examples

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
    write_finished(tmp_path / "out", small_run())
    done = script(SEARCHED, *SIZES, "--examples", 12, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    keys = sorted(pd.read_csv(tmp_path / "out" / "runs.csv")["key"])
    assert len(keys) == 2
    assert read_asked(tmp_path / "out") == {"memorization": keys}


MEMORIZER = Memorizer(2, 4, 8, width=8, value_dim=1, outputs=5)
RUN = MemorizationRun(
    MEMORIZER, "classification", "shared", 24, 1_200, 0,
    batch_size=8, learning_rate=1e-2, evaluate_every=50,
)  # fmt: skip


@pytest.mark.parametrize("context_type", ["shared", "per_example"])
def test_inputs_are_context_and_query_side_by_side(context_type):
    run = dataclasses.replace(RUN, context_type=context_type)
    inputs, labels = flat_examples(run)
    drawn = draw_examples(run)
    assert inputs.shape == (24, 5 * 8)
    for t in (0, 11, 23):
        context = drawn.contexts if context_type == "shared" else drawn.contexts[t]
        assert torch.equal(inputs[t], torch.cat([*context, drawn.queries[t]]))
    assert torch.equal(labels, drawn.labels)


def test_it_has_no_more_parameters_than_the_attention_network():
    for heads in (1, 2, 5, 9):
        run = dataclasses.replace(RUN, memorizer=dataclasses.replace(MEMORIZER, heads=heads))
        found = train_relu(dataclasses.replace(run, steps=1), units_of(run))
        assert found.params <= run.memorizer.total_params
        assert found.params + 5 * 8 + 1 + 5 > run.memorizer.total_params  # one unit more would not fit


def test_a_wide_one_memorizes_and_stops_and_a_narrow_one_does_not():
    wide = train_relu(RUN, 60)
    assert (wide.accuracy, wide.steps < RUN.steps) == (1.0, True)
    narrow = train_relu(RUN, 1)
    assert narrow.accuracy is not None
    assert narrow.accuracy < 0.8
    assert narrow.steps == RUN.steps
    assert train_relu(RUN, 60) == wide


def test_numbers_are_learned_by_squared_error():
    memorizer = dataclasses.replace(MEMORIZER, outputs=1)
    run = dataclasses.replace(RUN, memorizer=memorizer, task="regression", stop_when_memorized=False)
    found = train_relu(run, 60)
    assert found.accuracy is None
    assert found.loss < 0.3 * train_relu(run, 1).loss
    assert found.steps == run.steps


def test_a_pool_without_memorizers_is_a_sentence(tmp_path):
    write_finished(tmp_path, small_run())
    said = sentence_of("compare_relu", "--runs", tmp_path, "--out", tmp_path / "relu.csv")
    assert f"{tmp_path}/runs has no finished run of a memorizer; train some" in said


@pytest.mark.slow
def test_the_command_puts_both_networks_into_one_row(tmp_path):
    def compare(*arguments):
        return script("compare_relu", "--runs", tmp_path, *arguments)

    sizes = ("--heads", 2, "--context", 4, "--head-dim", 8, "--width", 8, "--value-dim", 1, "--classes", 5)
    done = script(
        *("train_memorization", *sizes, "--examples", "12,24", "--steps", 100, "--evaluate-every", 50),
        *("--learning-rate", 0.01, "--no-compile", "--out", tmp_path),
    )
    assert done.returncode == 0, done.stderr
    done = compare("--out", tmp_path / "relu.csv")
    assert done.returncode == 0, done.stderr
    table, runs = pd.read_csv(tmp_path / "relu.csv"), pd.read_csv(tmp_path / "runs.csv")
    assert table["examples"].tolist() == [12, 24]
    both = table.merge(runs, on=["examples", "seed"])
    assert (both["attention"] == both["accuracy"]).all()
    assert table["relu"].between(0, 1).all()
    assert (table["relu_params"] <= table["attention_params"]).all()
    assert table["attention_at_least"].tolist() == [2 * 3 + 1] * 2
    # what was trained is kept: only what is missing, or is of another spec, is trained again
    kept = sorted(tmp_path.glob("checkpoints/*/relu.json"))
    assert len(kept) == 2
    before = kept[0].stat().st_mtime_ns
    kept[1].write_text("{")
    again = compare("--out", tmp_path / "again.csv")
    assert (again.returncode, again.stderr) == (0, f"{kept[1]} is damaged; its network is trained again\n")
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "relu.csv").read_bytes()
    assert kept[0].stat().st_mtime_ns == before
    kept[0].write_text(kept[0].read_text().replace('"spec_digest": "', '"spec_digest": "other'))
    (tmp_path / "keys.txt").write_text(f"{kept[0].parent.name}\n")
    one = compare("--keys", tmp_path / "keys.txt", "--out", tmp_path / "one.csv")
    assert (one.returncode, "1 of 1" in one.stdout) == (0, True)
    assert "other" not in kept[0].read_text()
    absent = compare("--keys", tmp_path / "absent", "--out", tmp_path / "one.csv")
    assert (absent.returncode, "absent can't be read" in absent.stderr) == (2, True)
