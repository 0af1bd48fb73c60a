"""Train packs, each as one computation, until their runs have records; they can resume at any moment."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from shapelaw.errors import say
from shapelaw.specs.kinds import DEGREE, MEMORIZATION, PackedRun, kind_of
from shapelaw.storage import records
from shapelaw.storage.files import WriteFailed
from shapelaw.training import checkpoint
from shapelaw.training.degree_pack import DegreePack
from shapelaw.training.hardware import choose_device, compiling_in, machine, peak_memory_bytes, start_afresh
from shapelaw.training.journal import Journal
from shapelaw.training.launch import StopRequest
from shapelaw.training.loop import Stopped, lock_of
from shapelaw.training.memorizer_pack import ATTENTION, MemorizerPack
from shapelaw.training.packs import (
    Pack,
    Unfinished,
    can_compile,
    find_unfinished,
    forget_finished,
    pack_folder,
    write_members,
)
from shapelaw.training.trainer import NotWritten, Runtime

STATE_VERSION = 2  # name of a pack's checkpoint
COMPILE_FROM = 200_000  # model-steps: compiling takes about ten seconds of a CPU
_PACKS: dict[str | None, Callable[[list[Any], torch.device, bool], Pack[Any]]] = {  # by kind
    MEMORIZATION.name: MemorizerPack,
    DEGREE.name: lambda runs, device, compiled: DegreePack(runs, device),
}


@dataclass
class PackedModel:
    """One model of a pack: its journal, its history, and its share of the time over all attempts."""

    run: PackedRun
    journal: Journal
    rows: list[list[float]] = field(default_factory=list)
    seconds: float = 0.0


@dataclass
class PackTraining:
    """A pack in training, with its journals.

    Attributes:
        models: in the pack's order, with finished models that are still in it.
    """

    models: list[PackedModel]
    compiled: bool
    mark: str
    folder: Path
    device: torch.device
    runtime: Runtime
    stop: StopRequest
    outcomes: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Make the pack; `compiled` applies to memorizers.

        Raises:
            ValueError: the models are of several kinds.
        """
        runs = [model.run for model in self.models]
        kinds = {kind_of(run).name for run in runs}
        if len(kinds) != 1:
            raise ValueError("the models of a pack must be of one kind")
        self.pack = _PACKS[kinds.pop()](runs, self.device, self.compiled)
        self.live = [True] * len(runs)

    def resume(self, state: Mapping[str, Any]) -> None:
        """Restore all models from a checkpoint of this pack."""
        self.pack.load(state)
        self.live = list(state["live"])
        for place, model in enumerate(self.models):
            _take_history(model, state, place)
        say(f"resumed a pack of {len(self.models)} at step {self.pack.step_number}")

    def adopt(self, found: Mapping[str, Unfinished]) -> None:
        """Restore the models that were found in other packs' checkpoints; the others begin."""
        # this pack's checkpoints must count as newer than those in its folder, even when the models ahead are done
        self.pack.step_number = checkpoint.newest_step(self.folder)
        for i, model in enumerate(self.models):
            if (one := found.get(model.run.key)) is not None:
                self.pack.load_model(i, one.state, one.place)
                _take_history(model, one.state, one.place)
                say(f"{model.run.key} resumes at step {one.step}, where another pack left it")

    def train(self) -> dict[str, str]:
        """Train to the end of all models.

        Raises:
            Stopped: a signal came.
            WriteFailed: the disk is full or gone.
        """
        write_members(self.folder, [model.run for model in self.models])
        for i, model in self._living():
            model.journal.start(self.pack.steps[i], model.rows)
        last_checkpoint = last_live = time.monotonic()
        while any(self.live):
            begin = time.monotonic()
            self.pack.step()
            share = (time.monotonic() - begin) / len(self.models)
            for model in self.models:
                model.seconds += share
            shrunk = self._evaluate()
            now = time.monotonic()
            if not any(self.live):
                break
            if now - last_live >= self.runtime.live_seconds:
                self._note(records.RUNNING)
                last_live = now
            if shrunk or now - last_checkpoint >= self.runtime.checkpoint_seconds:
                self._save()
                last_checkpoint = time.monotonic()
            if self.stop.received:
                self._stop(int(self.stop.received))
        return self.outcomes

    def _living(self) -> list[tuple[int, PackedModel]]:
        """The models that are not done, with their places in the pack."""
        return [(i, model) for i, model in enumerate(self.models) if self.live[i]]

    def _evaluate(self) -> bool:
        """Evaluate the models that are due and finish those that are done; True if the pack got smaller."""
        due = [i for i, model in self._living() if _is_due(model.run, self.pack.steps[i])]
        if not due:
            return False
        for i, mean in zip(due, self.pack.take_losses(due), strict=True):
            model, found, step = self.models[i], self.pack.evaluate(i), self.pack.steps[i]
            if not (math.isfinite(found.loss) and math.isfinite(mean)):
                self.live[i] = False
                if self.pack.may_diverge:
                    self._finish(i, {"diverged_at_step": step, **self.pack.numbers(i, found, model.rows)})
                else:
                    self._fail(i, found.loss if math.isfinite(mean) else mean)
                continue
            accuracy = math.nan if found.accuracy is None else found.accuracy
            model.rows.append([step, mean, self.pack.rates[i], found.loss, accuracy])
            if self.pack.is_done(i, found):
                self.live[i] = False
                numbers = self.pack.numbers(i, found, model.rows)
                self._finish(i, {"final_loss": found.loss, "final_accuracy": found.accuracy, **numbers})
        return self._shrink()

    def _shrink(self) -> bool:
        """Drop the finished models once they are half of the pack: each size of a pack is compiled anew."""
        staying = [i for i, live in enumerate(self.live) if live]
        if not staying or 2 * len(staying) > len(self.models):
            return False
        self.pack.keep(staying)
        self.models = [self.models[i] for i in staying]
        self.live = [True] * len(staying)
        return True

    def _finish(self, i: int, found: Mapping[str, Any]) -> None:
        """Write the record of a finished model, without numbers that are missing or not finite."""
        model = self.models[i]
        steps = self.pack.steps[i]
        for name, content in self.pack.files(i).items():
            for folder in (model.journal.checkpoints, model.journal.out):
                records.write_bytes(folder / name, content)
        numbers: dict[str, Any] = {
            **found,
            "steps_done": steps,
            "wall_seconds": model.seconds,
            "model_steps_per_second": steps / model.seconds,
            **machine(self.pack.device),
            "threads": torch.get_num_threads(),
            "peak_memory_bytes": peak_memory_bytes(self.pack.device),
        }
        model.journal.finish(model.rows, {name: value for name, value in numbers.items() if _is_known(value)})
        self.outcomes[model.run.key] = records.FINISHED

    def _fail(self, i: int, loss: float) -> None:
        """Record that a model diverged, and drop it."""
        model, step = self.models[i], self.pack.steps[i]
        sentence = (
            f"The loss of {model.run.key} is {loss} at step {step}; lower its learning rate "
            f"({model.run.learning_rate:g})."
        )
        model.journal.note(records.FAILED, step, model.rows, sentence, for_good=True, must=True)
        self.outcomes[model.run.key] = sentence
        say(sentence)

    def _stop(self, number: int) -> None:
        self._save()
        self._note(records.KILLED, f"was stopped by signal {number} at step {{}}; start it again to resume.")
        raise Stopped(
            f"A pack of {len(self._living())} models was stopped by signal {number} at step "
            f"{self.pack.step_number}; start it again to resume.",
            128 + number,
        )

    def _note(self, status: str, sentence: str | None = None) -> None:
        """Write the models' progress; where the disk is full, that is said of the first one alone."""
        for i, model in self._living():
            step = self.pack.steps[i]
            said = f"{model.run.key} {sentence.format(step)}" if sentence else None
            model.journal.note(status, step, model.rows, said)
            if model.journal.trouble is not None:
                break

    def _save(self) -> None:
        state = self.pack.state() | {
            "identity": self.mark,
            "keys": [model.run.key for model in self.models],
            "live": self.live,
            "rows": [model.rows for model in self.models],
            "seconds": [model.seconds for model in self.models],
        }
        checkpoint.save_checkpoint(self.folder, self.pack.step_number, state)


