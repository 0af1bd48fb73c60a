"""A decoder's forward pass through torch.compile: hidden states in one piece or block by block, the loss in chunks.

The loss is compiled separately: one large graph would unroll the loop over its chunks, hundreds of them at V = 50,257.
The test loss is not compiled: a few batches are not worth another compilation.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from shapelaw.models.cross_entropy import linear_cross_entropy
from shapelaw.models.decoder import Decoder

CompiledPart = Literal["model", "blocks", "graphs"]
COMPILED_PARTS: tuple[CompiledPart, ...] = get_args(CompiledPart)


class CompiledDecoder(nn.Module):
    """The forward pass of a decoder, whose parameters it shares.

    Args:
        model: the decoder, whose parameters are shared.
        part: "model": all hidden states are one graph, which takes as long to compile as the network is deep.
            "blocks": one block is compiled and serves for all. "graphs": the whole model, replayed as CUDA graphs.
    """

    def __init__(self, model: Decoder, part: CompiledPart) -> None:
        super().__init__()
        self.model = model
        self._features: Callable[[Tensor], Tensor] = torch.compile(
            model.features, dynamic=False, mode="reduce-overhead" if part == "graphs" else None
        )
        if part == "blocks":
            blocks = [torch.compile(block, dynamic=False) for block in model.blocks]
            self._features = partial(model.features, blocks=blocks)

    def forward(self, ids_BT: Tensor, targets_BT: Tensor) -> Tensor:
        """Mean cross-entropy of the targets in nats per token, as `Decoder.forward`."""
        x_ND = self._features(ids_BT).flatten(0, 1)
        return linear_cross_entropy(x_ND, self.model.classifier.weight, targets_BT.flatten(), compiled=True)
