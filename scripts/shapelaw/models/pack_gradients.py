"""The losses of packed models, and their gradients by autograd. Suffixes: P models, B examples, c outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor
from torch.nn import functional

Parameters = dict[str, Tensor]


def losses(outputs_PBc: Tensor, labels_PB: Tensor, there_PB: Tensor | None = None) -> Tensor:
    """Each model's loss [P]: cross-entropy in nats for classes, mean squared error for numbers.

    Args:
        there_PB: True where a place of the batch has an example; all when None.
    """
    if labels_PB.is_floating_point():
        each_PB = (outputs_PBc[..., 0] - labels_PB).square()
    else:
        flat = functional.cross_entropy(outputs_PBc.flatten(0, 1), labels_PB.flatten(), reduction="none")
        each_PB = flat.view(labels_PB.shape)
    if there_PB is None:
        return each_PB.mean(1)
    return (each_PB * there_PB).sum(1) / there_PB.sum(1)


def gradients_through(
    outputs_of: Callable[[Parameters], Tensor],
    p: Mapping[str, Tensor],
    labels_PB: Tensor,
    there_PB: Tensor | None = None,
) -> tuple[Tensor, Parameters]:
    """Each model's loss [P] and all parameters' gradients, by autograd through a function to outputs [P, B, c]."""
    with torch.enable_grad():
        leaves = {name: value.detach().requires_grad_() for name, value in p.items()}
        loss_P = losses(outputs_of(leaves), labels_PB, there_PB)
        found = torch.autograd.grad(loss_P.sum(), list(leaves.values()))
    return loss_P.detach(), dict(zip(leaves, found, strict=True))