def _is_due(run: PackedRun, step: int) -> bool:
    """True if a model is evaluated after that many steps."""
    return step % run.evaluate_every == 0 or step == run.steps


def _is_known(value: object) -> bool:
    return value is not None and not (isinstance(value, float) and not math.isfinite(value))


def _take_history(model: PackedModel, state: Mapping[str, Any], place: int) -> None:
    """Restore a model's history and times from a checkpoint."""
    model.rows = [list(row) for row in state["rows"][place]]
    model.seconds = state["seconds"][place]


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
    given = wished and can_compile(device), mark, folder, device, runtime, stop
    runs = [model.run for model in models]
    found = find_unfinished(folder.parent, [run for run in runs if run.key not in outcomes], mark)
    if found and all(one.mark == mark for one in found.values()):
        state = next(iter(found.values())).state
        by_key = {model.run.key: model for model in models}
        as_it_was = [by_key[key] for key in state["keys"]]
        training = PackTraining(as_it_was, *given)
        training.resume(state)
        outcomes |= training.train()
        checkpoint.delete_checkpoints(folder)
    if waiting := [model for model in models if model.run.key not in outcomes]:
        # models of equal steps side by side
        waiting.sort(key=lambda model: found[model.run.key].step if model.run.key in found else 0)
        training = PackTraining(waiting, *given)
        training.adopt(found)
        outcomes |= training.train()
    checkpoint.delete_checkpoints(folder)
    forget_finished(folder.parent, runs)
    return outcomes
