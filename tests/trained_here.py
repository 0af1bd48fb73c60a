"""A training run in the test's own process, and what may happen to it."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from shapelaw.corpora.token_store import TokenStore
from shapelaw.specs.runs import Run
from shapelaw.storage import records
from shapelaw.training import loop
from shapelaw.training.trainer import Runtime, Trainer

Stores = tuple[TokenStore, TokenStore]
CPU = Runtime("cpu", threads=1)


def train(run: Run, stores: Stores, folder: Path, runtime: Runtime = CPU) -> records.Record:
    """The finished record, in `record` beside the folder `checkpoints`."""
    loop.train(run, *stores, folder / "record", folder / "checkpoints", runtime)
    return records.read_record(folder / "record")


def history_bytes(folder: Path) -> bytes:
    return (folder / "record" / "history.parquet").read_bytes()


@contextmanager
def after_step(step: int, then: Callable[[], object]) -> Iterator[None]:
    """Let something happen after a step; 0 is every step."""
    one_step = Trainer.step

    def disturbed(trainer: Trainer) -> None:
        one_step(trainer)
        if step in (0, trainer.progress.step):
            then()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trainer, "step", disturbed)
        yield


def stop(run: Run, stores: Stores, folder: Path, step: int, runtime: Runtime = CPU) -> loop.Stopped:
    """Train until a signal comes after a step; how it ended."""
    with (
        after_step(step, lambda: signal.raise_signal(signal.SIGTERM)),
        pytest.raises(loop.Stopped) as stopped,
    ):
        train(run, stores, folder, runtime)
    return stopped.value
