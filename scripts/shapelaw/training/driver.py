"""Train a job, a list of tasks. Each can stop at any moment, and then gives the numbers of one that never did.

A task is some runs as one computation: a decoder is a task of one run, a pack a task of many. To the driver both are a
`Task`, which it resumes, steps, finishes, notes, saves and stops: `train_job`, `Driver.train`, `Driver._carry_out`.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from typing import Any, NoReturn, Protocol

import torch

from shapelaw.corpora.token_store import open_token_store
from shapelaw.errors import UserError, say
from shapelaw.specs.kinds import AnyRun, PackedRun, is_packed
from shapelaw.specs.memorizers import MemorizationRun
from shapelaw.specs.runs import Run
from shapelaw.storage.files import WriteFailed
from shapelaw.storage.records import CHECKPOINTS, FAILED, KILLED, RUNNING, RUNS
from shapelaw.training import checkpoint, hardware, packs
from shapelaw.training.degree_pack import DegreePack
from shapelaw.training.journal import Ended, Journal, UnderWay
from shapelaw.training.launch import StopRequest
from shapelaw.training.memorizer_pack import MemorizerPack
from shapelaw.training.trainer import Runtime, Stores, Trainer, TrainingFailed, identity, memory_errors

COMPILE_FROM = 200_000  # model-steps of a pack: compiling takes about ten seconds of a CPU


class Task(Protocol):
    """Runs in training as one computation."""

    @property
    def step_number(self) -> int:
        """The name of its next checkpoint; it grows with every step."""

    def under_way(self) -> Sequence[UnderWay]:
        """The runs that have not ended."""

    def step(self) -> None:
        """One optimizer step of every run."""

    def ended(self) -> Sequence[Ended]:
        """Evaluate what is due after a step; return the runs that end with it."""

    def state(self) -> dict[str, Any]:
        """The content of a checkpoint."""


class Stopped(Exception):
    """A signal came, and a checkpoint is written. `exit_code` is 128 + the signal's number."""

    def __init__(self, sentence: str, signal: int) -> None:
        super().__init__(sentence)
        self.exit_code = 128 + signal


def train_job(
    tasks: Sequence[Sequence[AnyRun]], results: Path, stores_of: Callable[[Run], Stores], runtime: Runtime
) -> None:
    """Train tasks one after the other; one that can't go on costs no other.

    Args:
        tasks: each a decoder, or the runs of a pack, all of one `family`.
        results: its `runs/<key>` get the records, its `checkpoints/` has what is under way.
        stores_of: the token stores of a decoder.

    Raises:
        UserError: no task could begin; the message has each one's reason.
        TrainingFailed: some could not go on; the message has their reasons, and the others have their records.
        Stopped: SIGTERM, SIGUSR1 or SIGINT came; start again to resume.
    """
    total, done = sum(map(len, tasks)), 0
    failed: list[str] = []
    refused = 0
    with driving(results, stores_of, runtime) as driver:
        for runs in tasks:
            number = f"run {done + 1}" if len(runs) == 1 else f"runs {done + 1} to {done + len(runs)}"
            more = f" and {len(runs) - 1} more" if len(runs) > 1 else ""
            done += len(runs)
            try:
                driver.train(runs, f"{number} of {total}: {runs[0].key}{more}")
            except (UserError, TrainingFailed) as error:
                if driver.ranks.world > 1:  # the others may be elsewhere in this run
                    raise
                failed.append(str(error))
                refused += isinstance(error, UserError) and not isinstance(error, WriteFailed)
    if failed:
        sentences = "\n".join(dict.fromkeys(failed))
        raise UserError(sentences) if refused == len(tasks) else TrainingFailed(sentences)


@contextmanager
def driving(results: Path, stores_of: Callable[[Run], Stores], runtime: Runtime) -> Iterator[Driver]:
    """A driver that signals stop, in each process of the job."""
    if runtime.threads is not None:
        torch.set_num_threads(runtime.threads)
    with StopRequest() as stop, hardware.join_ranks(runtime.device, runtime.wait_seconds) as ranks:
        yield Driver(results, stores_of, runtime, stop, ranks)


