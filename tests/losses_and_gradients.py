"""What a decoder computes for a few tokens."""

import torch

from shapelaw.models.decoder import Decoder


def losses_and_gradients(forward: torch.nn.Module, model: Decoder, ids: torch.Tensor) -> list[torch.Tensor]:
    """The loss and every gradient of two micro-batches."""
    model.zero_grad()
    losses = [forward(part[:, :-1], part[:, 1:]) for part in ids.split(2)]
    torch.stack(losses).sum().backward()
    return [*losses, *(p.grad.clone() for p in model.parameters() if p.grad is not None)]
