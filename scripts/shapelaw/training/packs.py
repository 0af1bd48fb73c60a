"""A pack: models of one family, trained together as one batched computation; and models that other packs left.

Each model has its own parameters, data, Adam state, learning rate and last step, and trains as it would alone. A
finished model leaves the pack. A pack is named by its members, so another grid makes other packs: each pack's folder
lists its members (`members.json`), and its checkpoints hold each model separately.
"""

from __future__ import annotations

import hashlib
import math
import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from shapelaw.errors import UserError, say
from shapelaw.models.kernels.cpp import compiler
from shapelaw.specs.kinds import AnyRun, PackedRun
from shapelaw.storage import records
from shapelaw.storage.pool import MEMBERS, PACK, packs_in
from shapelaw.training import checkpoint
from shapelaw.training.hardware import machine
from shapelaw.training.journal import Ended, UnderWay
from shapelaw.training.optimizer import fused_step, packed_rate

LANES = 16  # most numbers that a CPU multiplies at once
Tensors = dict[str, Tensor]
AnyPackedRun = TypeVar("AnyPackedRun", bound=PackedRun)
STATE_VERSION = 2  # part of a pack's name, of its checkpoints' format


@dataclass
class Evaluation:
    """Loss and accuracy (None for numbers) over all examples that a model is tested on."""

    loss: float
    accuracy: float | None


