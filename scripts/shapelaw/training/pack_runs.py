"""Training packs to their records; resumable at any moment, like language runs."""

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

STATE_VERSION = 2  # of a pack's checkpoint
COMPILE_FROM = 200_000  # model-steps: compiling takes some ten seconds of a CPU
_PACKS: dict[str | None, Callable[[list[Any], torch.device, bool], Pack[Any]]] = {  # by the name of a kind
    MEMORIZATION.name: MemorizerPack,
    DEGREE.name: lambda runs, device, compiled: DegreePack(runs, device),
}


def train_packs(
    packs: Iterable[Sequence[PackedRun]], out: Path, checkpoints: Path, runtime: Runtime
) -> dict[str, str]:
    """Train packs one after the other, and write the records of their runs to `<out>/<key>`.

    A pack of the same runs goes on where it was. A run that a pack of others left unfinished goes on from there.

    Args:
        packs: each of runs of one `family`.
        out: folder of the records.
        checkpoints: folder with one folder a run (its live and finished record) and the packs' own checkpoints.

    Returns:
        by key: "FINISHED", or the sentence of a run that can't go on; the others went on.

    Raises:
        UserError: the device can't do what is asked, or another process trains a pack.
        Stopped: SIGTERM, SIGUSR1 or SIGINT came; start again to resume.
        NotWritten: the disk is full; a checkpoint that can be read is left.
    """
    device = choose_device(runtime.device, "float32")
    if runtime.threads is not None:
        torch.set_num_threads(runtime.threads)
    outcomes: dict[str, str] = {}
    with StopRequest() as stop:
        for runs in packs:
            start_afresh(device)
            outcomes |= _train_pack(runs, out, checkpoints, device, runtime, stop)
            if stop.received:  # it came with the last step; what comes next is not begun
                raise Stopped(
                    f"Stopped by signal {int(stop.received)}; this pack is done.", 128 + int(stop.received)
                )
    return outcomes


def _train_pack(
    runs: Sequence[PackedRun],
    out: Path,
    checkpoints: Path,
    device: torch.device,
    runtime: Runtime,
    stop: StopRequest,
) -> dict[str, str]:
    mark = _mark_of(runs)
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


def _mark_of(runs: Sequence[PackedRun]) -> str:
    """What names a pack: its runs in order, and how its checkpoints are written."""
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
    """Train those that have no record yet.

    A pack with a checkpoint goes on as it was, with models that have a record since: fewer models round differently.
    What is not in it comes after it. Where another pack's checkpoint has one of the models further on, all are put
    together anew, each from where it is furthest.
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
        # those of equal steps side by side
        waiting.sort(key=lambda model: found[model.run.key].step if model.run.key in found else 0)
        training = PackTraining(waiting, _make_pack(waiting, device, compiled), mark, folder, runtime, stop)
        training.adopt(found)
        outcomes |= training.train()
    checkpoint.delete_checkpoints(folder)
    forget_finished(folder.parent, runs)
    return outcomes


def _make_pack(models: Sequence[PackedModel], device: torch.device, compiled: bool) -> Pack[Any]:
    """The pack of some models; `compiled` is for memorizers.

    Raises:
        ValueError: they are not of one kind.
    """
    runs = [model.run for model in models]
    kinds = {kind_of(run).name for run in runs}
    if len(kinds) != 1:
        raise ValueError("the models of a pack are of one kind")
    return _PACKS[kinds.pop()](runs, device, compiled)
