"""Training: it learns, it resumes bit for bit, also killed at random moments, it says what goes wrong."""

import errno
import math
import multiprocessing
import random
import re
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import torch
from job_server import warm_python
from small import small_completep, small_llama, small_run
from trained import (
    CPU,
    RUN,
    Stores,
    after_step,
    checkpoints_of,
    command,
    history_bytes,
    newest_step,
    record_of,
    start_warm,
    stop,
    train,
    wait_for_step,
)

from shapelaw.errors import UserError
from shapelaw.specs import kinds
from shapelaw.specs.kinds import Column
from shapelaw.specs.making import make_shape
from shapelaw.specs.runs import Run
from shapelaw.storage import records
from shapelaw.storage.files import WriteFailed
from shapelaw.training import checkpoint
from shapelaw.training.checkpoint import checkpoint_paths
from shapelaw.training.hardware import peak_memory_bytes
from shapelaw.training.journal import Ended, Journal, git_commit
from shapelaw.training.trainer import Trainer, TrainingFailed, identity


@pytest.fixture
def untrained(monkeypatch: pytest.MonkeyPatch) -> None:
    """No step may be taken."""
    monkeypatch.setattr(Trainer, "step", lambda trainer: pytest.fail("trained again"))


def test_a_run_learns_and_leaves_its_record(stores: Stores, undisturbed: Path) -> None:
    record = records.read_record(record_of(undisturbed, RUN))
    assert record.run == RUN
    assert record.status == "FINISHED"
    assert pq.read_schema(record_of(undisturbed, RUN) / "history.parquet").equals(records.LANGUAGE_SCHEMA)
    history = record.history.to_pydict()
    assert history["step"] == list(range(10, 61, 10))
    assert history["train_loss"][0] > 4.5  # near ln 257 = 5.55 at the start
    assert history["train_loss"][-1] < 3.6
    evaluated = [s for s, loss in zip(history["step"], history["test_loss"], strict=True) if loss is not None]
    assert evaluated == [30, 60]
    assert history["learning_rate"][-1] == 0.0
    summary = record.summary
    assert summary["test_loss"] == history["test_loss"][-1]
    assert summary["test_tokens"] == 20 * 32
    # every token but end-of-text is one byte
    assert summary["bits_per_byte"] == pytest.approx(
        summary["test_loss"] / math.log(2) * summary["test_tokens"] / summary["test_bytes"]
    )
    assert summary["total_params"] == RUN.shape.total_params
    assert 0 < summary["model_flops_utilisation"] < 1
    assert summary["train_store"]["sha256"] == stores[0].sha256
    assert not checkpoints_of(undisturbed, RUN).exists()


def test_a_record_names_the_commit_and_says_if_the_code_differs(tmp_path: Path) -> None:
    assert git_commit(tmp_path) is None
    code, git = tmp_path / "code", ("git", "-C", tmp_path, "-c", "user.name=me", "-c", "user.email=me@here")
    code.mkdir()
    for name in ("code/a.py", "config.yaml"):
        (tmp_path / name).touch()
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "begin")):
        subprocess.run([*git, *words], check=True)
    (tmp_path / "config.yaml").write_text("scale: laptop")
    (code / "new.py").touch()
    commit = git_commit(code)
    assert re.fullmatch("[0-9a-f]{40}", str(commit))
    (code / "a.py").write_text("pass")
    assert git_commit(code) == f"{commit}-dirty"