class Pack(ABC, Generic[AnyPackedRun]):
    """Some models in training, each at its own step.

    Args:
        runs: runs of one `family`.
        every: the initial parameters of each model.
        device: their device.

    Attributes:
        steps: the steps that each model has done.
        step_number: the most steps that a model of the pack has done, including models that left; it never falls.
        rates: the learning rates of each model's last step; empty before the first one here.
        live: whether each model is still in training; one that ended stays until half of them have.
        rows: each model's history.
        seconds: each model's share of the time, over all attempts.
    """

    def __init__(self, runs: Sequence[AnyPackedRun], every: Sequence[Tensors], device: torch.device) -> None:
        self.runs, self.device = list(runs), device
        self.steps, self.step_number = [0] * len(runs), 0
        self.parameters = {name: torch.stack([p[name] for p in every]).to(device) for name in every[0]}
        self.first = {name: torch.zeros_like(value) for name, value in self.parameters.items()}
        self.second = {name: torch.zeros_like(value) for name, value in self.parameters.items()}
        self.loss_sum_P = torch.zeros(len(runs), dtype=torch.float64, device=device)
        self.summed_P = torch.zeros(len(runs), dtype=torch.float64, device=device)  # steps in the sum
        self.rates: list[float] = []
        self.live = [True] * len(runs)
        self.rows: list[list[list[float]]] = [[] for _ in runs]
        self.seconds = [0.0] * len(runs)

    @abstractmethod
    def gradients(self) -> tuple[Tensor, Tensors]:
        """Each model's loss [P] on its next batch, and the gradients of all parameters."""

    @abstractmethod
    def evaluate(self, model: int) -> Evaluation:
        """The loss and accuracy of a model on its test examples."""

    @abstractmethod
    def numbers(self, model: int, found: Evaluation, rows: Sequence[Sequence[float]]) -> dict[str, Any]:
        """Further numbers for the record of a model that ended; `rows` is its history."""

    def rearranged(self, models: Sequence[int] | None) -> None:
        """Adapt to models that left: those at `places` stay; None means that only the models' steps have changed."""

    def files(self, model: int) -> dict[str, bytes]:
        """Further files for the record of a finished model, by name."""
        return {}

    def fitting(self, model: int, found: Tensors) -> Tensors:
        """The tensors of a model, from a `state`, in the shapes of this pack."""
        return found

    def rate(self, model: int) -> float:
        """The learning rate of a model's next step."""
        return packed_rate(self.runs[model], self.steps[model])

    def is_done(self, model: int, found: Evaluation) -> bool:
        """True if a model ends here, after an evaluation."""
        return self.steps[model] == self.runs[model].steps

    def alone(self, model: int) -> Tensors:
        """The parameters of a model as a pack of one."""
        return {name: value[model : model + 1] for name, value in self.parameters.items()}

    def step(self) -> None:
        """One Adam step of every model."""
        begin = time.monotonic()
        loss_P, found = self.gradients()
        self.rates = [self.rate(model) for model in range(len(self.runs))]
        self._adam(found)
        self.loss_sum_P += loss_P
        self.summed_P += 1
        self.steps = [step + 1 for step in self.steps]
        self.step_number += 1
        share = (time.monotonic() - begin) / len(self.runs)
        self.seconds = [seconds + share for seconds in self.seconds]

    def under_way(self) -> list[UnderWay]:
        """The models that have not ended."""
        return [
            UnderWay(run.key, step, run.steps, rows)
            for run, step, rows, live in zip(self.runs, self.steps, self.rows, self.live, strict=True)
            if live
        ]

    def ended(self) -> list[Ended]:
        """Evaluate the models that are due; those that are done or diverged end."""
        due = [i for i, live in enumerate(self.live) if live and _is_due(self.runs[i], self.steps[i])]
        ended = []
        for i, mean in zip(due, self.take_losses(due) if due else (), strict=True):
            found, step, rows = self.evaluate(i), self.steps[i], self.rows[i]
            if math.isfinite(found.loss) and math.isfinite(mean):
                accuracy = math.nan if found.accuracy is None else found.accuracy
                rows.append([step, mean, self.rates[i], found.loss, accuracy])
                if not self.is_done(i, found):
                    continue
                last = {"final_loss": found.loss, "final_accuracy": found.accuracy}
            else:
                last = {"diverged_at_step": step}
            self.live[i] = False
            numbers = last | self.numbers(i, found, rows) | self._costs(i)
            known = {name: value for name, value in numbers.items() if _is_known(value)}
            ended.append(Ended(self.runs[i].key, rows, known, self.files(i)))
        staying = [i for i, live in enumerate(self.live) if live]
        if ended and staying and 2 * len(staying) <= len(self.live):  # each size of a pack is compiled anew
            self.keep(staying)
        return ended

    def _costs(self, model: int) -> dict[str, Any]:
        return {
            "steps_done": self.steps[model],
            "wall_seconds": self.seconds[model],
            "model_steps_per_second": self.steps[model] / self.seconds[model],
            **machine(self.device),
        }

    def _adam(self, found: Mapping[str, Tensor]) -> None:
        """Step the models by Adam, with one call for neighbours at the same step and rate."""
        known = list(zip(self.steps, self.rates, strict=True))
        gradient = {name: found[name].contiguous() for name in self.parameters}
        for (step, rate), places in groupby(range(len(known)), key=known.__getitem__):
            first, *others = places
            models = slice(first, first + 1 + len(others))
            tables = (self.parameters, gradient, self.first, self.second)
            parameters, gradients, of_first, of_second = (_pieces(table, models) for table in tables)
            steps = torch.full((len(parameters),), float(step), device=self.device)
            fused_step(parameters, gradients, of_first, of_second, list(steps.unbind()), learning_rate=rate)

    def take_losses(self, models: Sequence[int]) -> list[float]:
        """The mean training loss of some models, each since its last reading."""
        chosen = torch.tensor(list(models), device=self.device)
        means: list[float] = (self.loss_sum_P[chosen] / self.summed_P[chosen].clamp(min=1)).tolist()
        self.loss_sum_P[chosen] = 0
        self.summed_P[chosen] = 0
        return means

    def keep(self, models: Sequence[int]) -> None:
        """Keep only these models."""
        chosen = torch.tensor(list(models), device=self.device)
        for table in (self.parameters, self.first, self.second):
            for name in table:
                table[name] = table[name][chosen].contiguous()
        self.loss_sum_P, self.summed_P = self.loss_sum_P[chosen], self.summed_P[chosen]
        self.runs = [self.runs[model] for model in models]
        self.steps = [self.steps[model] for model in models]
        self.rates = [self.rates[model] for model in models] if self.rates else []
        self.live = [self.live[model] for model in models]
        self.rows = [self.rows[model] for model in models]
        self.seconds = [self.seconds[model] for model in models]
        self.rearranged(models)

    def state(self) -> dict[str, Any]:
        """The content of a checkpoint; models are in the order of their places."""
        return {
            "keys": [run.key for run in self.runs],
            "live": self.live,
            "rows": self.rows,
            "seconds": self.seconds,
            "step_number": self.step_number,
            "steps": self.steps,
            "parameters": dict(self.parameters),
            "first": dict(self.first),
            "second": dict(self.second),
            "loss_sum": self.loss_sum_P,
            "summed": self.summed_P,
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Restore a `state` of the same runs."""
        for model in range(len(self.runs)):
            self.load_model(model, state, model)
        self.live = list(state["live"])
        self.step_number = state["step_number"]

    def load_model(self, model: int, state: Mapping[str, Any], place: int) -> None:
        """Restore one model from the `state` of any pack with models of its family."""
        for kind in ("parameters", "first", "second"):
            there = {name: values[place] for name, values in state[kind].items()}
            for name, values in self.fitting(model, there).items():
                getattr(self, kind)[name][model].copy_(values)
        self.loss_sum_P[model] = state["loss_sum"][place]
        self.summed_P[model] = state["summed"][place]
        self.steps[model] = state["steps"][place]
        self.rows[model] = [list(row) for row in state["rows"][place]]
        self.seconds[model] = state["seconds"][place]
        self.step_number = max(self.step_number, self.steps[model])
        self.rearranged(None)


def _pieces(tables: Mapping[str, Tensor], models: slice) -> list[Tensor]:
    """The tensors of some models for Adam, split so that a model's rounding does not depend on its neighbours.

    Adam's kernel on a CPU takes up to `LANES` numbers at once, and rounds the last few of a tensor differently. Tensors
    with such a remainder in each model are passed model by model.
    """
    pieces: list[Tensor] = []
    for table in tables.values():
        some = table[models]
        pieces += [some] if some[0].numel() % LANES == 0 else some.unbind()
    return pieces


def _is_due(run: PackedRun, step: int) -> bool:
    """True if a model is evaluated after that many steps."""
    return step % run.evaluate_every == 0 or step == run.steps


def _is_known(value: object) -> bool:
    return value is not None and not (isinstance(value, float) and not math.isfinite(value))


def can_compile(device: torch.device) -> bool:
    """True if torch.compile works here: on a CPU it needs a C++ compiler."""
    return device.type == "cuda" or compiler() is not None


@dataclass(frozen=True)
class Unfinished:
    """A model in a checkpoint.

    Attributes:
        mark: mark of the pack that wrote it.
        state: state of the whole pack.
        place: place of the model in the pack.
    """

    mark: str
    state: Mapping[str, Any]
    place: int

    @property
    def step(self) -> int:
        """The steps that the model has done."""
        return int(self.state["steps"][self.place])


def mark_of(runs: Sequence[PackedRun]) -> str:
    """The mark of a pack, from its runs in order and the format of its checkpoints."""
    parts = [str(STATE_VERSION), *(run.digest for run in runs)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def pack_folder(checkpoints: Path, mark: str) -> Path:
    """The folder of a pack's checkpoints."""
    return checkpoints / f"{PACK}{mark}"


def write_members(folder: Path, runs: Sequence[PackedRun]) -> None:
    """Write down the members of a pack.

    Raises:
        WriteFailed: the disk is full or gone.
    """
    records.write_json(folder / MEMBERS, {run.key: run.digest for run in runs})


def find_unfinished(checkpoints: Path, runs: Sequence[PackedRun], mark: str) -> dict[str, Unfinished]:
    """The checkpoint that has each model at its latest step, by key, among the newest ones of unfinished packs.

    The caller must hold the locks of the runs, so that no other process trains a pack with one of them.

    Args:
        mark: mark of the pack that asks; it wins where others are at the same step.
    """
    digests = {run.key: run.digest for run in runs}
    found: dict[str, Unfinished] = {}
    for folder, members in sorted(packs_in(checkpoints), key=lambda pack: pack[0].name != PACK + mark):
        if not members.items() & digests.items():
            continue
        its_mark = folder.name.removeprefix(PACK)
        state = checkpoint.load_newest(folder, its_mark, say)
        if state is None:
            continue
        for place, key in enumerate(state["keys"]):
            one = Unfinished(its_mark, state, place)
            # a checkpoint from before a model left may have more models than the pack has members now
            wanted = key in members and members[key] == digests.get(key) and state["live"][place]
            if wanted and (key not in found or one.step > found[key].step):
                found[key] = one
    return found


def forget_finished(results: Path, runs: Sequence[AnyRun]) -> None:
    """Delete the checkpoints of every pack that has one of these runs and whose members all have their records."""
    digests = {run.key: run.digest for run in runs}
    for folder, members in packs_in(results / records.CHECKPOINTS):
        shared = members.items() & digests.items()
        if shared and all(_is_done(results / records.RUNS / key, digest) for key, digest in members.items()):
            shutil.rmtree(folder)


def _is_done(folder: Path, digest: str) -> bool:
    """True if a folder has the record of a run of this spec."""
    try:
        return records.read_summary(folder).get("identity") == digest
    except UserError:  # missing or damaged
        return False
