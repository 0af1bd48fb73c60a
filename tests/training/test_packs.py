"""A model that a pack left unfinished goes on where it was, whatever pack it is in next."""

import json
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from trained import lacking

from shapelaw.specs.memorizers import MemorizationRun, Memorizer
from shapelaw.storage import records
from shapelaw.training import checkpoint, hardware
from shapelaw.training.driver import Stopped, stores_in, train_job
from shapelaw.training.memorizer_pack import MemorizerPack
from shapelaw.training.trainer import Runtime

# large enough that float32 shows how many models are stepped together, and odd enough that it shows where they lie
SHAPE = Memorizer(heads=12, context=32, head_dim=16, width=32, value_dim=1, outputs=49)
RUN = MemorizationRun(
    SHAPE, "classification", "shared", 200, 60, 0,
    batch_size=64, learning_rate=1e-2, evaluate_every=10, stop_when_memorized=False,
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
                train_job([runs], folder, stores_in(folder), runtime)
        else:
            train_job([runs], folder, stores_in(folder), runtime)
            assert all((folder / "runs" / run.key / "summary.json").exists() for run in runs)
        return self.model_steps - before


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of two packs to which nothing happens."""
    folder = tmp_path_factory.mktemp("undisturbed")
    train_job([[A, B], [C, D]], folder, stores_in(folder), Runtime("cpu", threads=1))
    return folder


def history(folder: Path, run: MemorizationRun) -> bytes:
    return (folder / "runs" / run.key / "history.parquet").read_bytes()


def checkpoints_of(folder: Path) -> list[Path]:
    return list((folder / "checkpoints").glob("pack-*/*"))


A, B, C, D = (replace(RUN, seed=seed) for seed in range(4))


def test_in_a_pack_of_other_members_a_model_ends_as_if_undisturbed(
    tmp_path: Path, stepped: Stepped, undisturbed: Path
) -> None:
    """Stopped at step 24, A goes on beside C, which begins, and B beside D: models of one pack at other steps."""
    killed = tmp_path / "killed"
    stepped.train([A, B], killed, stop_after=24)
    # A has 36 steps to go and C 60; once A is done, a pack of two is a pack of one
    assert stepped.train([A, C], killed) == 2 * 36 + 24
    assert checkpoints_of(killed), "B is still in them"
    assert stepped.train([B, D], killed) == 2 * 36 + 24
    for run in (A, B):
        assert history(killed, run) == history(undisturbed, run)
    record = records.read_record(killed / "runs" / A.key)
    assert record.summary["steps_done"] == 60
    assert record.summary["attempts"] == 2
    assert lacking(record) == set()
    assert checkpoints_of(killed) == []


def test_the_furthest_of_several_is_taken_and_killed_again_it_goes_on(
    tmp_path: Path, stepped: Stepped, undisturbed: Path
) -> None:
    """The grid changes and changes back: A is further on in the pack of the grid between."""
    killed = tmp_path / "killed"
    stepped.train([A, B], killed, stop_after=12)
    stepped.train([A, C], killed, stop_after=20)  # A is at 32 now, C at 20
    stepped.train([A, B], killed, stop_after=8)  # A at 40, B at 20
    assert stepped.train([A, B], killed) == 2 * 20 + 20
    assert history(killed, A) == history(undisturbed, A)
    assert stepped.train([C], killed) == 40


def test_an_older_checkpoint_may_name_a_model_that_has_left(
    tmp_path: Path, stepped: Stepped, undisturbed: Path
) -> None:
    """Its pack was killed between writing who is left and the next checkpoint."""
    killed = tmp_path / "killed"
    stepped.train([A, B], killed, stop_after=12)
    (path,) = killed.glob("checkpoints/pack-*/members.json")
    path.write_text(json.dumps({B.key: B.digest}))
    stepped.train([A, B], killed)
    assert history(killed, B) == history(undisturbed, B)


def test_a_pack_that_was_ahead_of_what_is_left_of_it(tmp_path: Path, stepped: Stepped) -> None:
    """Its newest checkpoint has a higher number than the steps of the models that are not done."""
    killed = tmp_path / "killed"
    stepped.train([A], killed, stop_after=40)
    stepped.train([A, B], killed, stop_after=12)  # A at 52, B at 12
    stepped.train([A, C], killed)  # A is done
    stepped.train([B, D], killed, stop_after=8)  # B at 20
    stepped.train([A, B], killed, stop_after=10)  # B at 30
    assert stepped.train([A, B], killed) == 30
    assert stepped.train([D], killed) == 52


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
    train_job([[replace(RUN, steps=1)]], tmp_path, stores_in(tmp_path), Runtime("cpu", threads=1))
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
