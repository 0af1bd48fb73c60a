"""The random examples that memorizers learn, and their order (Mahdavi et al. 2024, section 5.2)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from shapelaw.specs.memorizers import MemorizationRun

NONE = -1  # in an order: no example
_CONTEXTS, _QUERIES, _LABELS, _ORDER = range(4)  # streams of random numbers of a seed


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
