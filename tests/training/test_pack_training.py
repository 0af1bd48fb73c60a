"""A pack in training: records of models that end, diverge or stop early."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from memorizer_options import RUN, SMALL

from shapelaw.storage import records
from shapelaw.training.pack_runs import train_packs
from shapelaw.training.schedule import packed_rate
from shapelaw.training.trainer import Runtime

pytestmark = pytest.mark.usefixtures("one_thread")


def test_records(tmp_path: Path) -> None:
    """What a pack leaves: whole records, one of them stopped early because it had memorized everything."""
    easy = replace(RUN, examples=8, batch_size=8, learning_rate=3e-2, steps=4000)
    hard = replace(easy, seed=1, stop_when_memorized=False, steps=200)
    outcomes = train_packs([[easy, hard]], tmp_path / "runs", tmp_path / "checkpoints", Runtime("cpu"))
    assert outcomes == {easy.key: "FINISHED", hard.key: "FINISHED"}
    first, second = (records.read_record(tmp_path / "runs" / run.key) for run in (easy, hard))
    assert first.run == easy
    assert second.run == hard
    assert first.summary["memorized"]
    assert first.summary["final_accuracy"] == 1.0
    assert first.summary["steps_done"] < 4000
    assert second.summary["steps_done"] == 200
    assert first.history["step"].to_pylist() == list(range(50, first.summary["steps_done"] + 1, 50))
    assert first.history["accuracy"].to_pylist()[-1] == 1.0
    assert 0 <= first.summary["saturated_share"] <= 1


def test_a_run_that_diverges_leaves_the_others_in_peace(tmp_path: Path) -> None:
    steady = replace(RUN, task="regression", memorizer=replace(SMALL, outputs=1, value_dim=None))
    wild = replace(steady, seed=1, learning_rate=1e18)
    outcomes = train_packs([[steady, wild]], tmp_path / "runs", tmp_path / "checkpoints", Runtime("cpu"))
    assert outcomes[steady.key] == "FINISHED"
    assert f"The loss of {wild.key} is" in outcomes[wild.key]
    assert not (tmp_path / "runs" / wild.key / "summary.json").exists()
    assert records.read_record(tmp_path / "checkpoints" / wild.key).status == records.FAILED
    again = train_packs([[steady, wild]], tmp_path / "runs", tmp_path / "checkpoints", Runtime("cpu"))
    assert again[steady.key] == "FINISHED"
    assert "It is not tried again" in again[wild.key]


def test_the_history_of_a_model_does_not_depend_on_its_pack(tmp_path: Path) -> None:
    """Its neighbours end, and are evaluated, at other steps."""
    run = replace(RUN, precision="float64", stop_when_memorized=False)
    others = [replace(run, seed=1, steps=130), replace(run, seed=2, evaluate_every=70)]
    train_packs([[run]], tmp_path / "alone", tmp_path / "checkpoints alone", Runtime("cpu"))
    train_packs([[run, *others]], tmp_path / "packed", tmp_path / "checkpoints", Runtime("cpu"))
    alone, packed = (records.read_record(tmp_path / name / run.key).history for name in ("alone", "packed"))
    for column in alone.column_names:
        np.testing.assert_allclose(packed[column].to_numpy(), alone[column].to_numpy(), rtol=0, atol=1e-10)


def test_a_model_that_ends_at_the_first_step(tmp_path: Path) -> None:
    run = replace(RUN, steps=1)
    assert train_packs([[run]], tmp_path / "runs", tmp_path / "checkpoints", Runtime("cpu")) == {
        run.key: "FINISHED"
    }


def test_models_are_evaluated_at_their_own_steps_and_at_their_last(tmp_path: Path) -> None:
    run = replace(RUN, stop_when_memorized=False)
    runs = [replace(run, steps=130), replace(run, seed=1, steps=90, evaluate_every=40)]
    train_packs([runs], tmp_path / "runs", tmp_path / "checkpoints", Runtime("cpu"))
    found = [records.read_record(tmp_path / "runs" / one.key) for one in runs]
    assert [one.history["step"].to_pylist() for one in found] == [[50, 100, 130], [40, 80, 90]]
    for run, one in zip(runs, found, strict=True):
        rates = [packed_rate(run, step - 1) for step in one.history["step"].to_pylist()]
        assert one.history["learning_rate"].to_pylist() == rates
        assert one.summary["final_accuracy"] == one.history["accuracy"].to_pylist()[-1]
        assert one.summary["model_steps_per_second"] > 0
    assert not list((tmp_path / "checkpoints").glob("pack-*/step-*.pt"))