@dataclass
class Driver:
    """Trains tasks; in a job of one process it chooses the device of each."""

    results: Path
    stores_of: Callable[[Run], Stores]
    runtime: Runtime
    stop: StopRequest
    ranks: hardware.Ranks

    def train(self, runs: Sequence[AnyRun], begins: str = "") -> None:
        """Train the runs of a task until each has its record; those that have one are left as they are.

        Args:
            begins: printed with the time where there is something to train.

        Raises:
            UserError: data and spec don't fit, the device can't do what a spec asks, or another process trains a run.
            TrainingFailed: the disk or the memory is full; a readable checkpoint is left.
            Stopped: a signal came.
        """
        if number := self.ranks.max(int(self.stop.received or 0)):
            raise Stopped(f"Stopped by signal {number} before {runs[0].key} began.", number)
        journals = {run.key: self._journal(run) for run in runs}
        with ExitStack() as held, memory_errors():
            for key in sorted(journals) if self.ranks.first else ():
                waiting = partial(self._heed_stop, key)
                lock = checkpoint.only_process(
                    journals[key].checkpoints, self.runtime.wait_seconds, say, waiting
                )
                held.enter_context(lock)
            left = {key: journal for key, journal in journals.items() if not self._is_finished(journal)}
            if left and begins and self.ranks.first:
                print(f"{datetime.now():%Y-%m-%d %H:%M:%S} {begins}", flush=True)
            while left:  # a pack with a checkpoint goes on as it was; runs that are not in it follow
                self._train(runs, left)
            if self.ranks.first:
                for key, journal in journals.items():
                    journal.clear(int(key in self.runtime.keep_weights_of))
                packs.forget_finished(self.results, runs)

    def _journal(self, run: AnyRun) -> Journal:
        out, checkpoints = self.results / RUNS / run.key, self.results / CHECKPOINTS / run.key
        if not isinstance(run, Run):
            return Journal(run, run.digest, {}, out, checkpoints, self.runtime.tags)
        stores = self.stores_of(run)
        _check_data(run, stores)
        named = dict(zip(("train_store", "test_store"), stores, strict=True))
        return Journal(run, identity(run, *stores), named, out, checkpoints, self.runtime.tags)

    def _heed_stop(self, key: str) -> None:
        """End the wait for another process that trains a run where a signal came."""
        if number := int(self.stop.received or 0):
            sentence = f"was stopped by signal {number} while it waited for another process."
            raise Stopped(f"{key} {sentence}", number)

    def _is_finished(self, journal: Journal) -> bool:
        return bool(self.ranks.max(int(self.ranks.first and journal.is_finished())))

    def _train(self, runs: Sequence[AnyRun], left: dict[str, Journal]) -> None:
        """Resume a task, and train it until all of its runs have ended; those are no longer left."""
        run, ranks = runs[0], self.ranks
        precision = run.training.precision if isinstance(run, Run) else "float32"
        device = hardware.choose_device(self.runtime.device, precision, hardware.processes_here())
        if ranks.world == 1:
            ranks = replace(ranks, device=device)
        hardware.start_afresh(ranks.device)
        if isinstance(run, Run):
            (journal,) = left.values()
            folder, mark = journal.checkpoints, journal.identity
            task: Task = Trainer(run, self.stores_of(run), folder, self.runtime, ranks)
        else:
            packed = list(filter(is_packed, runs))
            mark = packs.mark_of(packed)
            folder = packs.pack_folder(self.results / CHECKPOINTS, mark)
            task = self._resumed_pack(packed, left, folder, mark, device)
        with hardware.compiling_in(folder / "compiled", device):
            TrainingTask(task, left, folder, mark, self.runtime, self.stop, ranks).train()

    def _resumed_pack(
        self, runs: Sequence[PackedRun], left: Collection[str], folder: Path, mark: str, device: torch.device
    ) -> packs.Pack[Any]:
        """A pack where it stopped; or where there is none, its runs that are left, each from its latest step anywhere.

        A pack with a checkpoint resumes unchanged, even with models that have a record by now: fewer models round
        differently. If another pack's checkpoint has one of the models at a later step, all are packed anew.

        Args:
            left: keys of the runs without a record.

        Raises:
            WriteFailed: the disk is full or gone.
        """
        found = packs.find_unfinished(folder.parent, [run for run in runs if run.key in left], mark)
        compiled = self.runtime.compile
        if compiled is None:
            compiled = sum(run.steps for run in runs) >= COMPILE_FROM
        compiled = compiled and packs.can_compile(device)
        if found and all(one.mark == mark for one in found.values()):
            state = next(iter(found.values())).state
            by_key = {run.key: run for run in runs}
            members = [by_key[key] for key in state["keys"]]
            pack = _pack_of(members, device, compiled)
            pack.load(state)
            say(f"resumed a pack of {len(members)} at step {pack.step_number}")
        else:
            members = [run for run in runs if run.key in left]
            # equal steps side by side
            members.sort(key=lambda run: found[run.key].step if run.key in found else 0)
            pack = _pack_of(members, device, compiled)
            # its checkpoints must count as newer than those in its folder, even when the models ahead are done
            pack.step_number = checkpoint.newest_step(folder)
            for place, run in enumerate(members):
                if (one := found.get(run.key)) is not None:
                    pack.load_model(place, one.state, one.place)
                    say(f"{run.key} resumes at step {one.step}, where another pack left it")
        packs.write_members(folder, members)
        return pack


