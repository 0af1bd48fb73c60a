"""A two-layer ReLU network on the data of a memorization run (section 4.3 of Mahdavi et al. 2024).

Its input is the context's tokens and the query side by side, (n + 1) d numbers; examples, order, optimizer, schedule,
steps and early stopping are those of the run, so that only the network differs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from shapelaw.specs.memorizers import MemorizationRun
from shapelaw.theory.memorization import equal_relu_units
from shapelaw.training.examples import NONE, draw_examples, example_order
from shapelaw.training.schedule import packed_rate
from shapelaw.training.trainer import TrainingFailed


@dataclass(frozen=True)
class ReluResult:
    """The outcome of a trained ReLU network: loss on all examples, accuracy (None for numbers), steps taken."""

    units: int
    params: int
    loss: float
    accuracy: float | None
    steps: int


def units_of(run: MemorizationRun) -> int:
    """The most hidden units with no more parameters than the run's attention network; 0 if even one has more."""
    m = run.memorizer
    return equal_relu_units(m.total_params, m.context, m.width, m.outputs)


def train_relu(run: MemorizationRun, units: int) -> ReluResult:
    """Train one network of `units` hidden units on a CPU.

    Raises:
        ValueError: `units` is below 1.
        TrainingFailed: the loss is no longer finite.
    """
    if units < 1:
        raise ValueError(f"{units} hidden units are too few")
    inputs_TI, labels_T = flat_examples(run)
    network = _network(inputs_TI.shape[1], units, run)
    optimizer = torch.optim.Adam(network.parameters())
    for step in range(run.steps):
        order_B = example_order(run, step, 1)[0]
        at_B = torch.from_numpy(order_B[order_B != NONE])
        for group in optimizer.param_groups:
            group["lr"] = packed_rate(run, step)
        optimizer.zero_grad()
        torch.autograd.backward(_loss(network(inputs_TI[at_B]), labels_T[at_B]))
        optimizer.step()
        done = step + 1
        if done % run.evaluate_every == 0 or done == run.steps:
            loss, accuracy = _evaluate(network, inputs_TI, labels_T)
            if not math.isfinite(loss):
                raise TrainingFailed(
                    f"The loss of a ReLU network on {run.key} is {loss} at step {done}; lower its learning rate."
                )
            if run.stop_when_memorized and accuracy == 1.0:
                break
    params = sum(parameter.numel() for parameter in network.parameters())
    return ReluResult(units, params, loss, accuracy, done)


def flat_examples(run: MemorizationRun) -> tuple[Tensor, Tensor]:
    """Inputs [T, (n + 1) d], the context's tokens and then the query, and labels [T]."""
    drawn = draw_examples(run)
    contexts = drawn.contexts.flatten(-2)
    if run.context_type == "shared":
        contexts = contexts.expand(run.examples, -1)
    return torch.cat([contexts, drawn.queries], dim=1), drawn.labels


def _network(inputs: int, units: int, run: MemorizationRun) -> nn.Module:
    """A network with PyTorch's own initialisation by the run's seed; the caller's generator is left alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(run.seed)
        network = nn.Sequential(nn.Linear(inputs, units), nn.ReLU(), nn.Linear(units, run.memorizer.outputs))
    return network.to(getattr(torch, run.precision))


def _loss(outputs_Tc: Tensor, labels_T: Tensor) -> Tensor:
    """Cross-entropy in nats for classes, mean squared error for numbers."""
    if labels_T.is_floating_point():
        return (outputs_Tc[:, 0] - labels_T).square().mean()
    return functional.cross_entropy(outputs_Tc, labels_T)


def _evaluate(network: nn.Module, inputs_TI: Tensor, labels_T: Tensor) -> tuple[float, float | None]:
    with torch.no_grad():
        outputs_Tc = network(inputs_TI)
        loss = _loss(outputs_Tc, labels_T).item()
    if labels_T.is_floating_point():
        return loss, None
    return loss, (outputs_Tc.argmax(1) == labels_T).double().mean().item()