@pytest.mark.parametrize(
    ("small", "optimizer", "stops"),
    [
        (small_run, "adamw", (1, 10, 11, 59)),
        (small_run, "adam", (11,)),  # what a checkpoint has of them; when, is the same for all
        (small_llama, "adamw", (11,)),
        (small_completep, "adamw", (30,)),
    ],
)
def test_stopped_after_any_step_and_resumed_it_is_the_undisturbed_run(
    stores: Stores, tmp_path: Path, small: Callable[..., Run], optimizer: str, stops: tuple[int, ...]
) -> None:
    run = small(optimizer=optimizer, weight_decay=0.1, dropout=0.1, gradient_clip=0.5)
    train(run, stores, tmp_path / "undisturbed")
    for stop_at in stops:
        folder = tmp_path / f"stopped-{stop_at}"
        stopped = stop(run, stores, folder, stop_at)
        assert f"signal 15 at step {stop_at} of 60; start it" in str(stopped)
        assert stopped.exit_code == 143
        killed = records.read_record(checkpoints_of(folder, run))
        assert (killed.status, killed.live["step"]) == ("KILLED", stop_at)
        record = train(run, stores, folder)
        assert history_bytes(folder) == history_bytes(tmp_path / "undisturbed")
        assert record.summary["attempts"] == 2


