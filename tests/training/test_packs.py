"""A model that a pack left unfinished goes on where it was, whatever pack it is in next."""

import json
import os
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from job_server import WarmProcess, warm_python
from small import PYTHON, SCRIPTS

from shapelaw.specs.memorizers import MemorizationRun, Memorizer
from shapelaw.storage import records
from shapelaw.training import checkpoint
from shapelaw.training.loop import Stopped
from shapelaw.training.memorizer_pack import MemorizerPack
from shapelaw.training.pack_runs import train_packs
from shapelaw.training.packs import can_compile
from shapelaw.training.trainer import Runtime

# large enough that float32 shows how many models are stepped together, and odd enough that it shows where they lie
SHAPE = Memorizer(heads=12, context=32, head_dim=16, width=32, value_dim=1, outputs=49)
RUN = MemorizationRun(
    SHAPE, "classification", "shared", 200, 300, 0,
    batch_size=64, learning_rate=1e-2, evaluate_every=50, stop_when_memorized=False,
)  # fmt: skip
pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def stepped(monkeypatch: pytest.MonkeyPatch) -> "Stepped":
    return Stepped(monkeypatch)


class Stepped:
    """Counts the steps that models do, and stops this process's training after so many of a pack."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.model_steps, self.stop_after, original = 0, -1, MemorizerPack.step

        def step(pack: MemorizerPack) -> None:
            original(pack)
            self.model_steps += len(pack.runs)
            self.stop_after -= 1
            if self.stop_after == 0:
                os.kill(os.getpid(), signal.SIGTERM)

        monkeypatch.setattr(MemorizerPack, "step", step)

    def train(self, runs: list[MemorizationRun], folder: Path, *, stop_after: int = -1) -> int:
        """Train a pack, to its end or to a step; returns the model-steps that it took."""
        before, self.stop_after = self.model_steps, stop_after
        runtime = Runtime("cpu", checkpoint_seconds=1e9)
        if stop_after > 0:
            with pytest.raises(Stopped):
                train_packs([runs], folder / "runs", folder / "checkpoints", runtime)
        else:
            outcomes = train_packs([runs], folder / "runs", folder / "checkpoints", runtime)
            assert outcomes == {run.key: "FINISHED" for run in runs}
        return self.model_steps - before


def history(folder: Path, run: MemorizationRun) -> bytes:
    return (folder / "runs" / run.key / "history.parquet").read_bytes()


def checkpoints_of(folder: Path) -> list[Path]:
    return list((folder / "checkpoints").glob("pack-*/*"))


A, B, C, D = (replace(RUN, seed=seed) for seed in range(4))


def test_in_a_pack_of_other_members_a_model_ends_as_if_undisturbed(tmp_path: Path, stepped: Stepped) -> None:
    """Stopped at step 120, A goes on beside C, which begins, and B beside D: models of one pack at other steps."""
    stepped.train([A, B], tmp_path / "undisturbed")
    killed = tmp_path / "killed"
    stepped.train([A, B], killed, stop_after=120)
    # A has 180 steps to go and C 300; once A is done, a pack of two is a pack of one
    assert stepped.train([A, C], killed) == 2 * 180 + 120
    assert checkpoints_of(killed), "B is still in them"
    assert stepped.train([B, D], killed) == 2 * 180 + 120
    for run in (A, B):
        assert history(killed, run) == history(tmp_path / "undisturbed", run)
    summary = records.read_record(killed / "runs" / A.key).summary
    assert summary["steps_done"] == 300
    assert summary["attempts"] == 2
    assert checkpoints_of(killed) == []


def test_models_of_several_packs_go_on_in_one(tmp_path: Path, stepped: Stepped) -> None:
    stepped.train([A, B], tmp_path / "undisturbed")
    stepped.train([C, D], tmp_path / "undisturbed")
    killed = tmp_path / "killed"
    stepped.train([A, B], killed, stop_after=80)
    stepped.train([C, D], killed, stop_after=230)
    assert stepped.train([C, A], killed) == 2 * 70 + 150
    assert stepped.train([B, D], killed) == 2 * 70 + 150
    for run in (C, D):  # A and B are alone for their last 150 steps, and round differently there
        assert history(killed, run) == history(tmp_path / "undisturbed", run)
    assert checkpoints_of(killed) == []


def test_the_furthest_of_several_is_taken_and_killed_again_it_goes_on(
    tmp_path: Path, stepped: Stepped
) -> None:
    """The grid changes and changes back: A is further on in the pack of the grid between."""
    stepped.train([A, B], tmp_path / "undisturbed")
    killed = tmp_path / "killed"
    stepped.train([A, B], killed, stop_after=60)
    stepped.train([A, C], killed, stop_after=100)  # A is at 160 now, C at 100
    stepped.train([A, B], killed, stop_after=40)  # A at 200, B at 100
    assert stepped.train([A, B], killed) == 2 * 100 + 100
    assert history(killed, A) == history(tmp_path / "undisturbed", A)
    assert stepped.train([C], killed) == 200


def test_an_older_checkpoint_may_name_a_model_that_has_left(tmp_path: Path, stepped: Stepped) -> None:
    """Its pack was killed between writing who is left and the next checkpoint."""
    stepped.train([A, B], tmp_path / "undisturbed")
    killed = tmp_path / "killed"
    stepped.train([A, B], killed, stop_after=60)
    (path,) = killed.glob("checkpoints/pack-*/members.json")
    path.write_text(json.dumps({B.key: B.digest}))
    stepped.train([A, B], killed)
    assert history(killed, B) == history(tmp_path / "undisturbed", B)


def test_a_pack_that_was_ahead_of_what_is_left_of_it(tmp_path: Path, stepped: Stepped) -> None:
    """Its newest checkpoint has a higher number than the steps of the models that are not done."""
    killed = tmp_path / "killed"
    stepped.train([A], killed, stop_after=200)
    stepped.train([A, B], killed, stop_after=60)  # A at 260, B at 60
    stepped.train([A, C], killed)  # A is done
    stepped.train([B, D], killed, stop_after=40)  # B at 100
    stepped.train([A, B], killed, stop_after=50)  # B at 150
    assert stepped.train([A, B], killed) == 150
    assert stepped.train([D], killed) == 260


def test_another_recipe_is_another_run_and_begins_anew(tmp_path: Path, stepped: Stepped) -> None:
    stepped.train([A, B], tmp_path, stop_after=120)
    other = replace(A, learning_rate=3e-3)
    assert (other.label, other.key != A.key) == (A.label, True)
    assert stepped.train([other, C], tmp_path) == 600


def test_a_damaged_checkpoint_costs_the_steps_since_the_one_before(tmp_path: Path, stepped: Stepped) -> None:
    stepped.train([A, B], tmp_path, stop_after=50)
    stepped.train([A, B], tmp_path, stop_after=20)
    (folder,) = (tmp_path / "checkpoints").glob("pack-*")
    newest = checkpoint.checkpoint_paths(folder)[0]
    newest.write_bytes(newest.read_bytes()[:-100])
    assert stepped.train([A, C], tmp_path) == 2 * 250 + 50


def test_members_that_can_not_be_read_are_told(
    tmp_path: Path, stepped: Stepped, capsys: pytest.CaptureFixture[str]
) -> None:
    stepped.train([A, B], tmp_path, stop_after=120)
    (path,) = (tmp_path / "checkpoints").glob("pack-*/members.json")
    assert set(json.loads(path.read_text())) == {A.key, B.key}
    path.write_text("{")
    assert stepped.train([A, C], tmp_path) == 600
    assert f"{path} can't be read" in capsys.readouterr().err


@pytest.mark.slow
def test_a_grid_that_grows_after_a_real_kill(tmp_path: Path) -> None:
    """The command itself, killed: with one more seed the packs are others, of the same size."""
    common = ["--heads", "3", "--examples", "60,90", "--context", "6", "--head-dim", "4", "--width", "16"]
    common += [
        "--value-dim",
        "1",
        "--steps",
        "3000",
        "--evaluate-every",
        "200",
        "--no-compile",
        "--pack",
        "2",
    ]
    common += ["--checkpoint-minutes", "0.002", "--batch-size", "32", "--to-the-end"]

    def command(out: Path, seeds: int) -> list[str]:
        options = [*common, "--seeds", str(seeds), "--out", str(out)]
        return [str(warm_python()), str(SCRIPTS / "train_memorization.py"), *options]

    whole, killed = tmp_path / "whole", tmp_path / "killed"
    subprocess.run(command(whole, 1), check=True, capture_output=True)
    process = WarmProcess(command(killed, 1), stderr=subprocess.DEVNULL)
    while not list(killed.glob("checkpoints/pack-*/step-*.pt")):
        assert process.poll() is None, "it ended before it could be killed"
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    step = max(int(path.stem[5:]) for path in killed.glob("checkpoints/pack-*/step-*.pt"))
    done = subprocess.run(command(killed, 2), check=True, capture_output=True, text=True)
    assert done.stderr.count(f"resumes at step {step}, where another pack left it") == 2
    histories = list(whole.glob("runs/*/history.parquet"))
    assert len(histories) == 2
    for path in histories:
        assert (killed / path.relative_to(whole)).read_bytes() == path.read_bytes()
    assert len(list(killed.glob("runs/*/summary.json"))) == 4


@pytest.mark.skipif(not can_compile(torch.device("cpu")), reason="torch.compile needs a C++ compiler")
@pytest.mark.slow
def test_a_kill_while_it_compiles_is_no_hindrance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library that the compiler was writing is cut short; the next attempt must not find it."""

    def command(out: Path, how: str) -> list[str]:
        options = ["--heads", "3", "--examples", "60", "--context", "6", "--head-dim", "4", "--width", "16"]
        options += ["--value-dim", "1", "--steps", "40", "--evaluate-every", "20", "--seeds", "2", how]
        return [PYTHON, str(SCRIPTS / "train_memorization.py"), *options, "--out", str(out)]

    whole, killed = tmp_path / "whole", tmp_path / "killed"
    for name in ("TORCHINDUCTOR_CACHE_DIR", "TORCHINDUCTOR_COMPILE_THREADS"):  # PyTorch sets the first itself
        monkeypatch.delenv(name, raising=False)
    subprocess.run(command(whole, "--no-compile"), check=True, capture_output=True)
    compiling = command(killed, "--compile")
    process = subprocess.Popen(compiling, stderr=subprocess.DEVNULL, start_new_session=True)
    # a kernel: the first files only probe the CPU
    while not list(killed.glob("checkpoints/pack-*/compiled/**/*.main.cpp")):
        assert process.poll() is None, "it ended before it could be killed"
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    (folder,) = killed.glob("checkpoints/pack-*/compiled")
    for source in folder.rglob("*.main.cpp"):
        source.with_suffix(".so").touch()  # as the compiler leaves it
    subprocess.run(compiling, check=True, capture_output=True)
    assert not folder.exists()
    histories = list(whole.glob("runs/*/history.parquet"))
    assert len(histories) == 2
    for path in histories:
        plain, compiled = (
            records.read_record((root / path.relative_to(whole)).parent).history for root in (whole, killed)
        )
        assert compiled.column_names == plain.column_names
        for column in plain.column_names:
            np.testing.assert_allclose(
                compiled[column].to_numpy(), plain[column].to_numpy(), rtol=1e-4, atol=1e-6
            )
