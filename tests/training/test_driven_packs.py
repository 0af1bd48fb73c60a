"""Packs: what their models leave, and that they go on exactly where they were killed."""

import shutil
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from job_server import WarmProcess, warm_python
from memorizer_options import OPTIONS, RUN, SMALL, losses_of, varied
from small import SCRIPTS

from shapelaw.errors import UserError
from shapelaw.specs.degrees import DegreeRun, ProductShape
from shapelaw.specs.memorizers import MemorizationRun, Memorizer
from shapelaw.storage import records
from shapelaw.training import checkpoint
from shapelaw.training.driver import stores_in, train_job
from shapelaw.training.memorizer_pack import MemorizerPack
from shapelaw.training.optimizer import packed_rate
from shapelaw.training.trainer import Runtime

pytestmark = pytest.mark.usefixtures("one_thread")


class Interrupted(Exception):
    pass


def interrupt_at(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """End the process's training as a SIGKILL would, when a pack has done that step."""
    original = MemorizerPack.step

    def stepping(pack: MemorizerPack) -> None:
        original(pack)
        if pack.step_number == step:
            raise Interrupted

    monkeypatch.setattr(MemorizerPack, "step", stepping)


def train(packs: list[list[MemorizationRun]], folder: Path, **options: float) -> None:
    """Each run has its record afterwards."""
    train_job(packs, folder, stores_in(folder), Runtime("cpu", threads=1, **options))
    assert all((folder / "runs" / run.key / "summary.json").exists() for pack in packs for run in pack)


# in float32, where a pack's size shows; models end at different steps
LARGE = Memorizer(heads=12, context=32, head_dim=16, width=32, value_dim=1, outputs=50)
LEAVING = [
    replace(
        RUN, memorizer=LARGE, examples=200, batch_size=64, stop_when_memorized=False, seed=seed, steps=steps
    )
    for seed, steps in enumerate((50, 100, 150, 200))
]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of that pack when nothing happens to it."""
    folder = tmp_path_factory.mktemp("whole")
    train([LEAVING], folder, checkpoint_seconds=1e9)
    return folder


@pytest.mark.parametrize("step", [60, 110])
def test_a_pack_whose_models_left_goes_on_exactly(
    step: int, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed before and after models ended and the pack got smaller; one's folder was deleted too."""
    deleted = step == 60  # where the checkpoint still has the model that ended at step 50
    with monkeypatch.context() as patch:
        interrupt_at(step, patch)
        with pytest.raises(Interrupted):
            train([LEAVING], tmp_path, checkpoint_seconds=0.0 if deleted else 1e9)
    if deleted:
        shutil.rmtree(tmp_path / "runs" / LEAVING[0].key)
    train([LEAVING], tmp_path, checkpoint_seconds=1e9)
    for each in LEAVING[deleted:]:  # alone it rounds differently
        paths = (folder / "runs" / each.key / "history.parquet" for folder in (whole, tmp_path))
        assert len({path.read_bytes() for path in paths}) == 1
    assert records.read_record(tmp_path / "runs" / LEAVING[0].key).summary["steps_done"] == 50


def test_one_process_at_a_time_trains_a_run_whatever_its_pack(tmp_path: Path) -> None:
    runs = [replace(RUN, seed=seed) for seed in range(3)]
    held = tmp_path / "checkpoints" / runs[1].key
    with (
        checkpoint.only_process(held, 0, print, lambda: False),
        pytest.raises(UserError, match="Another process is training"),
    ):
        train([runs], tmp_path)


def test_models_of_two_kinds_are_no_pack(tmp_path: Path) -> None:
    other = DegreeRun(ProductShape((3, 3), 8, 4, 1), "separable", 1, 50, 0, 32, 1e-2)
    with pytest.raises(ValueError, match="must be of one kind"):
        train([[RUN, other]], tmp_path)


def newest(folder: Path) -> int:
    """The step of the newest checkpoint of a pack; 0 without one."""
    return max((int(path.stem[5:]) for path in folder.glob("checkpoints/pack-*/step-*.pt")), default=0)


@pytest.mark.slow
def test_killed_and_stopped_it_ends_with_the_same_histories(tmp_path: Path) -> None:
    """A pack of two shapes."""
    options = ["--heads", "2,3", "--examples", "60,90", "--context", "6", "--head-dim", "4", "--width", "16"]
    options += ["--value-dim", "1", "--steps", "1500", "--evaluate-every", "100", "--seeds", "2"]
    options += ["--checkpoint-minutes", "0.001", "--batch-size", "32", "--to-the-end", "--no-compile"]
    options += ["--pack", "8", "--padding", "1.3"]

    def command(out: Path) -> list[str]:
        return [str(warm_python()), str(SCRIPTS / "train_memorization.py"), *options, "--out", str(out)]

    subprocess.run(command(tmp_path / "undisturbed"), check=True, capture_output=True)
    codes = []
    for number in (signal.SIGKILL, signal.SIGUSR1):
        before = newest(tmp_path / "killed")
        process = WarmProcess(command(tmp_path / "killed"), stderr=subprocess.PIPE, text=True)
        while newest(tmp_path / "killed") <= before:
            assert process.poll() is None, "it ended before it could be disturbed"
            time.sleep(0.01)
        process.send_signal(number)
        process.communicate()
        codes.append(process.returncode)
    assert len(list((tmp_path / "killed").glob("checkpoints/pack-*"))) == 1
    assert codes == [-signal.SIGKILL, 128 + signal.SIGUSR1]
    subprocess.run(command(tmp_path / "killed"), check=True, capture_output=True)
    undisturbed = sorted((tmp_path / "undisturbed").glob("runs/*/history.parquet"))
    assert len(undisturbed) == 8
    for path in undisturbed:
        other = tmp_path / "killed" / path.relative_to(tmp_path / "undisturbed")
        assert other.read_bytes() == path.read_bytes()


def test_records(tmp_path: Path) -> None:
    """What a pack leaves: whole records, one of them stopped early because it had memorized everything."""
    easy = replace(RUN, examples=8, batch_size=8, learning_rate=3e-2, steps=4000)
    hard = replace(easy, seed=1, stop_when_memorized=False, steps=200)
    train([[easy, hard]], tmp_path)
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
    train([[steady, wild]], tmp_path)
    diverged = records.read_record(tmp_path / "runs" / wild.key)
    assert (diverged.status, diverged.summary["diverged_at_step"]) == (records.FINISHED, 50)
    assert not {"final_loss", "memorized", "saturated_share"} & diverged.summary.keys()
    before = (tmp_path / "runs" / wild.key / "summary.json").stat().st_mtime_ns
    train([[steady, wild]], tmp_path)
    assert (tmp_path / "runs" / wild.key / "summary.json").stat().st_mtime_ns == before


def test_models_are_evaluated_at_their_own_steps_and_at_their_last(tmp_path: Path) -> None:
    run = replace(RUN, stop_when_memorized=False)
    runs = [
        replace(run, steps=130),
        replace(run, seed=1, steps=90, evaluate_every=40),
        replace(run, seed=2, steps=1),
    ]
    train([runs], tmp_path)
    found = [records.read_record(tmp_path / "runs" / one.key) for one in runs]
    assert [one.history["step"].to_pylist() for one in found] == [[50, 100, 130], [40, 80, 90], [1]]
    for run, one in zip(runs, found, strict=True):
        rates = [packed_rate(run, step - 1) for step in one.history["step"].to_pylist()]
        assert one.history["learning_rate"].to_pylist() == rates
        assert one.summary["final_accuracy"] == one.history["accuracy"].to_pylist()[-1]
        assert one.summary["model_steps_per_second"] > 0
    assert not list((tmp_path / "checkpoints").glob("pack-*/step-*.pt"))


CPU = torch.device("cpu")


def test_models_of_two_families_are_no_pack() -> None:
    with pytest.raises(ValueError, match="one family"):
        MemorizerPack([RUN, OPTIONS["full values"]], CPU, compiled=False)


def test_the_mean_loss_of_a_model_is_that_since_its_last_reading() -> None:
    runs = varied(RUN)
    each, rarely = MemorizerPack(runs, CPU, compiled=False), MemorizerPack(runs, CPU, compiled=False)
    losses = losses_of(each, 6)
    for _ in range(4):
        rarely.step()
    assert rarely.take_losses([2, 0]) == pytest.approx(losses[:4, [2, 0]].mean(0))
    for _ in range(2):
        rarely.step()
    assert rarely.take_losses([0, 1]) == pytest.approx([losses[4:, 0].mean(), losses[:, 1].mean()])
    assert rarely.steps == [6, 6, 6]
    assert rarely.rates == [packed_rate(run, 5) for run in runs]
