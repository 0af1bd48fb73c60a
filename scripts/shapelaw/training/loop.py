"""Training one run: resumable at any moment, with the numbers of a run that was never stopped."""

from __future__ import annotations

import time
from contextlib import nullcontext
from pathlib import Path

import torch

from shapelaw import records
from shapelaw.corpora.token_store import TokenStore
from shapelaw.errors import UserError
from shapelaw.runs import Run
from shapelaw.training import checkpoint
from shapelaw.training.distributed import join_ranks
from shapelaw.training.hardware import choose_device
from shapelaw.training.journal import Journal
from shapelaw.training.signals import StopRequest
from shapelaw.training.trainer import Execution, Trainer, TrainingFailed, identity


class Stopped(Exception):
    """The run was told to stop; a checkpoint was written. `exit_code` is 128 + the signal's number."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def train(
    run: Run,
    train_store: TokenStore,
    test_store: TokenStore,
    out: Path,
    checkpoints: Path,
    execution: Execution,
) -> None:
    """Train `run` to its end and write its record to `out`, resuming from `checkpoints` if it can.

    Raises:
        UserError: data and spec don't fit, or the device can't do what the spec asks.
        Stopped: SIGTERM, SIGUSR1 or SIGINT came; start again to resume.
        TrainingFailed: the loss is not finite, or the disk is full.
    """
    device = choose_device(execution.device, run.training.precision)
    if execution.threads is not None:
        torch.set_num_threads(execution.threads)
    _check_data(run, train_store, test_store)
    with (
        join_ranks(device) as ranks,
        checkpoint.only_process(checkpoints) if ranks.first else nullcontext(),
        StopRequest() as stop,
    ):
        mark = identity(run, train_store, test_store)
        journal = Journal(run, mark, (train_store, test_store), out, checkpoints, dict(execution.tags))
        if ranks.share(ranks.first and journal.restore_finished()):
            if ranks.first:
                checkpoint.delete_checkpoints(checkpoints)
            return
        trainer = Trainer(run, train_store, test_store, checkpoints, execution, ranks)
        if ranks.first:
            journal.start(trainer.progress.step, trainer.progress.rows)
        try:
            _run_steps(trainer, journal, stop, execution)
        except (Stopped, TrainingFailed) as error:
            if ranks.first:
                status = records.KILLED if isinstance(error, Stopped) else records.FAILED
                journal.update(status, trainer.progress.step, trainer.progress.rows, str(error))
            raise
        if ranks.first:
            journal.finish(trainer.progress.rows, trainer.summary())
            checkpoint.delete_checkpoints(checkpoints)


def _check_data(run: Run, train_store: TokenStore, test_store: TokenStore) -> None:
    for store in (train_store, test_store):
        if store.vocab_size != run.shape.vocab_size:
            raise UserError(
                f"The token store {store.path} has a vocabulary of {store.vocab_size}, and the run {run.key} one of "
                f"{run.shape.vocab_size}; encode the corpus with the tokenizer of that size."
            )
    if len(train_store.tokens) <= run.shape.context_length:
        raise UserError(
            f"The token store {train_store.path} has {len(train_store.tokens)} tokens, fewer than one window of "
            f"{run.shape.context_length} + 1; give a larger corpus."
        )


def _run_steps(trainer: Trainer, journal: Journal, stop: StopRequest, execution: Execution) -> None:
    progress, ranks = trainer.progress, trainer.ranks
    last_checkpoint = last_live = time.monotonic()
    while progress.step < trainer.run.training.steps:
        trainer.step()
        now = time.monotonic()
        if ranks.first and now - last_live >= execution.live_seconds:
            journal.update(records.RUNNING, progress.step, progress.rows)
            last_live = now
        if now - last_checkpoint >= execution.checkpoint_seconds:
            trainer.save()
            last_checkpoint = time.monotonic()
        number = ranks.max(int(stop.received or 0))
        if number:
            trainer.save()
            raise Stopped(
                f"{trainer.run.key} was stopped by signal {number} at step {progress.step} of "
                f"{trainer.run.training.steps}; start it again to resume.",
                128 + number,
            )