@dataclass
class TrainingTask:
    """A task in training.

    Attributes:
        left: the journals of its runs that have no record yet; a pack may have others too.
        folder, mark: place and identity of its checkpoints.
    """

    task: Task
    left: dict[str, Journal]
    folder: Path
    mark: str
    runtime: Runtime
    stop: StopRequest
    ranks: hardware.Ranks

    def train(self) -> None:
        """Train until all runs have ended.

        Raises:
            TrainingFailed: the disk is full or gone.
            Stopped: a signal came.
        """
        try:
            self._train()
        except WriteFailed as error:
            sentence = f"{str(error).removesuffix('.')}: {checkpoint.where_to_resume(self.folder)}."
            self._note(FAILED, lambda _: sentence)
            raise TrainingFailed(sentence) from error

    def _train(self) -> None:
        task, runtime, ranks = self.task, self.runtime, self.ranks
        for at in task.under_way():
            if ranks.first and at.key in self.left:
                self.left[at.key].start(at)
        saved = noted = time.monotonic()
        while task.under_way():
            task.step()
            ended = task.ended()
            if any(one.key in runtime.keep_weights_of for one in ended):
                self._save()
            for one in ended:
                self._finish(one)
            if not task.under_way():
                break
            if time.monotonic() - noted >= runtime.live_seconds:
                self._note(RUNNING)
                noted = time.monotonic()
            if ended or time.monotonic() - saved >= runtime.checkpoint_seconds:
                self._save()
                saved = time.monotonic()
            if number := ranks.max(int(self.stop.received or 0)):
                self._save()
                ranks.max(0)  # all wait for the checkpoint: a process that exits early ends the others
                self._stop(number)

    def _finish(self, ended: Ended) -> None:
        """Write a record; on a full disk, delete an older checkpoint to make room."""
        journal = self.left.get(ended.key)
        if journal is not None and self.ranks.first:
            try:
                journal.finish(ended)
            except WriteFailed:
                if not checkpoint.keep_newest(self.folder, 1):
                    raise
                journal.finish(ended)
        self.left.pop(ended.key, None)

    def _save(self) -> None:
        if self.ranks.first:
            state = {"identity": self.mark, **self.task.state()}
            checkpoint.save_checkpoint(self.folder, self.task.step_number, state)

    def _note(self, status: str, said: Callable[[UnderWay], str | None] = lambda _: None) -> None:
        """Write down how far the runs are; where the disk is full, that is said of the first one alone."""
        for one in self.task.under_way() if self.ranks.first else ():
            if (journal := self.left.get(one.key)) is not None:
                journal.note(status, one, said(one))
                if journal.trouble is not None:
                    break

    def _stop(self, number: int) -> NoReturn:
        def sentence(one: UnderWay) -> str:
            at = f"at step {one.step} of {one.steps}"
            return f"{one.key} was stopped by signal {number} {at}; start it again to resume."

        self._note(KILLED, sentence)
        first, *others = self.task.under_way()
        more = f" So were {len(others)} more of its pack." if others else ""
        raise Stopped(sentence(first) + more, number)


def _pack_of(runs: Sequence[PackedRun], device: torch.device, compiled: bool) -> packs.Pack[Any]:
    """A new pack; `compiled` applies to memorizers.

    Raises:
        ValueError: the models are of several families.
    """
    if len({run.family for run in runs}) > 1:
        raise ValueError("the models of a pack must be of one family")
    alike: Any = runs
    is_memorizer = isinstance(runs[0], MemorizationRun)
    return MemorizerPack(alike, device, compiled) if is_memorizer else DegreePack(alike, device)


def _check_data(run: Run, stores: Stores) -> None:
    for store in stores:
        if store.vocab_size != run.shape.vocab_size:
            raise UserError(
                f"The token store {store.path} has a vocabulary of {store.vocab_size}, but the run {run.key} one of "
                f"{run.shape.vocab_size}; encode the corpus with the tokenizer of that size."
            )


def stores_in(corpora: Path) -> Callable[[Run], Stores]:
    """The token stores of decoders, `<corpus>/V<vocab_size>/{train,test}.json` in a folder; each is opened once."""

    @cache
    def opened(corpus: str, vocab_size: int) -> Stores:
        folder = corpora / corpus / f"V{vocab_size}"
        return open_token_store(folder / "train.json"), open_token_store(folder / "test.json")

    return lambda run: opened(run.corpus, run.shape.vocab_size)


def exit_code_of(action: Callable[[], None], linger_seconds: float) -> int:
    """Run it, print any error as a sentence, and return the exit code.

    Returns:
        0 done, 1 some runs can't go on (the disk is full, memory is short, their data are damaged), 2 wrong input for
            all, 128 + n stopped by signal n. After a SIGTERM it returns only `linger_seconds` later, if nobody has
            killed the process by then: a scheduler that preempts a job sends SIGTERM first, counts a job that ends by
            itself as failed, and puts one that is still running back into the queue.
    """
    try:
        action()
    except (UserError, TrainingFailed, Stopped) as error:
        say_failure(error)
        if not isinstance(error, Stopped):
            return 1 if isinstance(error, TrainingFailed | WriteFailed) else 2
        if error.exit_code == 128 + signal.SIGTERM and linger_seconds:
            # schedulers and their wrappers send SIGTERM more than once
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(linger_seconds)
        return error.exit_code
    return 0


def say_failure(error: Exception) -> None:
    """Print an error's sentence; of several processes of one run, only the first prints the common one."""
    if isinstance(error, UserError) or os.environ.get("RANK", "0") == "0":
        say(error)
