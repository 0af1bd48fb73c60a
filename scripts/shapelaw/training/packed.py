"""A pack: memorizers of one shape, trained together as one batched computation.

Each model has its own parameters, examples, order, Adam state, learning rate and end, and follows the path that it
would follow alone. A model that is done leaves the pack.
"""

from __future__ import annotations

import ctypes
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import torch
from torch import Tensor
from torch.optim.adam import adam

from shapelaw.memorizers import MemorizationRun, Memorizer
from shapelaw.models.memorizer import (
    Parameters,
    forward,
    gradients,
    initial_parameters,
    losses,
    positions,
)
from shapelaw.models.memorizer_gradients import per_example_gradients, shared_gradients
from shapelaw.training.examples import draw_examples, example_order, learning_rate

BLOCK = 64  # steps whose order is drawn at once
EVALUATED = 4096  # examples of a model that are evaluated at once
LANES = 16  # numbers that a CPU multiplies at once, at most
SIZES = 64  # of packs that one process may compile; a pack halves its size
Gradients = Callable[..., tuple[Tensor, Parameters]]


@dataclass
class Evaluation:
    """What all examples of one model say: loss, accuracy (None for numbers)."""

    loss: float
    accuracy: float | None


class Pack:
    """Some models under way, each at a step of its own.

    Args:
        runs: of one `group`.
        device: where they are.
        compiled: run the gradients through torch.compile.

    Attributes:
        steps: that each model has done.
        step_number: of the pack: the most that a model of it has done, those that left too; it never falls.
        rates: the learning rates of each model's last step.
    """

    def __init__(self, runs: Sequence[MemorizationRun], device: torch.device, compiled: bool) -> None:
        if len({run.group for run in runs}) != 1:
            raise ValueError(
                "the models of a pack have one shape, task, context type, batch size and precision"
            )
        self.runs, self.device = list(runs), device
        self.steps, self.step_number = [0] * len(runs), 0
        self.memorizer = runs[0].memorizer
        dtype: torch.dtype = getattr(torch, runs[0].precision)
        self.positions = positions(self.memorizer, dtype).to(device)
        every = [initial_parameters(self.memorizer, run.seed, dtype) for run in runs]
        self.parameters = {name: torch.stack([p[name] for p in every]).to(device) for name in every[0]}
        self.first = {name: torch.zeros_like(value) for name, value in self.parameters.items()}
        self.second = {name: torch.zeros_like(value) for name, value in self.parameters.items()}
        self.loss_sum_P = torch.zeros(len(runs), dtype=torch.float64, device=device)
        self.summed_P = torch.zeros(len(runs), dtype=torch.float64, device=device)  # steps in it
        self.rates: list[float] = []
        drawn = [draw_examples(run) for run in runs]
        self._queries = torch.cat([examples.queries for examples in drawn]).to(device)  # of all models
        self._labels = torch.cat([examples.labels for examples in drawn]).to(device)
        contexts = [examples.contexts for examples in drawn]
        self._shared = runs[0].context_type == "shared"
        self._contexts = (torch.stack(contexts) if self._shared else torch.cat(contexts)).to(device)
        sizes = torch.tensor([0, *(run.examples for run in runs)])
        self._begin = torch.cumsum(sizes, 0)[:-1].tolist()  # of each model's examples
        self._order: Iterator[Tensor] = iter(())
        self._gradients = choose_gradients(self.memorizer, self._shared, compiled)

    def step(self) -> None:
        """One Adam step of every model."""
        at = self._next_order()
        queries_PBd, labels_PB = _rows(self._queries, at), _rows(self._labels, at)
        contexts = self._contexts if self._shared else _rows(self._contexts, at)
        loss_P, found = self._gradients(
            self.parameters, self.memorizer, self.positions, queries_PBd, contexts, labels_PB
        )
        self.rates = [learning_rate(run, step) for run, step in zip(self.runs, self.steps, strict=True)]
        self._adam(found)
        self.loss_sum_P += loss_P
        self.summed_P += 1
        self.steps = [step + 1 for step in self.steps]
        self.step_number += 1

    def _next_order(self) -> Tensor:
        """Rows of the examples' table that this step takes: [P, B]."""
        row = next(self._order, None)
        if row is None:
            orders = [
                torch.from_numpy(example_order(run, step, BLOCK)) + begin
                for run, step, begin in zip(self.runs, self.steps, self._begin, strict=True)
            ]
            self._order = iter(torch.stack(orders, dim=1).to(self.device))
            row = next(self._order)
        return row

    def _adam(self, found: Mapping[str, Tensor]) -> None:
        """One call for all models side by side that are at the same step and rate."""
        known = list(zip(self.steps, self.rates, strict=True))
        gradient = {name: found[name].contiguous() for name in self.parameters}
        with torch.no_grad():
            for (step, rate), places in groupby(range(len(known)), key=known.__getitem__):
                first, *others = places
                models = slice(first, first + 1 + len(others))
                parameters = _pieces(self.parameters, models)
                steps = torch.full((len(parameters),), float(step), device=self.device)
                adam(
                    parameters,
                    _pieces(gradient, models),
                    _pieces(self.first, models),
                    _pieces(self.second, models),
                    [],
                    list(steps.unbind()),
                    fused=True,
                    amsgrad=False,
                    beta1=0.9,
                    beta2=0.999,
                    lr=rate,
                    weight_decay=0.0,
                    eps=1e-8,
                    maximize=False,
                )

    def take_losses(self, models: Sequence[int]) -> list[float]:
        """The mean training losses of some models since each was last asked for."""
        chosen = torch.tensor(list(models), device=self.device)
        means: list[float] = (self.loss_sum_P[chosen] / self.summed_P[chosen].clamp(min=1)).tolist()
        self.loss_sum_P[chosen] = 0
        self.summed_P[chosen] = 0
        return means

    def attention(self, model: int) -> Tensor:
        """The attention weights of all examples of a model: [T, H, n]."""
        return torch.cat([weights[0] for _, weights, _ in self._parts(model)])

    def evaluate(self, model: int) -> Evaluation:
        """The loss and accuracy of a model on all its examples."""
        run, total, right = self.runs[model], 0.0, 0
        for outputs, _, labels in self._parts(model):
            total += losses(outputs, labels).item() * labels.shape[1]
            if run.task == "classification":
                right += int((outputs.argmax(-1) == labels).sum())
        accuracy = right / run.examples if run.task == "classification" else None
        return Evaluation(total / run.examples, accuracy)

    def _parts(self, model: int) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Outputs, attention weights and labels of all examples of a model, `EVALUATED` at a time."""
        begin, end = self._begin[model], self._begin[model] + self.runs[model].examples
        alone = {name: value[model : model + 1] for name, value in self.parameters.items()}
        for start in range(begin, end, EVALUATED):
            rows = slice(start, min(start + EVALUATED, end))
            contexts = self._contexts[model] if self._shared else self._contexts[rows]
            queries_1Td = self._queries[rows][None]
            with torch.no_grad():
                outputs, weights = forward(alone, self.memorizer, self.positions, queries_1Td, contexts[None])
            yield outputs, weights, self._labels[rows][None]

    def keep(self, models: Sequence[int]) -> None:
        """Let all other models leave."""
        chosen = torch.tensor(list(models), device=self.device)
        for table in (self.parameters, self.first, self.second):
            for name in table:
                table[name] = table[name][chosen].contiguous()
        self.loss_sum_P, self.summed_P = self.loss_sum_P[chosen], self.summed_P[chosen]
        self.runs = [self.runs[model] for model in models]
        self.steps = [self.steps[model] for model in models]
        self.rates = [self.rates[model] for model in models] if self.rates else []
        self._begin = [self._begin[model] for model in models]
        if self._shared:
            self._contexts = self._contexts[chosen]
        self._order = iter(())

    def state(self) -> dict[str, Any]:
        """What a checkpoint needs, beside the runs; models stand in it by their place."""
        return {
            "step_number": self.step_number,
            "steps": self.steps,
            "parameters": dict(self.parameters),
            "first": dict(self.first),
            "second": dict(self.second),
            "loss_sum": self.loss_sum_P,
            "summed": self.summed_P,
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on from a `state` of the same runs."""
        for model in range(len(self.runs)):
            self.load_model(model, state, model)
        self.step_number = state["step_number"]

    def load_model(self, model: int, state: Mapping[str, Any], place: int) -> None:
        """Let one model go on from where it stands in the `state` of any pack with models of its shape."""
        for kind in ("parameters", "first", "second"):
            for name, values in getattr(self, kind).items():
                values[model].copy_(state[kind][name][place])
        self.loss_sum_P[model] = state["loss_sum"][place]
        self.summed_P[model] = state["summed"][place]
        self.steps[model] = state["steps"][place]
        self.step_number = max(self.step_number, self.steps[model])
        self._order = iter(())


