"""Train packs, each as one computation, until their runs have records; they can resume at any moment."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch

from shapelaw.specs.kinds import DEGREE, MEMORIZATION, PackedRun, kind_of
from shapelaw.storage import records
from shapelaw.storage.files import WriteFailed
from shapelaw.training import checkpoint
from shapelaw.training.degree_pack import DegreePack
from shapelaw.training.hardware import choose_device, compiling_in, start_afresh
from shapelaw.training.journal import Journal
from shapelaw.training.loop import Stopped, lock_of
from shapelaw.training.memorizer_pack import ATTENTION, MemorizerPack
from shapelaw.training.pack_training import PackedModel, PackTraining
from shapelaw.training.packed import Pack, can_compile
from shapelaw.training.signals import StopRequest
from shapelaw.training.trainer import NotWritten, Runtime
from shapelaw.training.unfinished import find_unfinished, forget_finished, pack_folder

STATE_VERSION = 2  # name of a pack's checkpoint
COMPILE_FROM = 200_000  # model-steps: compiling takes about ten seconds of a CPU
_PACKS: dict[str | None, Callable[[list[Any], torch.device, bool], Pack[Any]]] = {  # by kind
    MEMORIZATION.name: MemorizerPack,
    DEGREE.name: lambda runs, device, compiled: DegreePack(runs, device),
}


def train_packs(
    packs: Iterable[Sequence[PackedRun]], out: Path, checkpoints: Path, runtime: Runtime
) -> dict[str, str]:
    """Train packs one after the other, and write the records of their runs to `<out>/<key>`.

    A pack of the same runs resumes where it stopped. A run that another pack left unfinished resumes from there.

    Args:
        packs: runs of one `family` each.
        out: the folder for the records.
        checkpoints: the folder with one folder per run (its live and finished record) and the packs' own checkpoints.

    Returns:
        By key: "FINISHED", or the reason why a run can't go on, in a sentence; the other runs are trained to their end.

    Raises:
        UserError: the device can't do what is asked, or another process trains a pack.
        Stopped: SIGTERM, SIGUSR1 or SIGINT came; start again to resume.
        NotWritten: the disk is full; a readable checkpoint is left.
    """
    device = choose_device(runtime.device, "float32")
    if runtime.threads is not None:
        torch.set_num_threads(runtime.threads)
    outcomes: dict[str, str] = {}
    with StopRequest() as stop:
        for runs in packs:
            start_afresh(device)
            outcomes |= _train_one(runs, out, checkpoints, device, runtime, stop)
            if stop.received:  # the signal came with the last step; the next pack is not started
                raise Stopped(
                    f"Stopped by signal {int(stop.received)}; this pack is done.", 128 + int(stop.received)
                )
    return outcomes


def _train_one(
    runs: Sequence[PackedRun],
    out: Path,
    checkpoints: Path,
    device: torch.device,
    runtime: Runtime,
    stop: StopRequest,
) -> dict[str, str]:
    mark = mark_of(runs)
    folder = pack_folder(checkpoints, mark)
    with ExitStack() as locks:
        for run in sorted(runs, key=lambda run: run.key):
            locks.enter_context(lock_of(run, checkpoints / run.key, runtime, stop))
        models = [
            PackedModel(
                run, Journal(run, run.digest, {}, out / run.key, checkpoints / run.key, dict(runtime.tags))
            )
            for run in runs
        ]
        try:
            with compiling_in(folder / "compiled", device):
                return _train_all(models, mark, folder, device, runtime, stop)
        except WriteFailed as error:
            raise NotWritten(
                f"{str(error).removesuffix('.')}: {checkpoint.where_to_resume(folder)}."
            ) from error


def mark_of(runs: Sequence[PackedRun]) -> str:
    """The mark of a pack, from its runs in order and the format of its checkpoints."""
    parts = [str(STATE_VERSION), *(run.digest for run in runs)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _train_all(
    models: Sequence[PackedModel],
    mark: str,
    folder: Path,
    device: torch.device,
    runtime: Runtime,
    stop: StopRequest,
) -> dict[str, str]:
    """Train the runs that have no record yet.

    A pack with a checkpoint resumes unchanged, even with models that have a record by now: fewer models round
    differently. Runs outside it follow. If another pack's checkpoint has one of the models at a later step, all are
    packed anew, each from its latest step.
    """
    outcomes: dict[str, str] = {}
    for model in models:
        if model.journal.restore_finished():
            outcomes[model.run.key] = records.FINISHED
            kept = model.journal.checkpoints / ATTENTION
            if kept.exists():
                records.write_bytes(model.journal.out / ATTENTION, kept.read_bytes())
        elif failed := model.journal.failure_for_good():
            outcomes[model.run.key] = failed
    wished = runtime.compile
    if wished is None:
        wished = sum(model.run.steps for model in models) >= COMPILE_FROM
    compiled = wished and can_compile(device)
    runs = [model.run for model in models]
    found = find_unfinished(folder.parent, [run for run in runs if run.key not in outcomes], mark)
    if found and all(one.mark == mark for one in found.values()):
        state = next(iter(found.values())).state
        by_key = {model.run.key: model for model in models}
        as_it_was = [by_key[key] for key in state["keys"]]
        training = PackTraining(
            as_it_was, _make_pack(as_it_was, device, compiled), mark, folder, runtime, stop
        )
        training.resume(state)
        outcomes |= training.train()
        checkpoint.delete_checkpoints(folder)
    if waiting := [model for model in models if model.run.key not in outcomes]:
        # models of equal steps side by side
        waiting.sort(key=lambda model: found[model.run.key].step if model.run.key in found else 0)
        training = PackTraining(waiting, _make_pack(waiting, device, compiled), mark, folder, runtime, stop)
        training.adopt(found)
        outcomes |= training.train()
    checkpoint.delete_checkpoints(folder)
    forget_finished(folder.parent, runs)
    return outcomes


def _make_pack(models: Sequence[PackedModel], device: torch.device, compiled: bool) -> Pack[Any]:
    """A pack of some models; `compiled` applies to memorizers.

    Raises:
        ValueError: the models are of several kinds.
    """
    runs = [model.run for model in models]
    kinds = {kind_of(run).name for run in runs}
    if len(kinds) != 1:
        raise ValueError("the models of a pack must be of one kind")
    return _PACKS[kinds.pop()](runs, device, compiled)