def test_a_run_that_began_before_a_column_came_ends_with_it(
    stores: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop(RUN, stores, tmp_path, 20)
    columns = *kinds.LANGUAGE_HISTORY, Column("new", float)
    log = Trainer._log

    def log_more(trainer: Trainer, rate: float, norm: float) -> None:
        log(trainer, rate, norm)
        trainer.progress.rows[-1] += (0.5,)

    monkeypatch.setattr(Trainer, "_log", log_more)
    monkeypatch.setitem(kinds._BY_CLASS, Run, replace(kinds.LANGUAGE, history=columns))
    stop(RUN, stores, tmp_path, 40)
    history = train(RUN, stores, tmp_path).history
    assert history["new"].to_pylist() == [None] * 2 + [0.5] * 4


def other_texts(stores: Stores) -> Stores:
    """As where the corpus of that name was changed: runs keep their keys."""
    return stores[1], stores[0]


def test_a_record_of_other_texts_is_trained_anew(stores: Stores, undisturbed: Path, tmp_path: Path) -> None:
    train(RUN, other_texts(stores), tmp_path)
    assert history_bytes(tmp_path) != history_bytes(undisturbed)

    def full() -> None:
        raise WriteFailed(tmp_path / "file", errno.ENOSPC)

    with after_step(1, full), pytest.raises(TrainingFailed, match="begins at its first step"):
        train(RUN, stores, tmp_path)
    record = records.read_record(checkpoints_of(tmp_path, RUN))
    assert (record.status, record.history.num_rows) == ("FAILED", 0)  # not that of the other texts
    train(RUN, stores, tmp_path)
    assert history_bytes(tmp_path) == history_bytes(undisturbed)


def test_later_checkpoints_of_other_texts_do_not_cost_a_run_its_own(
    stores: Stores, undisturbed: Path, tmp_path: Path
) -> None:
    stop(RUN, other_texts(stores), tmp_path, 50)
    stop(RUN, stores, tmp_path, 20)
    assert [path.name for path in checkpoint_paths(checkpoints_of(tmp_path, RUN))] == ["step-0000000020.pt"]
    record = records.read_record(checkpoints_of(tmp_path, RUN))
    assert (record.live["attempts"], record.history["step"].to_pylist()) == (1, [10, 20])
    train(RUN, stores, tmp_path)
    assert history_bytes(tmp_path) == history_bytes(undisturbed)


@pytest.mark.usefixtures("untrained")
def test_no_file_of_a_whole_record_is_touched(stores: Stores, undisturbed: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in undisturbed.rglob("*")}
    train(RUN, stores, undisturbed)
    after = {path: path.stat().st_mtime_ns for path in undisturbed.rglob("*")}
    del before[undisturbed / "checkpoints"], after[undisturbed / "checkpoints"]  # its lock comes and goes
    assert after == before


@pytest.mark.slow
def test_the_peak_memory_of_a_run_is_its_own(stores: Stores, tmp_path: Path) -> None:
    """Not that of an earlier run in the same process, here one that trains nothing else."""
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("this system keeps the peak of the whole process")
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        before, summary = pool.submit(_train_after_a_large_tensor, stores, tmp_path).result()
    assert before > 4 * 100_000_000
    assert summary["peak_memory_bytes"] < before - 100_000_000


def _train_after_a_large_tensor(stores: Stores, folder: Path) -> tuple[int, Mapping[str, object]]:
    large = torch.ones(100_000_000)
    before = peak_memory_bytes(torch.device("cpu"))
    del large
    return before, train(small_run(steps=2), stores, folder).summary


@pytest.mark.slow
@pytest.mark.usefixtures("traced")
def test_a_process_compiles_the_runs_of_every_shape(stores: Stores, tmp_path: Path) -> None:
    """torch.compile gives up on a function after some shapes (eight; here one) and goes on without a word."""
    from torch._dynamo import config
    from torch._dynamo.utils import counters

    with config.patch(recompile_limit=1):  # pytest's monkeypatch would leave PyTorch's settings without it
        for width in (8, 12):
            counters.clear()
            run = replace(small_run(steps=1), shape=make_shape(1, width, 1, 257, 32))
            train(run, stores, tmp_path / str(width), replace(CPU, compile=True))
            assert counters["stats"]["unique_graphs"] > 0, f"width {width} was not compiled"


def test_wrong_input_is_said_before_training(stores: Stores, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="bfloat16, which is several times slower"):
        train(small_run(precision="bfloat16"), stores, tmp_path)
    other = replace(RUN, shape=replace(RUN.shape, vocab_size=300))
    with pytest.raises(UserError, match=r"has a vocabulary of 257, but the run .*-V300-.* one of 300"):
        train(other, stores, tmp_path)
    with pytest.raises(UserError, match="test_sequences"):
        train(small_run(test_sequences=10**6), stores, tmp_path)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_record_from_a_gpu_is_taken_where_there_is_none(
    device: str, stores: Stores, tmp_path: Path
) -> None:
    """docs/gpu.md brings records home: bfloat16, which a CPU refuses to train."""
    run = small_run(precision="bfloat16")
    out, checkpoints = record_of(tmp_path, run), checkpoints_of(tmp_path, run)
    names = {"train_store": stores[0], "test_store": stores[1]}
    journal = Journal(run, identity(run, *stores), names, out, checkpoints, {})
    journal.finish(Ended(run.key, [(60, 3.0, 0.0, 1.0, 2.5)], {"test_loss": 2.5}))
    record = train(run, stores, tmp_path, replace(CPU, device=device))
    assert record.summary["test_loss"] == 2.5


def test_attempts_before_the_first_checkpoint_count(
    stores: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "save_checkpoint", lambda *_: None)
        stop(RUN, stores, tmp_path, 3)
    assert train(RUN, stores, tmp_path).summary["attempts"] == 2


def test_killed_at_random_moments_it_ends_with_the_undisturbed_history(
    stores: Stores, tmp_path: Path
) -> None:
    run = small_run(steps=300, log_every=20, evaluate_every=150, dropout=0.1)
    train(run, stores, tmp_path / "undisturbed")
    moments = random.Random(0)
    folder, reached = tmp_path / "killed", [0]
    frequent = command(run, stores, folder, "--checkpoint-minutes", "0.001")
    for _ in range(2):
        process = start_warm(frequent)
        # this attempt went on from the one before; by steps, so that no machine is too fast to be disturbed so often
        wait_for_step(process, folder, after=reached[-1] + moments.randrange(60))
        time.sleep(0.06 * moments.random())  # anywhere between two checkpoints
        process.kill()
        assert process.wait() == -signal.SIGKILL
        reached.append(newest_step(folder))
    subprocess.run([warm_python(), *command(run, stores, folder)], check=True)
    assert history_bytes(folder) == history_bytes(tmp_path / "undisturbed")
    assert records.read_record(record_of(folder, run)).summary["attempts"] == 3
