"""The windows of a step's batch, on the device: from the memory map, or from tokens kept on the device."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from shapelaw.corpora.token_store import TokenStore, gather_windows

DEVICE_SHARE = 0.05  # share of a GPU's free memory for tokens that stay there
_TOKEN_BYTES = 4  # on the device: GPUs index few tables by uint16


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