def _pieces(tables: Mapping[str, Tensor], models: slice) -> list[Tensor]:
    """What Adam takes of some models, so that how one is rounded does not hang on how many go with it.

    Adam's kernel on a CPU takes up to `LANES` numbers at once, and rounds the last few of a tensor in another way.
    Tables with such a rest in each model are given model by model.
    """
    pieces: list[Tensor] = []
    for table in tables.values():
        some = table[models]
        pieces += [some] if some[0].numel() % LANES == 0 else some.unbind()
    return pieces


def _rows(table: Tensor, at_PB: Tensor) -> Tensor:
    """`table[at_PB]`, several times as fast on a CPU."""
    return table.index_select(0, at_PB.flatten()).view(*at_PB.shape, *table.shape[1:])


def choose_gradients(m: Memorizer, shared: bool, compiled: bool) -> Gradients:
    """The gradients of a pack: written out where they are, by autograd otherwise; compiled where that is asked.

    A pack is compiled at each of its sizes. More than `SIZES` would be run uncompiled without a word; that is made an
    error here.
    """
    if m.attend_to_query or not (shared or m.values == 1):
        return gradients
    written = shared_gradients if shared else per_example_gradients
    if not compiled:
        return written
    from torch._dynamo import config

    config.recompile_limit = SIZES
    config.fail_on_recompile_limit_hit = True
    return torch.compile(written, dynamic=False, fullgraph=True)


def can_compile(device: torch.device) -> bool:
    """Whether torch.compile has what it needs here: on a CPU, a C++ compiler."""
    return device.type == "cuda" or any(shutil.which(name) for name in ("g++", "clang++"))


def keep_freed_memory() -> None:
    """Tell glibc to keep what is freed: a step would else give back and fault in its megabytes again, every time.

    Without it a step of 4 models with 20 heads takes 1.5 to 2 times as long. Other C libraries are left as they are.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        trim_threshold, mmap_threshold = -1, -3
        mallopt(mmap_threshold, 2**30)
        mallopt(trim_threshold, 2**30)
