"""A pack of memorizers of one shape (Mahdavi et al. 2024, eqs. 1-6)."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from shapelaw.memorizers import SATURATED_WEIGHT, MemorizationRun, Memorizer
from shapelaw.models.memorizer import forward, gradients, initial_parameters, positions
from shapelaw.models.memorizer_gradients import per_example_gradients, shared_gradients
from shapelaw.models.pack_gradients import Parameters, losses
from shapelaw.training.examples import NONE, draw_examples, example_order
from shapelaw.training.packed import Evaluation, Pack

ATTENTION = "attention.npz"
BLOCK = 64  # steps whose order is drawn at once
CACHE_BYTES = 2**20  # a CPU takes models one after the other where the contexts of one's batch are more
EVALUATED = 4096  # examples of a model that are evaluated at once
SIZES = 64  # of packs that one process may compile; a pack halves its size
Gradients = Callable[..., tuple[Tensor, Parameters]]


class MemorizerPack(Pack[MemorizationRun]):
    """Memorizers under way, each with examples of its own.

    Args:
        runs: of one `group`.
        device: where they are.
        compiled: run the gradients through torch.compile.
    """

    def __init__(self, runs: Sequence[MemorizationRun], device: torch.device, compiled: bool) -> None:
        self.memorizer = runs[0].memorizer
        dtype: torch.dtype = getattr(torch, runs[0].precision)
        every = [initial_parameters(self.memorizer, run.seed, dtype) for run in runs]
        super().__init__(runs, every, device)
        self.positions = positions(self.memorizer, dtype).to(device)
        drawn = [draw_examples(run) for run in runs]
        self._queries = torch.cat([examples.queries for examples in drawn]).to(device)  # of all models
        self._labels = torch.cat([examples.labels for examples in drawn]).to(device)
        contexts = [examples.contexts for examples in drawn]
        self._shared, self._short = runs[0].context_type == "shared", runs[0].last_batch == "short"
        self._contexts = (torch.stack(contexts) if self._shared else torch.cat(contexts)).to(device)
        sizes = torch.tensor([0, *(run.examples for run in runs)])
        self._begin = torch.cumsum(sizes, 0)[:-1].tolist()  # of each model's examples
        self._order: Iterator[Tensor] = iter(())
        self._gradients = choose_gradients(self.memorizer, self._shared, compiled)
        a_batch = runs[0].batch * self._contexts[0].numel() * self._contexts.element_size()
        self._by_model = not self._shared and device.type == "cpu" and a_batch > CACHE_BYTES

    def gradients(self) -> tuple[Tensor, Parameters]:
        """Each model's loss [P] on its next batch, and the gradients of all parameters."""
        at = self._next_order()
        there_PB = None
        if self._short:
            there_PB = (at != NONE).to(self.positions.dtype)
            at = at.clamp(min=0)
        if not self._by_model:
            return self._gradients_at(slice(None), at, there_PB)
        found = []
        for model in range(len(self.runs)):
            one = slice(model, model + 1)
            found.append(self._gradients_at(one, at[one], None if there_PB is None else there_PB[one]))
        gradients = {name: torch.cat([each[name] for _, each in found]) for name in self.parameters}
        return torch.cat([loss for loss, _ in found]), gradients

    def _gradients_at(self, models: slice, at: Tensor, there_PB: Tensor | None) -> tuple[Tensor, Parameters]:
        """`gradients` of some models by these rows of the examples' table: [P, B]."""
        parameters = {name: table[models] for name, table in self.parameters.items()}
        queries_PBd, labels_PB = _rows(self._queries, at), _rows(self._labels, at)
        contexts = self._contexts if self._shared else _rows(self._contexts, at)  # shared: of all models
        return self._gradients(
            parameters, self.memorizer, self.positions, queries_PBd, contexts, labels_PB, there_PB
        )

    def _next_order(self) -> Tensor:
        """Rows of the examples' table that this step takes, or `NONE`: [P, B]."""
        row = next(self._order, None)
        if row is None:
            orders = []
            for run, step, begin in zip(self.runs, self.steps, self._begin, strict=True):
                order = torch.from_numpy(example_order(run, step, BLOCK))
                orders.append(torch.where(order == NONE, NONE, order + begin))
            self._order = iter(torch.stack(orders, dim=1).to(self.device))
            row = next(self._order)
        return row

    def rearranged(self, models: Sequence[int] | None) -> None:
        """Take only these models' examples, in the order of the steps that the models are at."""
        self._order = iter(())
        if models is not None:
            self._begin = [self._begin[model] for model in models]
            if self._shared:
                self._contexts = self._contexts[torch.tensor(list(models), device=self.device)]

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
        alone = self.alone(model)
        for start in range(begin, end, EVALUATED):
            rows = slice(start, min(start + EVALUATED, end))
            contexts = self._contexts[model] if self._shared else self._contexts[rows]
            queries_1Td = self._queries[rows][None]
            with torch.no_grad():
                outputs, weights = forward(alone, self.memorizer, self.positions, queries_1Td, contexts[None])
            yield outputs, weights, self._labels[rows][None]

    def is_done(self, model: int, found: Evaluation) -> bool:
        """At its last step, or once everything is memorized."""
        return super().is_done(model, found) or (
            self.runs[model].stop_when_memorized and found.accuracy == 1.0
        )

    def numbers(self, model: int, found: Evaluation, rows: Sequence[Sequence[float]]) -> dict[str, Any]:
        """Whether everything is memorized, and how many heads are saturated."""
        saturated_TH = (self._largest(model) > SATURATED_WEIGHT).double()
        return {
            "memorized": found.accuracy == 1.0,
            "saturated_share": saturated_TH.mean().item(),
            "examples_with_free_head": (saturated_TH.sum(1) < saturated_TH.shape[1]).double().mean().item(),
        }

    def files(self, model: int) -> dict[str, bytes]:
        """The largest weight of each head for each example, for figure 3, of runs that keep it."""
        if not self.runs[model].keep_attention:
            return {}
        content = io.BytesIO()
        values = self._largest(model).float().cpu().numpy()
        np.savez(content, largest_weight=values, heads=values.shape[1], examples=values.shape[0])
        return {ATTENTION: content.getvalue()}

    def _largest(self, model: int) -> Tensor:
        """The largest attention weight of each head for each example: [T, H]."""
        return self.attention(model).max(-1).values


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
