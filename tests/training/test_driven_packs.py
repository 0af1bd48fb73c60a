"""Packs: what their models leave, and that they go on exactly where they were, whatever pack they are in next."""

import json
import os
import shutil
import signal
import subprocess
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from job_server import warm_python
from memorizer_options import OPTIONS, RUN, SMALL, losses_of, varied
from small import SCRIPTS
from trained import lacking, newest_step, start_warm, wait_for_step

from shapelaw.errors import UserError
from shapelaw.specs.degrees import DegreeRun, ProductShape
from shapelaw.specs.memorizers import MemorizationRun, Memorizer
from shapelaw.storage import records
from shapelaw.training import checkpoint, hardware
from shapelaw.training.driver import Stopped, stores_in, train_job
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


# large enough that float32 shows how many models are stepped together, and odd enough that it shows where they lie
LARGE = MemorizationRun(
    Memorizer(heads=12, context=32, head_dim=16, width=32, value_dim=1, outputs=49),
    *("classification", "shared", 200, 60, 0),
    batch_size=64,
    learning_rate=1e-2,
    evaluate_every=10,
    stop_when_memorized=False,
)
LARGE_BY_NAME = {name: replace(LARGE, seed=seed) for seed, name in enumerate("ABCD")}
A, B, C, _ = LARGE_BY_NAME.values()
LEAVING = [
    replace(LARGE, seed=seed, steps=steps, evaluate_every=50)
    for seed, steps in enumerate((50, 100, 150, 200))
]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of two packs to which nothing happens; models of one of them end at different steps."""
    folder = tmp_path_factory.mktemp("undisturbed")
    train([LEAVING, [A, B]], folder, checkpoint_seconds=1e9)
    return folder


def history(folder: Path, run: MemorizationRun) -> bytes:
    return (folder / "runs" / run.key / "history.parquet").read_bytes()


@pytest.mark.parametrize("step", [60, 110])
def test_a_pack_whose_models_left_goes_on_exactly(
    step: int, undisturbed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
        assert history(tmp_path, each) == history(undisturbed, each)
    assert records.read_record(tmp_path / "runs" / LEAVING[0].key).summary["steps_done"] == 50


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
        with pytest.raises(Stopped) if stop_after > 0 else nullcontext():
            train([runs], folder, checkpoint_seconds=1e9)
        return self.model_steps - before


@pytest.fixture
def stepped(monkeypatch: pytest.MonkeyPatch) -> Stepped:
    return Stepped(monkeypatch)


def checkpoints_of(folder: Path) -> list[Path]:
    return list((folder / "checkpoints").glob("pack-*/*"))


@pytest.mark.parametrize(
    ("calls", "attempts", "exact"),
    [
        # A goes on beside C, which begins, and B beside D; once A is done, a pack of two is a pack of one
        ([("AB", 24, 48), ("AC", -1, 2 * 36 + 24), ("BD", -1, 2 * 36 + 24)], 2, [A, B]),
        # the grid changes and changes back: A is further on in the pack of the grid between
        ([("AB", 12, 24), ("AC", 20, 40), ("AB", 8, 16), ("AB", -1, 2 * 20 + 20), ("C", -1, 40)], 4, [A]),
        # the newest checkpoint has a higher number than the steps of the models that are not done
        (
            [
                *(("A", 40, 40), ("AB", 12, 24), ("AC", -1, 8 + 60), ("BD", 8, 16)),
                *(("AB", 10, 10), ("AB", -1, 30), ("D", -1, 52)),
            ],
            3,
            [],
        ),
    ],
)
def test_in_packs_of_other_members_a_model_goes_on_where_it_was(
    calls: list[tuple[str, int, int]],
    attempts: int,
    exact: list[MemorizationRun],
    tmp_path: Path,
    stepped: Stepped,
    undisturbed: Path,
) -> None:
    """Packs, of which each is stopped after so many steps or trained to its end, in so many steps of its models."""
    for names, stop_after, steps in calls:
        runs = [LARGE_BY_NAME[name] for name in names]
        assert stepped.train(runs, tmp_path, stop_after=stop_after) == steps
    for run in exact:
        assert history(tmp_path, run) == history(undisturbed, run)
    record = records.read_record(tmp_path / "runs" / A.key)
    assert (record.summary["steps_done"], record.summary["attempts"]) == (60, attempts)
    assert lacking(record) == set()
    assert checkpoints_of(tmp_path) == []


def test_an_older_checkpoint_may_name_a_model_that_has_left(
    tmp_path: Path, stepped: Stepped, undisturbed: Path
) -> None:
    """Its pack was killed between writing who is left and the next checkpoint."""
    stepped.train([A, B], tmp_path, stop_after=12)
    (path,) = tmp_path.glob("checkpoints/pack-*/members.json")
    path.write_text(json.dumps({B.key: B.digest}))
    stepped.train([A, B], tmp_path)
    assert history(tmp_path, B) == history(undisturbed, B)


def test_a_damaged_checkpoint_costs_the_steps_since_the_one_before(tmp_path: Path, stepped: Stepped) -> None:
    stepped.train([A, B], tmp_path, stop_after=10)
    stepped.train([A, B], tmp_path, stop_after=4)
    (folder,) = (tmp_path / "checkpoints").glob("pack-*")
    newest = checkpoint.checkpoint_paths(folder)[0]
    newest.write_bytes(newest.read_bytes()[:-100])
    assert stepped.train([A, C], tmp_path) == 2 * 50 + 10


def test_what_a_pack_compiles_lies_beside_its_checkpoints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders, step = set(), MemorizerPack.step

    def seen(pack: MemorizerPack) -> None:
        folders.add(os.environ.get("TORCHINDUCTOR_CACHE_DIR", ""))
        step(pack)

    monkeypatch.setattr(hardware, "_COMPILED_CHOSEN", False)
    monkeypatch.setattr(MemorizerPack, "step", seen)
    train([[replace(LARGE, steps=1)]], tmp_path)
    assert [Path(folder).parents[1] for folder in folders] == [tmp_path / "checkpoints"]


def test_members_that_can_not_be_read_are_told(
    tmp_path: Path, stepped: Stepped, capsys: pytest.CaptureFixture[str]
) -> None:
    stepped.train([A, B], tmp_path, stop_after=24)
    (path,) = (tmp_path / "checkpoints").glob("pack-*/members.json")
    assert set(json.loads(path.read_text())) == {A.key, B.key}
    path.write_text("{")
    assert stepped.train([A, C], tmp_path) == 120
    assert f"{path} can't be read" in capsys.readouterr().err


def test_one_process_at_a_time_trains_a_run_whatever_its_pack(tmp_path: Path) -> None:
    runs = [replace(RUN, seed=seed) for seed in range(3)]
    held = tmp_path / "checkpoints" / runs[1].key
    with (
        checkpoint.only_process(held, 0, print, lambda: None),
        pytest.raises(UserError, match="Another process is training"),
    ):
        train([runs], tmp_path)


def test_models_of_two_families_are_no_pack(tmp_path: Path) -> None:
    for other in (
        DegreeRun(ProductShape((3, 3), 8, 4, 1), "separable", 1, 50, 0, 32, 1e-2),
        OPTIONS["full values"],
    ):
        with pytest.raises(ValueError, match="must be of one family"):
            train([[RUN, other]], tmp_path)


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
        before = newest_step(tmp_path / "killed")
        process = start_warm(command(tmp_path / "killed")[1:])
        wait_for_step(process, tmp_path / "killed", before)
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
