"""A pack of product networks of one shape, each with its own target, and these targets.

They are functions of known separation rank, and images of digits (Navon 2021, sections 3.3 and 3.4). Inputs of a step
are a pure function of (seed, step).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from shapelaw.errors import UserError
from shapelaw.models.memorizer import Parameters, gradients_through, losses
from shapelaw.models.product_network import forward, initial_parameters, mean_degrees
from shapelaw.specs.degrees import CONVERGED, FALL, LEAST, THRESHOLDS, DegreeRun
from shapelaw.training.packs import Evaluation, Pack

Array = npt.NDArray[np.float64]
FREQUENCY = 1.5  # standard deviation of a cosine's argument, in radians
TEST_EXAMPLES = 4096
_TARGET, _TRAIN, _TEST = range(3)  # streams of random numbers of a seed


@dataclass(frozen=True)
class SeparableTarget:
    """y(a, b) = s * sum over r of cos(<u_r, a> + p_r) cos(<v_r, b> + q_r): a sum of R products g_r(a) g'_r(b).

    With probability 1 its separation rank is R: the functions on each side are linearly independent.

    Attributes:
        directions: [2, R, half the inputs], u and v.
        phases: [2, R], p and q, uniform over a turn.
        scale: s, for a variance of 1 over standard normal inputs.
    """

    directions: Tensor
    phases: Tensor
    scale: float

    def __call__(self, x_Bi: Tensor) -> Tensor:
        """Values [B] at inputs [B, i]; their first half is a."""
        sides = torch.stack(x_Bi.chunk(2, dim=1))
        waves_2BR = torch.cos(torch.baddbmm(self.phases[:, None], sides, self.directions.transpose(1, 2)))
        return self.scale * waves_2BR.prod(0).sum(-1)


def draw_separable(inputs: int, rank: int, seed: int) -> SeparableTarget:
    """A random target, a function of its size and seed."""
    random = np.random.default_rng([seed, _TARGET])
    half = inputs // 2
    directions = random.standard_normal((2, rank, half)) * (FREQUENCY / math.sqrt(half))
    phases = random.random((2, rank)) * 2 * math.pi
    return SeparableTarget(
        torch.from_numpy(directions).float(),
        torch.from_numpy(phases).float(),
        1 / math.sqrt(_variance(directions, phases)),
    )


def singular_values(target: SeparableTarget) -> npt.NDArray[np.float64]:
    """The singular values of y as an operator between functions of a and of b, largest first: [R].

    Over standard normal inputs, exactly: from the Gram matrices of the g and of the g'. The sum of their squares is
    the second moment of y; its part beyond the first k is the least mean squared error of any function of separation
    rank k (Eckart and Young), so that y's epsilon-separation rank (eq. 9) can be computed.
    """
    left, right = (
        _gram(u.double().numpy(), p.double().numpy())
        for u, p in zip(target.directions, target.phases, strict=True)
    )
    # of A B^T with A A^T = left and B B^T = right
    values = np.linalg.svd(_root(left) @ _root(right), compute_uv=False)
    return target.scale * np.asarray(values)


def least_errors(target: SeparableTarget) -> npt.NDArray[np.float64]:
    """The least mean squared error of any function of separation rank 0, 1, ..., R: [R + 1] (y has variance 1)."""
    beyond = np.cumsum(singular_values(target)[::-1] ** 2)[::-1]
    return np.append(beyond, 0.0)


@dataclass(frozen=True)
class Examples:
    """Inputs [B, i] and their labels [B]: numbers, or classes (int64)."""

    inputs: Tensor
    labels: Tensor


@dataclass(frozen=True)
class DigitsTarget:
    """Scikit-learn's 1,797 images of digits, split by a seed: 80% for training.

    Attributes:
        train, test: pixels with mean 0 and mean square 1 over the training images, and classes.
    """

    train: Examples
    test: Examples


Task = SeparableTarget | DigitsTarget


def make_task(run: DegreeRun) -> Task:
    """The task that a run learns, from its target and seed: the same for all networks of one seed."""
    if run.target == "digits":
        return load_digits(run.seed)
    return draw_separable(run.network.inputs, run.target_rank, run.seed)


def draw_batch(run: DegreeRun, task: Task, step: int) -> Examples:
    """The batch of a step (from 0): fresh standard normal inputs, or images drawn with replacement."""
    random = np.random.default_rng([run.seed, _TRAIN, step])
    if isinstance(task, DigitsTarget):
        rows = torch.from_numpy(random.integers(0, len(task.train.labels), run.batch_size))
        return Examples(task.train.inputs[rows], task.train.labels[rows])
    return _labelled(run, task, random, run.batch_size)


def held_out(run: DegreeRun, task: Task) -> Examples:
    """The test examples of a run: 4,096 further inputs, or the remaining images."""
    if isinstance(task, DigitsTarget):
        return task.test
    return _labelled(run, task, np.random.default_rng([run.seed, _TEST]), TEST_EXAMPLES)


def load_digits(seed: int) -> DigitsTarget:
    """The images that come with scikit-learn, split by a seed. Its file is read; the library itself is not imported.

    Raises:
        UserError: scikit-learn is not installed.
    """
    package = find_spec("sklearn")
    if package is None or package.origin is None:
        raise UserError(
            "The target digits needs the images that come with scikit-learn: pip install scikit-learn."
        )
    table = np.loadtxt(Path(package.origin).parent / "datasets" / "data" / "digits.csv.gz", delimiter=",")
    pixels, classes = table[:, :-1].astype(np.float32), table[:, -1].astype(np.int64)
    order = np.random.default_rng([seed, _TARGET]).permutation(len(classes))
    chosen = order[: round(0.8 * len(order))]
    mean, spread = pixels[chosen].mean(), pixels[chosen].std()

    def examples(rows: npt.NDArray[np.int64]) -> Examples:
        return Examples(torch.from_numpy((pixels[rows] - mean) / spread), torch.from_numpy(classes[rows]))

    return DigitsTarget(examples(chosen), examples(order[len(chosen) :]))


def _labelled(run: DegreeRun, target: SeparableTarget, random: np.random.Generator, count: int) -> Examples:
    """Standard normal inputs with the target's values, or whether these are positive."""
    inputs = torch.from_numpy(random.standard_normal((count, run.network.inputs), dtype=np.float32))
    values = target(inputs)
    return Examples(inputs, (values > 0).long() if run.target == "signs" else values)


