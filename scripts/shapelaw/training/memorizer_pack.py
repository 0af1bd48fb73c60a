"""A pack of memorizers (Mahdavi et al. 2024, eqs. 1-6), padded with zeros to one shape if theirs differ.

The random examples that they learn, and the order of these, are functions of a run's seed (section 5.2).
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import pad

from shapelaw.models import memorizer
from shapelaw.specs.memorizers import SATURATED_WEIGHT, MemorizationRun, Memorizer, common_shape
from shapelaw.training.packs import Evaluation, Pack, Tensors

NONE = -1  # in an order: no example
_CONTEXTS, _QUERIES, _LABELS, _ORDER = range(4)  # streams of random numbers of a seed
ATTENTION = "attention.npz"
BLOCK = 64  # steps whose batches are drawn at once
EVALUATED = 4096  # examples of a model that are evaluated at once
SIZES = 64  # pack sizes that one process may compile; a pack halves its size
Gradients = Callable[..., tuple[Tensor, memorizer.Parameters]]


@dataclass(frozen=True)
class Examples:
    """The examples that one model memorizes.

    Attributes:
        queries: [T, d], uniform in [0, 1).
        contexts: [n, d] shared, or [T, n, d]; uniform in [0, 1).
        labels: [T], classes (int64) or numbers uniform in [0, 1).
    """

    queries: Tensor
    contexts: Tensor
    labels: Tensor


def draw_examples(run: MemorizationRun) -> Examples:
    """The examples of a run, a function of its seed: a larger T begins with the examples of a smaller one."""
    m, dtype = run.memorizer, getattr(torch, run.precision)

    def uniform(stream: int, *size: int) -> Tensor:
        return torch.from_numpy(np.random.default_rng([run.seed, stream]).random(size)).to(dtype)

    each = () if run.context_type == "shared" else (run.examples,)
    labels = uniform(_LABELS, run.examples)
    if run.task == "classification":
        labels = (uniform(_LABELS, run.examples).double() * m.outputs).long().clamp_(max=m.outputs - 1)
    return Examples(
        uniform(_QUERIES, run.examples, m.width), uniform(_CONTEXTS, *each, m.context, m.width), labels
    )


def example_order(run: MemorizationRun, first: int, steps: int) -> npt.NDArray[np.int64]:
    """The examples of the steps `first`, ..., `first + steps - 1` (from 0): [steps, B].

    Each epoch has its own random order. A batch may take the end of one epoch and the start of the next, so that every
    batch is full; or, where the last batch of an epoch is short, it has `NONE` in its other places. The order depends
    on seed and step alone.
    """
    batch, total = run.batch, run.examples
    of_epoch = total if run.last_batch == "filled" else math.ceil(total / batch) * batch  # places
    places = np.arange(first * batch, (first + steps) * batch)
    order = np.empty(len(places), np.int64)
    for epoch in range(places[0] // of_epoch, places[-1] // of_epoch + 1):
        shuffled = np.random.default_rng([run.seed, _ORDER, epoch]).permutation(total)
        shuffled = np.append(shuffled, np.full(of_epoch - total, NONE))
        here = places // of_epoch == epoch
        order[here] = shuffled[places[here] - epoch * of_epoch]
    return order.reshape(steps, batch)


class MemorizerPack(Pack[MemorizationRun]):
    """Memorizers in training, each with its own examples.

    Args:
        runs: runs of one `family`.
        device: their device.
        compiled: compute PyTorch's gradients through torch.compile.

    Attributes:
        memorizer: the shape of the pack: the most heads, context and head dimension of its models.
    """

    def __init__(self, runs: Sequence[MemorizationRun], device: torch.device, compiled: bool) -> None:
        self.memorizer = common_shape(run.memorizer for run in runs)
        dtype: torch.dtype = getattr(torch, runs[0].precision)
        own = [memorizer.initial_parameters(run.memorizer, run.seed, dtype) for run in runs]
        every = [
            memorizer.reshaped(p, run.memorizer, self.memorizer) for run, p in zip(runs, own, strict=True)
        ]
        super().__init__(runs, every, device)
        self.positions = memorizer.positions(self.memorizer, dtype).to(device)
        drawn = [draw_examples(run) for run in runs]
        self._queries = torch.cat([examples.queries for examples in drawn]).to(device)  # of all models
        self._labels = torch.cat([examples.labels for examples in drawn]).to(device)
        n = self.memorizer.context
        contexts = [pad(examples.contexts, (0, 0, 0, n - examples.contexts.shape[-2])) for examples in drawn]
        self._shared, self._short = runs[0].context_type == "shared", runs[0].last_batch == "short"
        self._contexts = (torch.stack(contexts) if self._shared else torch.cat(contexts)).to(device)
        sizes = torch.tensor([0, *(run.examples for run in runs)])
        self._begin = torch.cumsum(sizes, 0)[:-1].tolist()  # of each model's examples
        self._order: Iterator[Tensor] = iter(())
        self._absent = self._absent_tokens()
        self._compiled = compiled
        self._choose_gradients()

    def gradients(self) -> tuple[Tensor, memorizer.Parameters]:
        """Each model's loss [P] on its next batch, and the gradients of all parameters."""
        at, masks = self._next_order(), {}
        if self._short:
            masks["there_PB"] = (at != NONE).to(self.positions.dtype)
            at = at.clamp(min=0)
        if self._absent is not None:
            masks["absent_Pn"] = self._absent
        contexts: Tensor | memorizer.Picked = self._contexts  # shared: of all models
        if not self._shared:
            contexts = memorizer.Picked(self._contexts, at) if self._picks else _rows(self._contexts, at)
        queries_PBd, labels_PB = _rows(self._queries, at), _rows(self._labels, at)
        batch = memorizer.Batch(self.positions, queries_PBd, contexts, labels_PB, **masks)
        return self._gradients(self.parameters, self.memorizer, batch)

    def _choose_gradients(self) -> None:
        """Choose the kernel, which reads tokens in place, for contexts per example on a CPU; else PyTorch."""
        m = self.memorizer
        self._picks = not self._shared and memorizer.is_possible(m, self.positions.dtype, self.device)
        self._gradients: Gradients = memorizer.kernel_gradients
        if not self._picks:
            self._gradients = choose_gradients(m, self._shared, self._compiled)

    def _next_order(self) -> Tensor:
        """The rows, [P, B], of the table of examples that this step takes, or `NONE`."""
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
        """Keep only these models' examples, in the order of the models' current steps, and their shape."""
        self._order = iter(())
        if models is None:
            return
        self._begin = [self._begin[model] for model in models]
        if self._shared:
            self._contexts = self._contexts[torch.tensor(list(models), device=self.device)]
        shape = common_shape(run.memorizer for run in self.runs)
        if shape != self.memorizer:
            for table in (self.parameters, self.first, self.second):
                table.update(memorizer.reshaped(table, self.memorizer, shape))
            self.memorizer = shape
            self.positions = self.positions[: shape.context + 1]
            self._contexts = self._contexts[..., : shape.context, :].contiguous()
            if self._picks:
                self._choose_gradients()
        self._absent = self._absent_tokens()

    def alone(self, model: int) -> Tensors:
        """The parameters of one model in its own shape, as a pack of one."""
        return memorizer.reshaped(super().alone(model), self.memorizer, self.runs[model].memorizer)

    def fitting(self, model: int, found: Tensors) -> Tensors:
        """The tensors of a model from a pack, which may have been padded to another shape."""
        heads, _, head_dim = found["w_q"].shape
        there, own = replace(self.memorizer, heads=heads, head_dim=head_dim), self.runs[model].memorizer
        return memorizer.reshaped(memorizer.reshaped(found, there, own), own, self.memorizer)

    def _absent_tokens(self) -> Tensor | None:
        """[P, n], True where a model's context has no token; None if all contexts have one length."""
        lengths = torch.tensor([run.memorizer.context for run in self.runs])
        absent_Pn = torch.arange(self.memorizer.context) >= lengths[:, None]
        return absent_Pn.to(self.device) if absent_Pn.any() else None

    def attention(self, model: int) -> Tensor:
        """The attention weights of all examples of a model: [T, H, n]."""
        return torch.cat([weights[0] for _, weights, _ in self._parts(model)])

    def evaluate(self, model: int) -> Evaluation:
        """The loss and accuracy of a model on all its examples."""
        run, total, right = self.runs[model], 0.0, 0
        for outputs, _, labels in self._parts(model):
            total += memorizer.losses(outputs, labels).item() * labels.shape[1]
            if run.task == "classification":
                right += int((outputs.argmax(-1) == labels).sum())
        accuracy = right / run.examples if run.task == "classification" else None
        return Evaluation(total / run.examples, accuracy)

    def _parts(self, model: int) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Yield outputs, attention weights and labels of all examples of a model, `EVALUATED` at a time."""
        begin, end = self._begin[model], self._begin[model] + self.runs[model].examples
        alone, m = self.alone(model), self.runs[model].memorizer
        for start in range(begin, end, EVALUATED):
            rows = slice(start, min(start + EVALUATED, end))
            contexts = self._contexts[model] if self._shared else self._contexts[rows]
            contexts_1 = contexts[None, ..., : m.context, :]
            with torch.no_grad():
                outputs, weights = memorizer.forward(
                    alone, m, self.positions[: m.context + 1], self._queries[rows][None], contexts_1
                )
            yield outputs, weights, self._labels[rows][None]

    def is_done(self, model: int, found: Evaluation) -> bool:
        """True at the model's last step, or once it has memorized everything."""
        return super().is_done(model, found) or (
            self.runs[model].stop_when_memorized and found.accuracy == 1.0
        )

    def numbers(self, model: int, found: Evaluation, rows: Sequence[Sequence[float]]) -> dict[str, Any]:
        """Record numbers: whether the model has memorized everything, and how many of its heads are saturated.

        None where it diverged.
        """
        if not math.isfinite(found.loss):
            return {}
        saturated_TH = (self._largest(model) > SATURATED_WEIGHT).double()
        return {
            "memorized": found.accuracy == 1.0,
            "saturated_share": saturated_TH.mean().item(),
            "examples_with_free_head": (saturated_TH.sum(1) < saturated_TH.shape[1]).double().mean().item(),
        }

    def files(self, model: int) -> dict[str, bytes]:
        """The largest weight of each head for each example (figure 3), for runs that keep it."""
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
    """`table[at_PB]`, several times faster on a CPU."""
    return table.index_select(0, at_PB.flatten()).view(*at_PB.shape, *table.shape[1:])


def choose_gradients(m: Memorizer, shared: bool, compiled: bool) -> Gradients:
    """The function for a pack's gradients: the written-out one if it exists, else autograd's; compiled if asked.

    A pack is compiled at each of its sizes. torch.compile silently runs more than `SIZES` uncompiled; here that is an
    error.
    """
    if m.attend_to_query or not (shared or m.values == 1):  # they are not written out
        return memorizer.gradients
    written = memorizer.shared_gradients if shared else memorizer.per_example_gradients
    if not compiled:
        return written
    from torch._dynamo import config

    config.recompile_limit = SIZES
    config.fail_on_recompile_limit_hit = True
    return torch.compile(written, dynamic=False, fullgraph=True)
