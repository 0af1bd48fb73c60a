"""A training run in the test's own process, and what may happen to it."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from shapelaw.corpora.token_store import TokenStore
from shapelaw.specs.kinds import DIVERGED, AnyRun, kind_of
from shapelaw.specs.runs import Run
from shapelaw.storage import records
from shapelaw.training.driver import Stopped, driving
from shapelaw.training.trainer import Runtime, Trainer

Stores = tuple[TokenStore, TokenStore]
CPU = Runtime("cpu", threads=1)


def train(run: Run, stores: Stores, folder: Path, runtime: Runtime = CPU) -> records.Record:
    """The finished record, in a folder of results."""
    with driving(folder, lambda _: stores, runtime) as driver:
        driver.train([run])
    return records.read_record(record_of(folder, run))


def record_of(folder: Path, run: AnyRun) -> Path:
    return folder / records.RUNS / run.key


def checkpoints_of(folder: Path, run: AnyRun) -> Path:
    return folder / records.CHECKPOINTS / run.key


def lacking(record: records.Record) -> set[str]:
    """The metrics of its kind that a record's summary hasn't; a run that diverged has one more."""
    names = {column.name for column in kind_of(record.run).metrics} - {DIVERGED.name}
    return names - {name.removeprefix("final_") for name in record.summary}


def history_bytes(folder: Path) -> bytes:
    """The history of the one run that has a record."""
    (path,) = folder.glob("runs/*/history.parquet")
    return path.read_bytes()


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


def stop(run: Run, stores: Stores, folder: Path, step: int, runtime: Runtime = CPU) -> Stopped:
    """Train until a signal comes after a step; how it ended."""
    with after_step(step, lambda: signal.raise_signal(signal.SIGTERM)), pytest.raises(Stopped) as stopped:
        train(run, stores, folder, runtime)
    return stopped.value
