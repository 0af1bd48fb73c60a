"""The learning rate and the data order, as pure functions of the step."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from shapelaw.specs.kinds import PackedRun
from shapelaw.specs.runs import FALL_PARTS, Training


def learning_rate(training: Training, step: int) -> float:
    """The rate of update `step` (from 1): linear warm-up to the peak, then as `training.schedule` says."""
    if step <= training.warmup_steps:
        return training.learning_rate * step / training.warmup_steps
    if training.schedule == "constant":
        return training.learning_rate
    if training.schedule == "redecayed":
        return training.learning_rate * _left(training, step)
    progress = (step - training.warmup_steps) / max(1, training.steps - training.warmup_steps)
    return training.learning_rate * 0.5 * (1 + math.cos(math.pi * progress))


def _left(training: Training, step: int) -> float:
    """The share of a redecayed rate that is left: it falls from 1 to 0 in the last fifth before a test loss."""
    every = training.evaluate_every
    begun = (step - 1) // every * every
    end = min(begun + every, training.steps)
    fall = max(1, (end - begun) // FALL_PARTS)
    return min(1.0, (end - step) / fall)


def window_starts(seed: int, step: int, windows: int, batch_size: int) -> NDArray[np.int64]:
    """The starts of the windows of a step's batch, uniform over [0, windows): [batch_size].

    A pure function of its arguments (a counter-based generator), so a resumed run draws the same starts as an
    uninterrupted one; all shapes trained with one seed on one corpus see the same batches.
    """
    bits = np.random.Philox(key=seed, counter=[0, 0, 0, step])
    return np.random.Generator(bits).integers(0, windows, batch_size)


def dropout_seed(seed: int, step: int, part: int) -> int:
    """Seed of the dropout masks of one part (rank, micro-batch) of a step, below 2^63."""
    state = np.random.SeedSequence([seed, step, part]).generate_state(1, np.uint64)[0]
    return int(state) >> 1


def packed_rate(run: PackedRun, step: int) -> float:
    """The rate of a packed model's step (from 0): linear from a hundredth of the peak, then a cosine to zero."""
    warm = int(run.warmup * run.steps)
    if step < warm:
        return run.learning_rate * (0.01 + 0.99 * step / warm)
    return run.learning_rate * (1 + float(np.cos(np.pi * (step - warm) / (run.steps - warm)))) / 2
