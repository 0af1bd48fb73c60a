"""Train one run: it can resume at any moment and then gives the numbers of a run that was never stopped."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import torch

from shapelaw.corpora.token_store import TokenStore
from shapelaw.errors import UserError, say
from shapelaw.specs.kinds import AnyRun
from shapelaw.specs.runs import Run
from shapelaw.storage import records
from shapelaw.storage.files import WriteFailed
from shapelaw.training import checkpoint
from shapelaw.training.hardware import choose_device, is_first, join_ranks, processes_here, start_afresh
from shapelaw.training.journal import Journal
from shapelaw.training.launch import StopRequest
from shapelaw.training.trainer import (
    Diverged,
    NotWritten,
    Runtime,
    Trainer,
    TrainingFailed,
    identity,
)


class Stopped(Exception):
    """The run was asked to stop and has written a checkpoint. `exit_code` is 128 + the signal's number."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def train(
    run: Run,
    train_store: TokenStore,
    test_store: TokenStore,
    out: Path,
    checkpoints: Path,
    runtime: Runtime,
) -> None:
    """Train `run` to its end and write its record to `out`, resuming from `checkpoints` if possible.

    Raises:
        UserError: data and spec don't fit, the device can't do what the spec asks, or a folder has another run.
        Stopped: SIGTERM, SIGUSR1 or SIGINT came; start again to resume.
        Diverged: the loss is not finite, in this attempt or an earlier one.
        NotWritten: the disk is full; a readable checkpoint is left.
    """
    stores = {"train_store": train_store, "test_store": test_store}
    mark = identity(run, train_store, test_store)
    journal = Journal(run, mark, stores, out, checkpoints, dict(runtime.tags))
    if processes_here() == 1 and journal.is_finished():  # perhaps elsewhere: its record needs no such device
        device = torch.device("cpu")
    else:
        device = choose_device(runtime.device, run.training.precision, processes_here())
    if runtime.threads is not None:
        torch.set_num_threads(runtime.threads)
    _check_data(run, train_store, test_store)
    for folder in (out, checkpoints):
        records.refuse_other_run(folder, run)
    start_afresh(device)
    with (
        StopRequest() as stop,
        lock_of(run, checkpoints, runtime, stop) if is_first() else nullcontext(),
        join_ranks(device, runtime.wait_seconds) as ranks,
    ):
        try:
            if ranks.max(int(ranks.first and journal.restore_finished())):
                if ranks.first and not runtime.keep_weights:
                    checkpoint.delete_checkpoints(checkpoints)
                return
            failed = journal.failure_for_good() if ranks.first else None
            if ranks.max(int(failed is not None)):
                raise Diverged(failed or "")
            trainer = Trainer(run, train_store, test_store, checkpoints, runtime, ranks)
            if ranks.first:
                journal.start(trainer.progress.step, trainer.progress.rows)
            _train(trainer, journal, stop, runtime)
        except WriteFailed as error:
            raise NotWritten(_unwritten(run, out, journal, error)) from error


@contextmanager
def lock_of(run: AnyRun, folder: Path, runtime: Runtime, stop: StopRequest) -> Iterator[None]:
    """Hold the lock on the run in `folder`, waiting for another process as long as `execution` says.

    Raises:
        UserError: another process still trains it.
        Stopped: a signal came while waiting.
        WriteFailed: the folder can't be written.
    """
    with checkpoint.only_process(
        folder, runtime.wait_seconds, say, lambda: stop.received is not None
    ) as mine:
        if not mine:
            assert stop.received is not None
            raise Stopped(
                f"{run.key} was stopped by signal {int(stop.received)} while it waited for another process.",
                128 + int(stop.received),
            )
        yield


def _train(trainer: Trainer, journal: Journal, stop: StopRequest, runtime: Runtime) -> None:
    """Train until the end or until something stops it, and record which."""
    ranks, progress = trainer.ranks, trainer.progress
    try:
        _run_steps(trainer, journal, stop, runtime)
    except (Stopped, TrainingFailed) as error:
        if ranks.first:
            status = records.KILLED if isinstance(error, Stopped) else records.FAILED
            for_good = isinstance(error, Diverged)
            journal.note(status, progress.step, progress.rows, str(error), for_good=for_good)
        raise
    if ranks.first:
        try:
            _finish(trainer, journal)
        except WriteFailed as error:
            if not journal.is_finished():
                journal.note(records.FAILED, progress.step, progress.rows, str(error))
            raise
        if runtime.keep_weights:
            checkpoint.keep_newest(trainer.checkpoints, 1)
        else:
            checkpoint.delete_checkpoints(trainer.checkpoints)


def _finish(trainer: Trainer, journal: Journal) -> None:
    """Write the record; on a full disk, delete an older checkpoint to make room."""
    numbers = trainer.summary()
    try:
        journal.finish(trainer.progress.rows, numbers)
    except WriteFailed:
        if not checkpoint.keep_newest(trainer.checkpoints, 1):
            raise
        journal.finish(trainer.progress.rows, numbers)


def _unwritten(run: Run, out: Path, journal: Journal, error: WriteFailed) -> str:
    """A sentence that the record can't be written and what a new start would do."""
    if journal.is_finished():
        return (
            f"{run.key} is trained, but its record can't be written to {out} ({error.reason}); {error.advice}: "
            "the record is copied, nothing is trained again."
        )
    return f"{str(error).removesuffix('.')}: {checkpoint.where_to_resume(journal.checkpoints)}."


def _check_data(run: Run, train_store: TokenStore, test_store: TokenStore) -> None:
    for store in (train_store, test_store):
        if store.vocab_size != run.shape.vocab_size:
            raise UserError(
                f"The token store {store.path} has a vocabulary of {store.vocab_size}, but the run {run.key} one of "
                f"{run.shape.vocab_size}; encode the corpus with the tokenizer of that size."
            )
    if len(train_store.tokens) <= run.shape.context_length:
        raise UserError(
            f"The token store {train_store.path} has {len(train_store.tokens)} tokens, fewer than one window of "
            f"{run.shape.context_length} + 1; give a larger corpus."
        )


def _run_steps(trainer: Trainer, journal: Journal, stop: StopRequest, runtime: Runtime) -> None:
    progress, ranks = trainer.progress, trainer.ranks
    last_checkpoint = last_live = time.monotonic()
    while progress.step < trainer.run.training.steps:
        trainer.step()
        now = time.monotonic()
        if ranks.first and now - last_live >= runtime.live_seconds:
            journal.note(records.RUNNING, progress.step, progress.rows)
            last_live = now
        if now - last_checkpoint >= runtime.checkpoint_seconds:
            trainer.save()
            last_checkpoint = time.monotonic()
        number = ranks.max(int(stop.received or 0))
        if number:
            trainer.save()
            ranks.max(0)  # all wait for the checkpoint: a process that exits early ends the others
            raise Stopped(
                f"{trainer.run.key} was stopped by signal {number} at step {progress.step} of "
                f"{trainer.run.training.steps}; start it again to resume.",
                128 + number,
            )
    if runtime.keep_weights:
        trainer.save()
