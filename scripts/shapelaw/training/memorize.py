"""Training packs of memorizers to their records; resumable at any moment, like language runs."""

from __future__ import annotations

import hashlib
import io
import math
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from shapelaw import records
from shapelaw.errors import say
from shapelaw.files import WriteFailed
from shapelaw.memorizers import MemorizationRun
from shapelaw.training import checkpoint
from shapelaw.training.hardware import choose_device, device_name, peak_memory_bytes, start_afresh
from shapelaw.training.journal import Journal
from shapelaw.training.loop import Stopped, lock_of
from shapelaw.training.packed import Evaluation, Pack, can_compile, keep_freed_memory
from shapelaw.training.signals import StopRequest
from shapelaw.training.trainer import Execution, NotWritten

SATURATED = 0.99  # a head is saturated for an example whose largest attention weight is above (appendix H)
ATTENTION = "attention.npz"
COMPILE_FROM = 200_000  # model-steps: compiling takes some ten seconds of a CPU


@dataclass
class _Model:
    """One model of a pack: its journal and its history."""

    run: MemorizationRun
    journal: Journal
    rows: list[list[float]] = field(default_factory=list)


def train_memorizers(
    runs: Sequence[MemorizationRun], out: Path, checkpoints: Path, execution: Execution
) -> dict[str, str]:
    """Train runs of one shape as one pack, and write their records to `<out>/<key>`.

    Args:
        runs: of one `MemorizationRun.group`.
        out: folder of the records.
        checkpoints: folder with one folder a run (its live and finished record) and the pack's own checkpoints.

    Returns:
        by key: "FINISHED", or the sentence of a run that can't go on; the others went on.

    Raises:
        UserError: the device can't do what is asked, or another process trains the pack.
        Stopped: SIGTERM, SIGUSR1 or SIGINT came; start again to resume.
        NotWritten: the disk is full; a checkpoint that can be read is left.
    """
    device = choose_device(execution.device, "float32")
    if execution.threads is not None:
        torch.set_num_threads(execution.threads)
    keep_freed_memory()
    start_afresh(device)
    mark = hashlib.sha256("\n".join(run.digest for run in runs).encode()).hexdigest()[:16]
    folder = checkpoints / f"pack-{mark}"
    with StopRequest() as stop, ExitStack() as locks:
        for run in sorted(runs, key=lambda run: run.key):
            locks.enter_context(lock_of(run, checkpoints / run.key, execution, stop))
        models = [
            _Model(
                run, Journal(run, run.digest, {}, out / run.key, checkpoints / run.key, dict(execution.tags))
            )
            for run in runs
        ]
        try:
            outcomes = _train_all(models, mark, folder, device, execution, stop)
        except WriteFailed as error:
            raise NotWritten(
                f"{str(error).removesuffix('.')}: {checkpoint.where_to_resume(folder)}."
            ) from error
        if stop.received:  # it came with the last step; what the caller would do next is not begun
            raise Stopped(
                f"Stopped by signal {int(stop.received)}; this pack is done.", 128 + int(stop.received)
            )
        return outcomes


def _train_all(
    models: Sequence[_Model],
    mark: str,
    folder: Path,
    device: torch.device,
    execution: Execution,
    stop: StopRequest,
) -> dict[str, str]:
    """Train those that have no record yet: first the pack of the newest checkpoint, then what is not in it."""
    outcomes: dict[str, str] = {}
    for model in models:
        if model.journal.restore_finished():
            outcomes[model.run.key] = records.FINISHED
            kept = model.journal.checkpoints / ATTENTION
            if kept.exists():
                records.write_bytes(model.journal.out / ATTENTION, kept.read_bytes())
        elif failed := model.journal.failure_for_good():
            outcomes[model.run.key] = failed
    wished = execution.compile
    if wished is None:
        wished = sum(model.run.steps for model in models) >= COMPILE_FROM
    compiled = wished and can_compile(device)
    state = checkpoint.load_newest(folder, mark, say)
    packs: list[tuple[list[_Model], dict[str, Any] | None]] = []
    if state is not None:
        by_key = {model.run.key: model for model in models}
        packs.append(([by_key[key] for key in state["keys"]], state))
    packs.append((list(models), None))
    for chosen, from_state in packs:
        # a pack goes on as it was, with models that have a record since: fewer models round differently
        if any(model.run.key not in outcomes for model in chosen):
            if from_state is None:
                chosen = [model for model in chosen if model.run.key not in outcomes]
            training = _Training(chosen, from_state, mark, folder, device, compiled, execution, stop)
            outcomes |= training.train()
        checkpoint.delete_checkpoints(folder)
    return outcomes


