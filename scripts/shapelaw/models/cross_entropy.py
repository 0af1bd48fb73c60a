"""Cross-entropy of a linear classifier without the whole matrix of logits.

At V = 50,257 the logits are most of a step's memory. The rows are taken in chunks: each chunk's logits give its loss
and, at once, its part of the gradients, so that only one chunk's logits exist at a time. The idea is that of fused
linear cross-entropy kernels (Liger, Hsu et al. 2024; cut cross-entropy, Wijmans et al. 2024).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

# logits in a chunk: 28 MiB in float32, so that the C library keeps the two buffers of a chunk for the next one (it
# gives back what is free beyond 64 MiB)
CHUNK_ELEMENTS = 7 * 2**20
GPU_CHUNK_ELEMENTS = 2**27  # the same on a GPU, which a small product leaves idle: 256 MiB in bfloat16
GPU_COLUMNS_OF = 64


def linear_cross_entropy(
    x_ND: Tensor,
    weight_VD: Tensor,
    targets_N: Tensor,
    chunk_elements: int | None = None,
    compiled: bool = False,
    columns_of: int | None = None,
    linear: Callable[[Tensor, Tensor], Tensor] = F.linear,
) -> Tensor:
    """Mean cross-entropy of `x @ weight.T` against the targets, in nats, float32.

    Computes all logits at once where they fit in one chunk, else chunk by chunk.

    Args:
        chunk_elements: logits in a chunk; chosen for the device when None.
        compiled: compute a chunk's loss and gradient from its logits in one compiled function, whatever their number.
        columns_of: pad a compiled chunk to a multiple of this many columns, since tensor cores want aligned rows, not
            rows of 257 or 50,257 numbers; 64 on a GPU when None, 1 on a CPU.
        linear: the linear map to use when all logits are in one chunk.
    """
    N, V = x_ND.shape[0], weight_VD.shape[0]
    if chunk_elements is None:
        chunk_elements = CHUNK_ELEMENTS if x_ND.device.type == "cpu" else GPU_CHUNK_ELEMENTS
    if chunk_elements >= N * V and not compiled:
        return F.cross_entropy(linear(x_ND, weight_VD).float(), targets_N)
    if torch.is_autocast_enabled(x_ND.device.type):
        dtype = torch.get_autocast_dtype(x_ND.device.type)
        x_ND, weight_VD = x_ND.to(dtype), weight_VD.to(dtype)
    rows = max(1, min(N, chunk_elements // V))
    if compiled:
        if columns_of is None:
            columns_of = 1 if x_ND.device.type == "cpu" else GPU_COLUMNS_OF
        rows, weight_VD = equal_rows(N, rows), F.pad(weight_VD, (0, 0, 0, -V % columns_of))
    loss: Tensor = _ChunkedCrossEntropy.apply(  # type: ignore[no-untyped-call]
        x_ND, weight_VD, targets_N, rows, V if compiled else None
    )
    return loss


def equal_rows(rows: int, most: int) -> int:
    """Rows of a chunk, at most `most`: equal chunks where that takes less than twice as many of them.

    A compiled function is compiled once for each number of rows.
    """
    least = -(-rows // most)
    parts = next((n for n in range(least, min(2 * least, rows + 1)) if rows % n == 0), least)
    return -(-rows // parts)


CompiledLoss = Callable[[Tensor, Tensor, int], tuple[Tensor, Tensor]]


def loss_and_gradient(logits_NV: Tensor, targets_N: Tensor) -> tuple[Tensor, Tensor]:
    """The summed loss of some rows, and its gradient with respect to their logits, [N, V] in their own precision."""
    log_p = F.log_softmax(logits_NV.float(), dim=1)
    loss = -log_p.gather(1, targets_N[:, None]).sum()
    grad = log_p.exp_()  # softmax minus one at the target
    grad[torch.arange(len(grad), device=grad.device), targets_N] -= 1.0
    return loss, grad.to(logits_NV.dtype)


def loss_and_gradient_unscattered(
    logits_NV: Tensor, targets_N: Tensor, vocab_size: int
) -> tuple[Tensor, Tensor]:
    """The same without scattered writes, so that a compiler needs few passes over the logits.

    Columns from `vocab_size` on are ignored.
    """
    columns_V = torch.arange(logits_NV.shape[1], device=logits_NV.device)
    log_p = F.log_softmax(torch.where(columns_V < vocab_size, logits_NV.float(), -math.inf), dim=1)
    hot = columns_V == targets_N[:, None]
    loss = -torch.where(hot, log_p, 0.0).sum()
    return loss, (log_p.exp() - hot.float()).to(logits_NV.dtype)


@cache
def _compiled() -> CompiledLoss:
    """The compiled function, made on first use: torch.compile alone takes a second to import."""
    return torch.compile(loss_and_gradient_unscattered, dynamic=False)


class _ChunkedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x_ND: Tensor, weight_VD: Tensor, targets_N: Tensor, rows: int, vocab_size: int | None
    ) -> Tensor:
        """The loss; with a `vocab_size` by a compiled function, and `weight_VD` may then have more rows."""
        N = x_ND.shape[0]
        needs_x, needs_weight = ctx.needs_input_grad[0], ctx.needs_input_grad[1]
        total = torch.zeros((), dtype=torch.float32, device=x_ND.device)
        grad_x = torch.empty_like(x_ND) if needs_x else None
        grad_weight = torch.zeros_like(weight_VD, dtype=torch.float32) if needs_weight else None
        for start in range(0, N, rows):
            x, targets = x_ND[start : start + rows], targets_N[start : start + rows]
            logits = F.linear(x, weight_VD)
            if grad_x is None and grad_weight is None:
                total -= (
                    F.log_softmax(logits[:, :vocab_size].float(), dim=1).gather(1, targets[:, None]).sum()
                )
                continue
            if vocab_size is None:
                loss, grad = loss_and_gradient(logits, targets)
            else:
                loss, grad = _compiled()(logits, targets, vocab_size)
            total += loss
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
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, Tensor | None, None, None, None]:
        scale = grad_outputs[0] / ctx.tokens
        grad_x, grad_weight = ctx.saved_tensors
        if grad_x is not None:
            grad_x = grad_x * scale.to(grad_x.dtype)
        if grad_weight is not None:
            grad_weight = (grad_weight * scale).to(ctx.weight_dtype)
        return grad_x, grad_weight, None, None, None
