"""A pack of product networks of one shape, each with its own target."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from shapelaw.models.pack_gradients import Parameters, gradients_through, losses
from shapelaw.models.product_network import forward, initial_parameters, mean_degrees
from shapelaw.specs.degrees import THRESHOLDS, DegreeRun
from shapelaw.training.packed import Evaluation, Pack
from shapelaw.training.targets import Examples, draw_batch, held_out, make_task


class DegreePack(Pack[DegreeRun]):
    """Product networks in training; those of one seed and R see the same examples.

    Args:
        runs: runs of one `group`.
        device: their device.
    """

    may_diverge = True

    def __init__(self, runs: Sequence[DegreeRun], device: torch.device) -> None:
        self.network = runs[0].network
        super().__init__(runs, [initial_parameters(self.network, run.seed) for run in runs], device)
        different = {run.examples_key: run for run in runs}
        self._tasks = {examples: make_task(run) for examples, run in different.items()}
        self._held_out = {
            examples: held_out(run, self._tasks[examples]) for examples, run in different.items()
        }

    def gradients(self) -> tuple[Tensor, Parameters]:
        """Each model's loss [P] on its next batch, and the gradients of all parameters."""
        drawn: dict[tuple[tuple[int, int], int], Examples] = {}
        for run, step in zip(self.runs, self.steps, strict=True):
            if (run.examples_key, step) not in drawn:
                drawn[run.examples_key, step] = draw_batch(run, self._tasks[run.examples_key], step)
        batches = [drawn[run.examples_key, step] for run, step in zip(self.runs, self.steps, strict=True)]
        x_PBi = torch.stack([batch.inputs for batch in batches]).to(self.device)
        y_PB = torch.stack([batch.labels for batch in batches]).to(self.device)
        return gradients_through(lambda leaves: forward(leaves, self.network, x_PBi), self.parameters, y_PB)

    def evaluate(self, model: int) -> Evaluation:
        """Loss and accuracy on held-out examples."""
        examples = self._held_out[self.runs[model].examples_key]
        x_1Bi, y_1B = examples.inputs[None].to(self.device), examples.labels[None].to(self.device)
        with torch.no_grad():
            outputs_1Bo = forward(self.alone(model), self.network, x_1Bi)
        accuracy = None
        if not y_1B.is_floating_point():
            accuracy = (outputs_1Bo.argmax(-1) == y_1B).double().mean().item()
        return Evaluation(losses(outputs_1Bo, y_1B).item(), accuracy)

    def numbers(self, model: int, found: Evaluation, rows: Sequence[Sequence[float]]) -> dict[str, Any]:
        """Steps to some losses, and the mean degree of the layers, which a mixture has learned."""
        run = self.runs[model]
        reached = {
            f"steps_to_{threshold:g}": steps_to(threshold, rows) for threshold in THRESHOLDS[run.target]
        }
        return {
            "mean_degree": mean_degrees(self.alone(model), self.network).mean().item(),
            **{name: steps for name, steps in reached.items() if steps is not None},
        }

    def rearranged(self, models: Sequence[int] | None) -> None:
        """Nothing to do: nothing here depends on the members of the pack."""


def steps_to(threshold: float, rows: Sequence[Sequence[float]]) -> float | None:
    """Training steps to a held-out loss, log-linear between two evaluations; None if it is not reached.

    Args:
        rows: rows of the history: step, training loss, rate, held-out loss, accuracy.
    """
    before: tuple[float, float] | None = None
    for step, _, _, loss, _ in rows:
        if loss <= threshold:
            if before is None or before[1] <= loss:
                return step
            share = math.log(before[1] / threshold) / math.log(before[1] / loss)
            return before[0] + share * (step - before[0])
        before = step, loss
    return None
