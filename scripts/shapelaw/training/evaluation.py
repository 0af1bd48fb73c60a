"""The test loss: a fixed set of windows, the same for every run on a corpus."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray

from shapelaw.corpora.token_store import TokenStore, evaluation_starts, gather_windows, window_bytes
from shapelaw.models.decoder import Decoder


@dataclass(frozen=True)
class EvaluationSet:
    """Windows to test on.

    Attributes:
        windows: token ids, [sequences, context_length + 1].
        tokens: targets in all of them.
        bytes: bytes of the targets' text.
    """

    windows: NDArray[np.int64]
    tokens: int
    bytes: int


def load_test_set(store: TokenStore, context_length: int, sequences: int) -> EvaluationSet:
    """The `sequences` windows of a test store, evenly spread over it.

    Raises:
        UserError: the store has fewer windows.
    """
    windows = gather_windows(store, evaluation_starts(store, context_length, sequences), context_length)
    targets = windows[:, 1:]
    return EvaluationSet(windows, targets.size, window_bytes(store, targets))


def bits_per_byte(test_loss: float, test_set: EvaluationSet) -> float:
    """Nats per token as bits per byte of text, the unit that different vocabularies share."""
    return test_loss * test_set.tokens / (math.log(2) * test_set.bytes)


@torch.no_grad()
def evaluate(
    model: Decoder, test_set: EvaluationSet, batch: int, device: torch.device, rank: int, world: int
) -> float:
    """Mean cross-entropy over the test set in nats per token, dropout off; each rank takes every world-th batch."""
    model.eval()
    total = torch.zeros((), dtype=torch.float64, device=device)
    for start in range(rank * batch, len(test_set.windows), world * batch):
        ids = torch.from_numpy(test_set.windows[start : start + batch]).to(device)
        total += model(ids[:, :-1], ids[:, 1:]).double() * ids[:, 1:].numel()
    model.train()
    if world > 1:
        dist.all_reduce(total)
    return float(total) / test_set.tokens