def _gram(directions: Array, phases: Array) -> Array:
    """E[cos(<u_r, a> + p_r) cos(<u_s, a> + p_s)] over standard normal a: [R, R]."""
    products, squares = directions @ directions.T, (directions**2).sum(1)
    lengths, shifts = squares[:, None] + squares, phases[:, None] - phases
    sums = phases[:, None] + phases
    minus = np.exp(products - lengths / 2) * np.cos(shifts)
    plus = np.exp(-products - lengths / 2) * np.cos(sums)
    return np.asarray((minus + plus) / 2)


def _root(gram: Array) -> Array:
    """The symmetric root of a positive matrix."""
    values, vectors = np.linalg.eigh(gram)
    return np.asarray((vectors * np.sqrt(values.clip(min=0))) @ vectors.T)


def _variance(directions: Array, phases: Array) -> float:
    """The variance of the sum of products over standard normal inputs."""
    grams = [_gram(u, p) for u, p in zip(directions, phases, strict=True)]
    means = np.exp(-(directions**2).sum(-1) / 2) * np.cos(phases)  # variance of each cosine
    return float((grams[0] * grams[1]).sum() - (means[0] * means[1]).sum() ** 2)


class DegreePack(Pack[DegreeRun]):
    """Product networks in training; those of one seed and R see the same examples.

    Args:
        runs: runs of one `group`.
        device: their device.
    """

    def __init__(self, runs: Sequence[DegreeRun], device: torch.device) -> None:
        self.network = runs[0].network
        # by a run's key: how many rows its history had, and the fall that follows from them
        self._falls: dict[str, tuple[int, tuple[int, int]]] = {}
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

    def rate(self, model: int) -> float:
        """The rate of a model's next step; until it converges the peak, after a twentieth of it as warm-up."""
        run, step = self.runs[model], self.steps[model]
        if not run.until_converged:
            return super().rate(model)
        warm, (begin, end) = int(run.warmup * run.steps * FALL), self._fall(model)
        risen = 1.0 if step >= warm else 0.01 + 0.99 * step / warm
        return run.learning_rate * risen * min(1.0, (end - step) / (end - begin))

    def is_done(self, model: int, found: Evaluation) -> bool:
        """True after the last step, or after the fall of the rate of a model that has converged."""
        done = super().is_done(model, found)
        return done or (self.runs[model].until_converged and self.steps[model] >= self._fall(model)[1])

    def _fall(self, model: int) -> tuple[int, int]:
        """The steps between which the rate falls to zero, by the model's history so far."""
        run, rows = self.runs[model], self.rows[model]
        known = self._falls.get(run.key)
        if known and known[0] == len(rows):
            return known[1]
        latest = math.floor(run.steps / (1.0 + FALL))
        begin = min(converged_at(rows, LEAST * run.steps) or latest, latest)
        every = run.evaluate_every
        fall = begin, min(run.steps, math.ceil(begin * (1.0 + FALL) / every) * every)
        self._falls[run.key] = len(rows), fall
        return fall

    def _outputs(self, model: int) -> tuple[Tensor, Tensor]:
        """What a model says of its held-out examples, [1, B, o], and their labels [1, B]."""
        examples = self._held_out[self.runs[model].examples_key]
        x_1Bi, y_1B = examples.inputs[None].to(self.device), examples.labels[None].to(self.device)
        with torch.no_grad():
            return forward(self.alone(model), self.network, x_1Bi), y_1B

    def evaluate(self, model: int) -> Evaluation:
        """Loss and accuracy on held-out examples."""
        outputs_1Bo, y_1B = self._outputs(model)
        accuracy = None
        if not y_1B.is_floating_point():
            accuracy = (outputs_1Bo.argmax(-1) == y_1B).double().mean().item()
        return Evaluation(losses(outputs_1Bo, y_1B).item(), accuracy)

    def numbers(self, model: int, found: Evaluation, rows: Sequence[Sequence[float]]) -> dict[str, Any]:
        """Steps to some losses, the mean degree of the layers, which a mixture has learned, and errors of numbers.

        The errors are the mean and the largest absolute one (the note's equations 13 and 12).
        """
        run, errors = self.runs[model], dict[str, Any]()
        if run.target == "separable":
            outputs_1Bo, y_1B = self._outputs(model)
            off = (outputs_1Bo[..., 0] - y_1B).abs()
            errors = {"mean_error": off.mean().item(), "largest_error": off.max().item()}
        if run.until_converged:
            errors["converged"] = converged_at(rows, LEAST * run.steps) is not None
        reached = {
            f"steps_to_{threshold:g}": steps_to(threshold, rows) for threshold in THRESHOLDS[run.target]
        }
        return {
            "mean_degree": mean_degrees(self.alone(model), self.network).mean().item(),
            **{name: steps for name, steps in reached.items() if steps is not None},
            **errors,
        }


def converged_at(rows: Sequence[Sequence[float]], least: float) -> int | None:
    """The first evaluation whose last half of the steps lowered the least held-out loss by less than `CONVERGED`.

    Args:
        rows: rows of the history: step, training loss, rate, held-out loss, accuracy.
        least: steps before which nothing has converged.
    """
    for place, (step, *_) in enumerate(rows):
        before = [one[3] for one in rows[:place] if 2 * one[0] <= step]
        lowest = min(one[3] for one in rows[: place + 1])
        if step >= least and before and lowest > (1 - CONVERGED) * min(before):
            return int(step)
    return None


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