class _Training:
    """A pack under way, with its journals."""

    def __init__(
        self,
        models: Sequence[_Model],
        state: dict[str, Any] | None,
        mark: str,
        folder: Path,
        device: torch.device,
        compiled: bool,
        execution: Execution,
        stop: StopRequest,
    ) -> None:
        self.models = list(models)  # as in the pack, with those that are done and still in it
        self.live = [True] * len(models)
        self.outcomes: dict[str, str] = {}
        self.mark, self.folder, self.device, self.execution, self.stop = mark, folder, device, execution, stop
        self.seconds = 0.0  # a model's share of the time, summed over attempts
        self.threads = torch.get_num_threads()
        self.trouble: WriteFailed | None = None  # of the last note, if it failed
        self.pack = Pack([model.run for model in models], device, compiled)
        if state is not None:
            self.pack.load(state)
            self.live, self.seconds = list(state["live"]), state["seconds"]
            for model in self.models:
                model.rows = [list(row) for row in state["rows"][model.run.key]]
            say(f"resumed a pack of {len(self.models)} at step {self.pack.step_number}")
        for model in self._living():
            model.journal.start(self.pack.step_number, model.rows)

    def train(self) -> dict[str, str]:
        last_checkpoint = last_live = time.monotonic()
        while any(self.live):
            begin = time.monotonic()
            self.pack.step()
            self.seconds += (time.monotonic() - begin) / len(self.models)
            shrunk = self._evaluate()
            now = time.monotonic()
            if not any(self.live):
                break
            if now - last_live >= self.execution.live_seconds:
                self._note(records.RUNNING)
                last_live = now
            if shrunk or now - last_checkpoint >= self.execution.checkpoint_seconds:
                self._save()
                last_checkpoint = time.monotonic()
            if self.stop.received:
                self._stop(int(self.stop.received))
        return self.outcomes

    def _living(self) -> list[_Model]:
        return [model for model, live in zip(self.models, self.live, strict=True) if live]

    def _evaluate(self) -> bool:
        """Evaluate the models whose step it is, and let those that are done go; whether the pack got smaller."""
        step = self.pack.step_number
        due = [
            i
            for i, model in enumerate(self.models)
            if self.live[i] and (step % model.run.evaluate_every == 0 or step == model.run.steps)
        ]
        if not due:
            return False
        for i, mean in zip(due, self.pack.take_losses(due), strict=True):
            model, found = self.models[i], self.pack.evaluate(i)
            if not (math.isfinite(found.loss) and math.isfinite(mean)):
                self.live[i] = False
                self._fail(model, found.loss if math.isfinite(mean) else mean)
                continue
            accuracy = math.nan if found.accuracy is None else found.accuracy
            model.rows.append([step, mean, self.pack.rates[i], found.loss, accuracy])
            if step == model.run.steps or (model.run.stop_when_memorized and found.accuracy == 1.0):
                self.live[i] = False
                self._finish(i, found)
        return self._shrink()

    def _shrink(self) -> bool:
        """Let the models that are done leave once they are half of the pack: each size is compiled anew."""
        staying = [i for i, live in enumerate(self.live) if live]
        if not staying or 2 * len(staying) > len(self.models):
            return False
        self.pack.keep(staying)
        self.models = [self.models[i] for i in staying]
        self.live = [True] * len(staying)
        return True

    def _finish(self, i: int, found: Evaluation) -> None:
        model = self.models[i]
        steps = self.pack.step_number
        attention = self.pack.attention(i)
        largest = attention.max(-1).values  # [T, H]
        if model.run.keep_attention:
            self._keep_attention(model, largest)
        saturated = (largest > SATURATED).double()
        numbers: dict[str, Any] = {
            "final_loss": found.loss,
            "final_accuracy": found.accuracy,
            "memorized": found.accuracy == 1.0,
            "steps_done": steps,
            "saturated_share": saturated.mean().item(),
            "examples_with_free_head": (saturated.sum(1) < saturated.shape[1]).double().mean().item(),
            "wall_seconds": self.seconds,
            "model_steps_per_second": steps / self.seconds,
            "device": device_name(self.device),
            "threads": self.threads,
            "torch_version": str(torch.__version__),
            "peak_memory_bytes": peak_memory_bytes(self.device),
        }
        model.journal.finish(
            model.rows, {name: value for name, value in numbers.items() if value is not None}
        )
        self.outcomes[model.run.key] = records.FINISHED

    def _keep_attention(self, model: _Model, largest_TH: torch.Tensor) -> None:
        """The largest weight of each head for each example, for figure 3: `attention.npz` of the record."""
        content = io.BytesIO()
        values = largest_TH.float().cpu().numpy()
        np.savez(content, largest_weight=values, heads=values.shape[1], examples=values.shape[0])
        for folder in (model.journal.checkpoints, model.journal.out):
            records.write_bytes(folder / ATTENTION, content.getvalue())

    def _fail(self, model: _Model, loss: float) -> None:
        """Note that a model diverged, and let it go."""
        sentence = (
            f"The loss of {model.run.key} is {loss} at step {self.pack.step_number}; lower its learning rate "
            f"({model.run.learning_rate:g})."
        )
        model.journal.update(records.FAILED, self.pack.step_number, model.rows, sentence, for_good=True)
        self.outcomes[model.run.key] = sentence
        say(sentence)

    def _stop(self, number: int) -> None:
        self._save()
        sentence = (
            f"was stopped by signal {number} at step {self.pack.step_number}; start it again to resume."
        )
        self._note(records.KILLED, sentence)
        raise Stopped(f"A pack of {len(self._living())} models {sentence}", 128 + number)

    def _note(self, status: str, sentence: str | None = None) -> None:
        """Write where the models stand; it is for people, and a full disk must not end a pack for want of it."""
        try:
            for model in self._living():
                said = None if sentence is None else f"{model.run.key} {sentence}"
                model.journal.update(status, self.pack.step_number, model.rows, said)
            self.trouble = None
        except WriteFailed as error:
            if self.trouble is None:
                say(f"where the runs stand is not noted: {error}")
            self.trouble = error

    def _save(self) -> None:
        state = self.pack.state() | {
            "identity": self.mark,
            "keys": [model.run.key for model in self.models],
            "live": self.live,
            "rows": {model.run.key: model.rows for model in self.models},
            "seconds": self.seconds,
        }
        checkpoint.save_checkpoint(self.folder, self.pack.step_number, state)
