"""What a decoder computes for a few tokens."""

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from shapelaw.models.decoder import Decoder


def losses_and_gradients(forward: torch.nn.Module, model: Decoder, ids: torch.Tensor) -> list[torch.Tensor]:
    """The loss and every gradient of two micro-batches."""
    model.zero_grad()
    losses = [forward(part[:, :-1], part[:, 1:]) for part in ids.split(2)]
    torch.stack(losses).sum().backward()
    return [*losses, *(p.grad.clone() for p in model.parameters() if p.grad is not None)]


def counted_flops(model: Decoder, ids: torch.Tensor) -> int:
    """PyTorch's count of a forward pass; it knows the plain attention kernel, not the CPU's fused one."""
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter, torch.no_grad():
        model.logits(ids)
    return int(counter.get_total_flops())
