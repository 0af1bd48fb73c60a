"""Cross-entropy of a linear classifier without the whole matrix of logits.

At V = 50,257 the logits are most of a step's memory. The rows are taken in chunks: each chunk's logits give its
loss and, at once, its part of the gradients, so that no more than one chunk's logits ever exist.
The idea is that of fused linear cross-entropy kernels (Liger, Hsu et al. 2024; cut cross-entropy, Wijmans et al. 2024).
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

CHUNK_ELEMENTS = 2**23  # logits in a chunk: 32 MiB in float32


def linear_cross_entropy(
    x_ND: Tensor, weight_VD: Tensor, targets_N: Tensor, chunk_elements: int = CHUNK_ELEMENTS
) -> Tensor:
    """Mean cross-entropy of `x @ weight.T` against the targets, in nats, float32.

    Takes the plain way where all logits fit in one chunk, else the chunked one.
    """
    N, V = x_ND.shape[0], weight_VD.shape[0]
    if chunk_elements >= N * V:
        return F.cross_entropy(F.linear(x_ND, weight_VD).float(), targets_N)
    if torch.is_autocast_enabled(x_ND.device.type):
        dtype = torch.get_autocast_dtype(x_ND.device.type)
        x_ND, weight_VD = x_ND.to(dtype), weight_VD.to(dtype)
    loss: Tensor = _ChunkedCrossEntropy.apply(  # type: ignore[no-untyped-call]
        x_ND, weight_VD, targets_N, max(1, chunk_elements // V)
    )
    return loss


class _ChunkedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x_ND: Tensor, weight_VD: Tensor, targets_N: Tensor, rows: int) -> Tensor:
        N = x_ND.shape[0]
        needs_x, needs_weight = ctx.needs_input_grad[0], ctx.needs_input_grad[1]
        total = torch.zeros((), dtype=torch.float32, device=x_ND.device)
        grad_x = torch.empty_like(x_ND) if needs_x else None
        grad_weight = torch.zeros_like(weight_VD, dtype=torch.float32) if needs_weight else None
        for start in range(0, N, rows):
            x, targets = x_ND[start : start + rows], targets_N[start : start + rows]
            log_p = F.log_softmax(F.linear(x, weight_VD).float(), dim=1)
            total -= log_p.gather(1, targets[:, None]).sum()
            if grad_x is None and grad_weight is None:
                continue
            grad = log_p.exp_()  # N times the gradient of the mean: softmax minus one at the target
            grad[torch.arange(len(x), device=x.device), targets] -= 1.0
            grad = grad.to(x.dtype)
            if grad_x is not None:
                torch.mm(grad, weight_VD, out=grad_x[start : start + rows])
            if grad_weight is not None:
                if grad_weight.dtype == grad.dtype:
                    grad_weight.addmm_(grad.T, x)
                else:
                    grad_weight += grad.T @ x
        ctx.save_for_backward(grad_x, grad_weight)
        ctx.weight_dtype, ctx.tokens = weight_VD.dtype, N
        return total / N

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, Tensor | None, None, None]:
        scale = grad_outputs[0] / ctx.tokens
        grad_x, grad_weight = ctx.saved_tensors
        if grad_x is not None:
            grad_x = grad_x * scale.to(grad_x.dtype)
        if grad_weight is not None:
            grad_weight = (grad_weight * scale).to(ctx.weight_dtype)
        return grad_x, grad_weight, None, None
