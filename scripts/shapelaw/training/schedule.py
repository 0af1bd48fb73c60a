"""The learning rate, the data order and the windows of a step, as pure functions of the step."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from shapelaw.corpora.token_store import TokenStore, gather_windows
from shapelaw.specs.kinds import PackedRun
from shapelaw.specs.runs import FALL_PARTS, Training

DEVICE_SHARE = 0.05  # share of a GPU's free memory for tokens that stay there
_TOKEN_BYTES = 4  # on the device: GPUs index few tables by uint16


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


class Batches:
    """Windows of a store by their starts.

    Args:
        store: the tokens.
        context_length: N; a window has N + 1 tokens.
        device: device of the batches.
        resident: keep the tokens on the device; when None, on a GPU with room for them.
    """

    def __init__(
        self, store: TokenStore, context_length: int, device: torch.device, resident: bool | None = None
    ) -> None:
        self.store, self.context_length, self.device = store, context_length, device
        self._tokens: Tensor | None = None
        if _has_room(len(store.tokens), device) if resident is None else resident:
            self._tokens = torch.from_numpy(store.tokens.astype(np.int32)).to(device)
            self._offsets = torch.arange(context_length + 1, device=device)

    @property
    def windows(self) -> int:
        """The number of possible starts."""
        return len(self.store.tokens) - self.context_length

    def gather(self, starts: NDArray[np.integer[Any]]) -> Tensor:
        """The windows that begin at `starts` [B]: int64 [B, N + 1], on the device."""
        if self._tokens is None:
            batch = gather_windows(self.store, starts, self.context_length)
            return torch.from_numpy(batch).to(self.device, non_blocking=True)
        places = torch.from_numpy(starts).to(self.device, non_blocking=True)[:, None] + self._offsets
        return self._tokens[places].long()


def _has_room(tokens: int, device: torch.device) -> bool:
    """True if a GPU can spare the memory; a CPU reads the memory map."""
    return (
        device.type == "cuda" and _TOKEN_BYTES * tokens <= DEVICE_SHARE * torch.cuda.mem_get_info(device)[0]
    )
