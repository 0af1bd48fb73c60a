"""Training packs of memorizers to their records; resumable at any moment, like language runs."""

from __future__ import annotations

import hashlib
import io
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from shapelaw import records
from shapelaw.files import WriteFailed
from shapelaw.memorizers import MemorizationRun
from shapelaw.training import checkpoint
from shapelaw.training.hardware import choose_device, device_name, peak_memory_bytes, start_afresh
from shapelaw.training.journal import Journal
from shapelaw.training.loop import Stopped, lock_of
from shapelaw.training.packed import Evaluation, Pack, can_compile, keep_freed_memory
from shapelaw.training.signals import StopRequest
from shapelaw.training.trainer import DiskFull, Execution, say

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
        runs: of one `packed.group_of`.
        out: folder of the records.
        checkpoints: folder with one folder a run (its live and finished record) and the pack's own checkpoints.

    Returns:
        by key: "FINISHED", or the sentence of a run that can't go on; the others went on.

    Raises:
        UserError: the device can't do what is asked, or another process trains the pack.
        Stopped: SIGTERM, SIGUSR1 or SIGINT came; start again to resume.
        DiskFull: the disk is full; a checkpoint that can be read is left.
    """
    device = choose_device(execution.device, "float32")
    if execution.threads is not None:
        torch.set_num_threads(execution.threads)
    keep_freed_memory()
    start_afresh(device)
    mark = hashlib.sha256("\n".join(run.digest for run in runs).encode()).hexdigest()[:16]
    folder = checkpoints / f"pack-{mark}"
    with StopRequest() as stop, lock_of(runs[0], folder, execution, stop):
        models = [
            _Model(
                run, Journal(run, run.digest, {}, out / run.key, checkpoints / run.key, dict(execution.tags))
            )
            for run in runs
        ]
        try:
            return _Training(models, mark, folder, device, execution, stop).train()
        except WriteFailed as error:
            raise DiskFull(
                f"{str(error).removesuffix('.')}: {checkpoint.where_to_resume(folder)}."
            ) from error


class _Training:
    """A pack under way, with its journals."""

    def __init__(
        self,
        models: Sequence[_Model],
        mark: str,
        folder: Path,
        device: torch.device,
        execution: Execution,
        stop: StopRequest,
    ) -> None:
        self.models: list[_Model] = []
        self.outcomes: dict[str, str] = {}
        for model in models:
            if model.journal.restore_finished():
                self.outcomes[model.run.key] = records.FINISHED
                kept = model.journal.checkpoints / ATTENTION
                if kept.exists():
                    records.write_bytes(model.journal.out / ATTENTION, kept.read_bytes())
            elif failed := model.journal.failure_for_good():
                self.outcomes[model.run.key] = failed
            else:
                self.models.append(model)
        self.mark, self.folder, self.device, self.execution, self.stop = mark, folder, device, execution, stop
        self.seconds = 0.0  # a model's share of the time, summed over attempts
        self.threads = torch.get_num_threads()

    def train(self) -> dict[str, str]:
        if self.models:
            self._start()
        last_checkpoint = last_live = time.monotonic()
        while self.models:
            begin = time.monotonic()
            self.pack.step()
            self._evaluate()
            now = time.monotonic()
            self.seconds += (now - begin) / max(1, len(self.pack.runs))
            if now - last_live >= self.execution.live_seconds:
                self._note(records.RUNNING)
                last_live = now
            if self.models and now - last_checkpoint >= self.execution.checkpoint_seconds:
                self._save()
                last_checkpoint = time.monotonic()
            if self.models and self.stop.received:
                self._stop(int(self.stop.received))
        checkpoint.delete_checkpoints(self.folder)
        return self.outcomes

    def _start(self) -> None:
        runs = [model.run for model in self.models]
        work = sum(run.steps for run in runs)
        wished = work >= COMPILE_FROM if self.execution.compile is None else self.execution.compile
        state = checkpoint.load_newest(self.folder, self.mark, say)
        if state is None:
            self.pack = Pack(runs, self.device, wished and can_compile(self.device))
        else:  # those that were done since have their record
            by_key = {model.run.key: model for model in self.models}
            then = [model for model in state["keys"] if model in by_key or model in self.outcomes]
            everyone = [by_key[key].run if key in by_key else self._done(key) for key in then]
            self.pack = Pack(everyone, self.device, wished and can_compile(self.device))
            self.pack.load(state)
            live = [place for place, key in enumerate(then) if key in by_key]
            if len(live) < len(then):
                self.pack.keep(live)
            self.models = [by_key[then[place]] for place in live]
            for model in self.models:
                model.rows = [list(row) for row in state["rows"][model.run.key]]
            self.seconds = state["seconds"]
            say(f"resumed a pack of {len(self.models)} at step {self.pack.step_number}")
        for model in self.models:
            model.journal.start(self.pack.step_number, model.rows)

    def _done(self, key: str) -> MemorizationRun:
        """A run of the checkpoint that has finished since."""
        run = records.read_record(self.folder.parent / key).run
        assert isinstance(run, MemorizationRun)
        return run

    def _evaluate(self) -> None:
        """Evaluate the models whose step it is; those that are done write their record and leave."""
        step = self.pack.step_number
        due = [
            i for i, m in enumerate(self.models) if step % m.run.evaluate_every == 0 or step == m.run.steps
        ]
        if not due:
            return
        means, leaving = self.pack.take_losses(), []
        for i in due:
            model, found = self.models[i], self.pack.evaluate(i)
            accuracy = math.nan if found.accuracy is None else found.accuracy
            rate = self.pack.rates[i]
            model.rows.append([step, means[i], rate, found.loss, accuracy])
            if not (math.isfinite(found.loss) and math.isfinite(means[i])):
                leaving.append(i)
                self._fail(model, means[i])
            elif step == model.run.steps or (model.run.stop_when_memorized and found.accuracy == 1.0):
                leaving.append(i)
                self._finish(i, found)
        if leaving:
            staying = [i for i in range(len(self.models)) if i not in leaving]
            self.models = [self.models[i] for i in staying]
            if staying:
                self.pack.keep(staying)

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
        model.rows.pop()
        model.journal.update(records.FAILED, self.pack.step_number, model.rows, sentence, for_good=True)
        self.outcomes[model.run.key] = sentence
        say(sentence)

    def _stop(self, number: int) -> None:
        self._save()
        sentence = (
            f"was stopped by signal {number} at step {self.pack.step_number}; start it again to resume."
        )
        self._note(records.KILLED, sentence)
        raise Stopped(f"A pack of {len(self.models)} models {sentence}", 128 + number)

    def _note(self, status: str, sentence: str | None = None) -> None:
        for model in self.models:
            said = None if sentence is None else f"{model.run.key} {sentence}"
            model.journal.update(status, self.pack.step_number, model.rows, said)

    def _save(self) -> None:
        state = self.pack.state() | {
            "identity": self.mark,
            "keys": [model.run.key for model in self.models],
            "rows": {model.run.key: model.rows for model in self.models},
            "seconds": self.seconds,
        }
        checkpoint.save_checkpoint(self.folder, self.pack.step_number, state)
